package memory

import (
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
)

// Contest counts the writes to one object that did not last: each was followed by another one that nobody else had
// asked for. Who undoes a write, or whether our own write causes the next one, makes no difference.
type Contest struct {
	// Unsettled is how many writes in a row did not last.
	Unsettled int
	last      time.Time
	cause     canonical.Sum // digest of what others had written at the last write
	// Written is what the last write wrote: a hash, or "removed", "add", …
	Written string
}

// contestedAfter is how many writes in a row may not last before the next ones are delayed.
const contestedAfter = 3

// delay is how long a write must wait after the last one.
func (s Spacing) delay(unsettled int) time.Duration {
	if unsettled < contestedAfter {
		return 0
	}
	return decide.Backoff(s.minDelay, s.maxDelay, unsettled-contestedAfter)
}

// followsChange reports whether the next write follows from a change by others: then it is neither counted nor delayed.
func (c Contest) followsChange(cause canonical.Sum, what string) bool {
	return c.cause != cause && c.Written != what
}

// settled reports whether the last write lasted so long that counting starts again. If the same is to be written once
// more, someone undid it, which may take a while. If something else is to be written, our own write may have caused it:
// that shows at once, and what comes later is only progress.
func (c Contest) settled(what string, s Spacing, now time.Time) bool {
	calm := 2 * s.maxDelay
	if c.Written != what {
		calm = 2 * max(s.minDelay, s.delay(c.Unsettled))
	}
	return now.Sub(c.last) > calm
}

// Wait is how long the next write must wait; zero if it may be made now.
func (c Contest) Wait(cause canonical.Sum, what string, s Spacing, now time.Time) time.Duration {
	if c.last.IsZero() || c.followsChange(cause, what) || c.settled(what, s, now) {
		return 0
	}
	delay := s.delay(c.Unsettled)
	if delay == 0 {
		return 0
	}
	return max(0, c.last.Add(delay).Sub(now))
}

// Write counts a write. A change by others ends no contest, but gives the next write one more chance to last.
func (c *Contest) Write(cause canonical.Sum, what string, s Spacing, now time.Time) {
	switch {
	case c.last.IsZero() || c.settled(what, s, now):
		c.Unsettled = 0
	case c.followsChange(cause, what):
		c.Unsettled = min(c.Unsettled, contestedAfter-1)
	default:
		c.Unsettled++
	}
	c.last, c.cause, c.Written = now, cause, what
}

// statusContest is about the writes to a status.
type statusContest struct {
	Contest
	// Writers are the other writers, as of our last write.
	Writers string
}

// IsContested reports whether others keep undoing the writes of that text, so that the next one may have to wait.
func (c statusContest) IsContested(text string) bool {
	return c.Unsettled >= contestedAfter-1 && c.Written == text
}

// contests are about the writes to an upstream's status and finalizers.
type contests struct {
	Status     statusContest
	Finalizers Contest
}
