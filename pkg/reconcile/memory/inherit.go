package memory

import (
	"maps"

	"github.com/corollary-dev/corollary/pkg/canonical"
)

// Successor is the downstream that one of the config before has become; -1 for none. Sees is true if both have the same
// view, so that one can use what was kept for the other.
type Successor struct {
	Index int
	Sees  bool
}

// Inherit takes over what an ended session knows, by downstream, about its writes and about which objects are ours. A
// count may have rendered the desired state already; what it found may be from before the last writes, which no event
// shows any more. Nobody works on either; events may still come in, for old too.
func (m *Upstreams) Inherit(old *Upstreams, successors []Successor) {
	for ref, before := range old.by {
		m.Recall(ref, before.UID).inherit(before, successors)
	}
}

func (u *Upstream) inherit(old *Upstream, successors []Successor) {
	u.ClearInSync()
	if u.takeOver(old, successors); u.desired != nil && len(u.parked) > 0 {
		u.SetDesired(u.desired, u.digest)
	}
}

func (u *Upstream) takeOver(old *Upstream, successors []Successor) {
	old.mu.Lock()
	defer old.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.own = old.own
	known := old.Notes.Get()
	if len(known.fates) > 0 {
		u.Notes.Edit().fates = maps.Clone(known.fates)
	}
	for _, w := range known.Left {
		if to := successors[w.Downstream]; to.Index >= 0 {
			n := u.Notes.Edit()
			n.Left = append(n.Left, Witness{Place{to.Index, w.At}, w.UID, 0, w.Guessed})
		}
	}
	for _, at := range known.Unconfirmed {
		if to := successors[at.Downstream]; to.Index >= 0 {
			u.Notes.Edit().ExpectCreated(Place{to.Index, at.At})
		}
	}
	for _, r := range old.unplaced.Get() {
		if to := successors[r.Downstream]; to.Index >= 0 && to.Sees {
			u.displace(to.Index, r.response)
		}
	}
	for _, from := range old.list {
		if to := successors[from.downstream]; to.Index >= 0 {
			u.of(slot{to.Index, from.item}).inherit(from, to.Sees)
		}
	}
}

// inherit takes over what is remembered of an object; sees: also what was seen of it.
func (o *Object) inherit(from *Object, sees bool) {
	if from.UID != "" {
		o.UID, o.at = from.UID, from.at
	}
	was := from.Unusual.Get()
	o.inheritGenerated(was)
	o.Unusual.Set(was.Verified.UID != "", func(t *unusualObject) { t.Verified = was.Verified })
	if o.Contest = from.Contest.clone(); o.Contest.isSet() {
		o.Contest.Edit().cause = canonical.Sum{} // a changed config is a change by others
	}
	if !sees {
		return
	}
	if o.read = from.read.clone(); from.baseline.isSet() {
		o.baseline = from.baseline.clone()
	}
}
