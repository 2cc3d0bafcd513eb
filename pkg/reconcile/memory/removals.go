package memory

import (
	"maps"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Place is where a downstream was created, or may have been: a response can get lost.
type Place struct {
	Downstream int
	At         operator.Ref
}

// At is the place of an object of a downstream.
func At(downstream int, at operator.Ref) Place { return Place{downstream, at} }

// Removals are the places at which an object of ours was deleted or released: whoever keeps creating it there again is
// followed with growing delay. They outlive the memory of an upstream, which ends with the removal.
type Removals struct {
	mu sync.Mutex
	by map[Place]*Contest
	// pruneAt is the number of places from which those that have settled are dropped.
	pruneAt int
}

// manyRemovals is the least number of places from which those that have settled are dropped.
const manyRemovals = 1000

const removed = "removed"

// Wait is how long the next removal at a place must wait.
func (r *Removals) Wait(at Place, s Spacing, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.by[at]; c != nil {
		return c.Wait(canonical.Sum{}, removed, s, now)
	}
	return 0
}

// Write counts a removal.
func (r *Removals) Write(at Place, s Spacing, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.by) >= max(r.pruneAt, manyRemovals) {
		maps.DeleteFunc(r.by, func(_ Place, c *Contest) bool { return c.settled(removed, s, now) })
		r.pruneAt = 2 * len(r.by) // so that all writes together take time in proportion to their number
	}
	if r.by == nil {
		r.by = map[Place]*Contest{}
	}
	if r.by[at] == nil {
		r.by[at] = &Contest{}
	}
	r.by[at].Write(canonical.Sum{}, removed, s, now)
}

// Forget is for a place at which this operator creates an object again.
func (r *Removals) Forget(at Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, at)
}
