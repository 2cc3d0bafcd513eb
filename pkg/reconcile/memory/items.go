package memory

import (
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Items is what is remembered of the objects of a downstream with forEach together. Each may be new, with a memory of
// its own.
type Items struct {
	// targets is the digest of where they are; empty while they are not known.
	targets string
	// contest is about changes of targets.
	contest Contest
}

// Items is what is remembered of a downstream with forEach.
func (u *Upstream) Items(downstream int) *Items {
	if u.items == nil {
		u.items = map[int]*Items{}
	}
	if u.items[downstream] == nil {
		u.items[downstream] = &Items{}
	}
	return u.items[downstream]
}

// Note records which objects the desired state has of a downstream.
func (i *Items) Note(w *operator.Desired, downstream int) {
	if i.targets = ""; w.Unknown(downstream) {
		return
	}
	var targets []any
	for _, o := range w.Of(downstream) {
		targets = append(targets, o.Target.Namespace, o.Target.Name)
	}
	sum := canonical.Digest(targets)
	i.targets = string(sum[:])
}

// Write counts that objects are created or removed, once for each change of which they are.
func (i *Items) Write(cause canonical.Sum, s Spacing, now time.Time) {
	if i.targets != "" && i.targets != i.contest.Written {
		i.contest.Write(cause, i.targets, s, now)
	}
}

// Wait is how long the creation of one of them must wait.
func (i *Items) Wait(cause canonical.Sum, s Spacing, now time.Time) time.Duration {
	if i.targets == i.contest.Written {
		return 0
	}
	return i.contest.Wait(cause, i.targets, s, now)
}
