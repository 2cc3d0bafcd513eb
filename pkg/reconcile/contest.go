package reconcile

import (
	"maps"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
)

// contest counts the writes to one object that did not last: each was followed by another one that nobody else had asked for.
// Who undoes a write, or whether our own write causes the next one, makes no difference.
type contest struct {
	unsettled int
	last      time.Time
	cause     canonical.Sum // digest of what others had written at the last write
	written   string        // what the last write wrote: a hash, or "removed", "add", …
}

// contestedAfter is how many writes in a row may not last before the next ones are delayed.
const contestedAfter = 3

// spacing is how a config delays writes that do not last.
type spacing struct{ minDelay, maxDelay time.Duration }

func (r *Reconciler) spacing() spacing {
	retry := r.Pipeline.Config.Retry
	return spacing{time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay)}
}

// delay is how long a write must wait after the last one.
func (s spacing) delay(unsettled int) time.Duration {
	if unsettled < contestedAfter {
		return 0
	}
	return decide.Backoff(s.minDelay, s.maxDelay, unsettled-contestedAfter)
}

// followsChange reports whether the next write follows from a change by others: then it is neither counted nor delayed.
func (c contest) followsChange(cause canonical.Sum, what string) bool {
	return c.cause != cause && c.written != what
}

// settled reports whether the last write lasted so long that counting starts again. If the same is to be written once more,
// somebody undid it, which may take a while. If something else is to be written, our own write may have caused it: that shows at
// once, and what comes later is only progress.
func (c contest) settled(what string, s spacing, now time.Time) bool {
	calm := 2 * s.maxDelay
	if c.written != what {
		calm = 2 * max(s.minDelay, s.delay(c.unsettled))
	}
	return now.Sub(c.last) > calm
}

// count is how many writes did not last, as far as it matters for the next one.
func (c contest) count(cause canonical.Sum, what string, s spacing, now time.Time) int {
	if c.last.IsZero() || c.followsChange(cause, what) || c.settled(what, s, now) {
		return 0
	}
	return c.unsettled
}

// wait is how long the next write must wait; zero if it may be made now.
func (c contest) wait(cause canonical.Sum, what string, s spacing, now time.Time) time.Duration {
	delay := s.delay(c.count(cause, what, s, now))
	if delay == 0 {
		return 0
	}
	return max(0, c.last.Add(delay).Sub(now))
}

// write counts a write. A change by others ends no contest, but gives the next write one more chance to last.
func (c *contest) write(cause canonical.Sum, what string, s spacing, now time.Time) {
	switch {
	case c.last.IsZero() || c.settled(what, s, now):
		c.unsettled = 0
	case c.followsChange(cause, what):
		c.unsettled = min(c.unsettled, contestedAfter-1)
	default:
		c.unsettled++
	}
	c.last, c.cause, c.written = now, cause, what
}

// removals are the places at which an object of ours was deleted or released: whoever keeps creating it there again is followed
// with growing delay. They outlive the record of an upstream, which ends with the removal.
type removals struct {
	mu sync.Mutex
	by map[place]*contest
	// pruneAt is the number of places from which those that have settled are dropped.
	pruneAt int
}

// manyRemovals is the least number of places from which those that have settled are dropped.
const manyRemovals = 1000

const removed = "removed"

func (r *removals) wait(at place, s spacing, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.by[at]; c != nil {
		return c.wait(canonical.Sum{}, removed, s, now)
	}
	return 0
}

func (r *removals) write(at place, s spacing, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.by) >= max(r.pruneAt, manyRemovals) {
		maps.DeleteFunc(r.by, func(_ place, c *contest) bool { return c.settled(removed, s, now) })
		r.pruneAt = 2 * len(r.by) // so that all writes together take time in proportion to their number
	}
	if r.by == nil {
		r.by = map[place]*contest{}
	}
	if r.by[at] == nil {
		r.by[at] = &contest{}
	}
	r.by[at].write(canonical.Sum{}, removed, s, now)
}

// forget is for a place at which this operator creates an object again.
func (r *removals) forget(at place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, at)
}
