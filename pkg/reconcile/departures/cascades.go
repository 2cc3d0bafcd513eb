package departures

import (
	"cmp"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Cascades remembers, by the upstream's uid, what the deletions that the watch has shown ask for: the garbage collector removes
// the finalizer that says it within milliseconds, before a worker reconciles.
type Cascades struct {
	mu   sync.Mutex
	seen map[types.UID]operator.Cascade
}

// Forget is for an upstream that is gone.
func (c *Cascades) Forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, uid)
}

// ForgetAll is for upstreams that the watch does not show any more.
func (c *Cascades) ForgetAll(gone func(types.UID) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.seen, func(uid types.UID, _ operator.Cascade) bool { return gone(uid) })
}

// Inherit takes over what another one has seen, and does not have any more.
func (c *Cascades) Inherit(from *Cascades) {
	from.mu.Lock()
	seen := maps.Clone(from.seen)
	from.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, cascade := range seen {
		if c.seen == nil {
			c.seen = map[types.UID]operator.Cascade{}
		}
		c.seen[uid] = cmp.Or(c.seen[uid], cascade)
	}
}

// Of is what the deletion of an upstream asks for, as far as a watch has shown it.
func (c *Cascades) Of(uid types.UID) operator.Cascade {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[uid]
}

// Knows reports whether the watch has shown that the upstream of that uid is being deleted.
func (c *Cascades) Knows(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.seen[uid]
	return ok
}

// Number is how many upstreams it remembers.
func (c *Cascades) Number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// Note records an upstream that is being deleted, with its finalizers.
func (c *Cascades) Note(uid types.UID, finalizers []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[types.UID]operator.Cascade{}
	}
	if cascade := operator.CascadeOf(finalizers); cascade != operator.CascadeConfig || c.seen[uid] == "" {
		c.seen[uid] = cascade
	}
}
