package reconcile

import (
	"maps"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// contest counts the writes to one object that did not settle: each was followed by another one that nobody else had asked
// for. Who undoes a write, and whether it is not our own work that calls for the next one, does not matter to the count.
type contest struct {
	unsettled int
	last      time.Time
	cause     drift.Sum // what others asked for at the last write
	wrote     string    // what was written then: a hash, or what was done
}

// contestedAfter is how many writes in a row may not settle before the next ones are spaced out.
const contestedAfter = 3

// spacing is how a config spaces out writes that do not settle.
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
	return pipeline.Backoff(s.minDelay, s.maxDelay, unsettled-contestedAfter)
}

// asked reports whether the next write follows from a change by others: then it is neither counted nor delayed.
func (c *contest) asked(cause drift.Sum, what string) bool {
	return c.cause != cause && c.wrote != what
}

// settled reports whether the last write lasted so long that counting starts again. If the same is to be written once more,
// somebody undid it, which may take a while. If something else is to be written, our own write may have caused it: that shows at
// once, and what comes later is only progress.
func (c *contest) settled(what string, s spacing, now time.Time) bool {
	calm := 2 * s.maxDelay
	if c.wrote != what {
		calm = 2 * max(s.minDelay, s.delay(c.unsettled))
	}
	return now.Sub(c.last) > calm
}

// count is how many writes did not settle, as far as it matters to the next one.
func (c *contest) count(cause drift.Sum, what string, s spacing, now time.Time) int {
	if c.last.IsZero() || c.asked(cause, what) || c.settled(what, s, now) {
		return 0
	}
	return c.unsettled
}

// wait is how long the next write must wait; zero where it may be made now.
func (c *contest) wait(cause drift.Sum, what string, s spacing, now time.Time) time.Duration {
	delay := s.delay(c.count(cause, what, s, now))
	if delay == 0 {
		return 0
	}
	return max(0, c.last.Add(delay).Sub(now))
}

// write takes note of a write. What others asked for ends no contest, but gives it one more chance to settle.
func (c *contest) write(cause drift.Sum, what string, s spacing, now time.Time) {
	switch {
	case c.last.IsZero() || c.settled(what, s, now):
		c.unsettled = 0
	case c.asked(cause, what):
		c.unsettled = min(c.unsettled, contestedAfter-1)
	default:
		c.unsettled++
	}
	c.last, c.cause, c.wrote = now, cause, what
}

// removals are the places at which something of ours was deleted or released: whoever makes it there anew is not followed at
// any speed. They outlast the record of an upstream, which goes with what was removed.
type removals struct {
	mu sync.Mutex
	by map[place]*contest
	// pruneAt is how many places there must be before those that have settled are forgotten.
	pruneAt int
}

// manyRemovals is the least number of places at which those that have settled are looked for.
const manyRemovals = 1000

const removed = "removed"

func (r *removals) wait(at place, s spacing, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.by[at]; c != nil {
		return c.wait(drift.Sum{}, removed, s, now)
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
	r.by[at].write(drift.Sum{}, removed, s, now)
}

// forget is for a place at which this operator itself makes something again.
func (r *removals) forget(at place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, at)
}
