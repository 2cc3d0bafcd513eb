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
		c.seen.put(uid, func(was operator.Cascade) operator.Cascade {
			if was == unseen { // the other one has seen it
				return cascade
			}
			return cmp.Or(was, cascade)
		})
	}
}

// Of is what the deletion of an upstream asks for, as far as a watch has shown it.
func (c *Cascades) Of(uid types.UID) operator.Cascade {
	if cascade, _ := c.seen.get(uid); cascade != unseen {
		return cascade
	}
	return operator.CascadeConfig
}

// unseen is of a deletion that had begun when a watch showed the upstream first.
const unseen operator.Cascade = "unseen"

// NoteFirst is Note for an upstream that the watch has not shown before.
func (c *Cascades) NoteFirst(uid types.UID, finalizers []string) {
	if c.Note(uid, finalizers); c.Of(uid) == operator.CascadeConfig {
		c.seen.put(uid, func(operator.Cascade) operator.Cascade { return unseen })
	}
}

// BeganUnseen reports whether the deletion had begun when the watch showed the upstream first, so that nothing says
// what it asked for.
func (c *Cascades) BeganUnseen(uid types.UID) bool {
	cascade, _ := c.seen.get(uid)
	return cascade == unseen
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
