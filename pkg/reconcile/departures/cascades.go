package departures

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Cascades remembers, by the upstream's uid, what the deletions that the watch has shown ask for: the garbage collector
// removes the finalizer that says it within milliseconds, before a worker reconciles.
type Cascades struct {
	seen table[types.UID, operator.Cascade]
}

// Forget is for an upstream that is gone.
func (c *Cascades) Forget(uid types.UID) { c.seen.take(uid) }

// ForgetAll is for upstreams that the watch does not show any more.
func (c *Cascades) ForgetAll(gone func(types.UID) bool) {
	c.seen.remove(func(uid types.UID, _ operator.Cascade) bool { return gone(uid) })
}

// Inherit takes over what another one has seen, and does not have any more.
func (c *Cascades) Inherit(from *Cascades) {
	for uid, cascade := range from.seen.clone() {
		c.seen.put(uid, func(was operator.Cascade) operator.Cascade { return cmp.Or(was, cascade) })
	}
}

// Of is what the deletion of an upstream asks for, as far as a watch has shown it.
func (c *Cascades) Of(uid types.UID) operator.Cascade {
	cascade, _ := c.seen.get(uid)
	return cascade
}

// Knows reports whether the watch has shown that the upstream of that uid is being deleted.
func (c *Cascades) Knows(uid types.UID) bool {
	_, ok := c.seen.get(uid)
	return ok
}

// Number is how many upstreams it remembers.
func (c *Cascades) Number() int { return len(c.seen.clone()) }

// Note records an upstream that is being deleted, with its finalizers.
func (c *Cascades) Note(uid types.UID, finalizers []string) {
	c.seen.put(uid, func(was operator.Cascade) operator.Cascade { return cmp.Or(operator.CascadeOf(finalizers), was) })
}
