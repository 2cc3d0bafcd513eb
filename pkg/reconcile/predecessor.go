package reconcile

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Inherit takes over what the session before remembers of its writes: the watches may not have shown them yet, and an object
// whose values the API server normalizes need not be applied again. The session before has ended.
func (r *Reconciler) Inherit(before *Reconciler) {
	if before.Pipeline.Upstream.GVR != r.Pipeline.Upstream.GVR {
		return
	}
	r.deselected.Inherit(&before.deselected, selectsAlike(r, before))
	r.cascades.Inherit(&before.cascades)
	successors := r.matchDownstreams(before.Pipeline)
	r.findLeftBehind(before)
	for ref, old := range before.memory.records {
		r.memory.record(ref, old.uid).inherit(old, successors)
	}
}

// InheritLeaving takes over which upstreams an ended reconciler of the same operator saw leaving, and how they are deleted.
func (r *Reconciler) InheritLeaving(last *Reconciler) {
	r.deselected.Inherit(&last.deselected, selectsAlike(r, last))
	r.cascades.Inherit(&last.cascades)
}

// selectsAlike reports whether two select namespaces, by the same labels.
func selectsAlike(r, other *Reconciler) bool {
	a, b := r.NamespaceSelector, other.NamespaceSelector
	return a != nil && b != nil && a.String() == b.String()
}

// predecessor is the session that works while another one counts, with the downstreams that its own have become there.
type predecessor struct {
	*Reconciler
	counterparts []counterpart
}

// UseBaselinesOf makes the baselines of another reconciler of the same operator, which works meanwhile, count here, too; nil:
// of none.
func (r *Reconciler) UseBaselinesOf(old *Reconciler) {
	if r.predecessor = (predecessor{}); old != nil && old.Pipeline.Upstream.GVR == r.Pipeline.Upstream.GVR {
		r.predecessor = predecessor{old, r.matchDownstreams(old.Pipeline)}
	}
}

// predecessorBaseline is the baseline of the object of that uid in the session which works meanwhile; nil if it has none.
func (r *reconciliation) predecessorBaseline(i int, uid types.UID) *canonical.Sum {
	for old, h := range r.predecessor.counterparts {
		if h.index != i || !h.sees {
			continue
		}
		if rec := r.predecessor.memory.peek(r.ref); rec != nil && rec.uid == r.record.uid {
			return rec.baselineOf(old, uid)
		}
	}
	return nil
}

// countFailing counts the upstream if the session that works meanwhile renders it, and this one does not. What its author has changed
// since its status was written is intended.
func (r *reconciliation) countFailing(d operator.Decision, c *guard.Counted) {
	i := slices.IndexFunc(d.Outcomes, func(o operator.Outcome) bool { return o.State == operator.StateRenderFailed })
	if i < 0 || !r.predecessorRenders() || r.Pipeline.EditedSince(r.upstream) {
		return
	}
	o := d.Outcomes[i]
	c.Failing = 1
	c.First = fmt.Sprintf("%s: %s: %s", r.Pipeline.Downstreams[o.Downstream].Name, o.State, o.Message)
	c.Digest = canonical.Digest([]any{hex.EncodeToString(c.Digest[:]), string(o.State), o.Message})
}

// predecessorRenders reports whether the session that works meanwhile has rendered all downstreams of the upstream. A standby has
// rendered nothing: there the status tells.
func (r *reconciliation) predecessorRenders() bool {
	if r.predecessor.Reconciler == nil {
		return false
	}
	if rec := r.predecessor.memory.peek(r.ref); rec != nil && rec.uid == r.record.uid {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		if len(rec.states) > 0 {
			return !slices.ContainsFunc(rec.states, func(s countedState) bool { return s.state == operator.StateRenderFailed })
		}
	}
	recorded := r.recorded()
	return len(recorded) > 0 && !slices.ContainsFunc(recorded, func(rec status.Recorded) bool { return rec.State == string(operator.StateRenderFailed) })
}

// counterpart is the downstream that one of the config before has become; -1 for none. sees is true if both have the same view,
// so that one can use what was kept for the other.
type counterpart struct {
	index int
	sees  bool
}

func (r *Reconciler) matchDownstreams(before *compile.Pipeline) []counterpart {
	list := make([]counterpart, len(before.Downstreams))
	for i, old := range before.Downstreams {
		list[i].index = -1
		for j, d := range r.Pipeline.Downstreams {
			if d.Name == old.Name && d.Kind.GVR == old.Kind.GVR {
				list[i] = counterpart{j, d.View.ID() == old.View.ID()}
			}
		}
	}
	return list
}

// inherit takes over what old knows, by downstream, about its writes and about which objects are ours. A count may have rendered the desired
// state already; what it found may be from before the last writes, of which no event tells any more. Nobody works on either; events
// may still come in, for old too.
func (r *record) inherit(old *record, successors []counterpart) {
	r.clearInSync()
	if r.takeOver(old, successors); r.desired != nil && len(r.parked) > 0 {
		r.align()
	}
}

func (r *record) takeOver(old *record, successors []counterpart) {
	old.mu.Lock()
	defer old.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.upstream = old.upstream
	if known := old.unusual.get().fates; len(known) > 0 {
		r.unusual.edit().fates = maps.Clone(known)
	}
	for _, w := range old.unusual.get().left {
		if h := successors[w.downstream]; h.index >= 0 {
			u := r.unusual.edit()
			u.left = append(u.left, witness{place{h.index, w.at}, w.uid, 0, w.guessed})
		}
	}
	for _, u := range old.unplaced.get() {
		if h := successors[u.downstream]; h.index >= 0 && h.sees {
			r.displace(h.index, u.response)
		}
	}
	for _, from := range old.objects {
		h := successors[from.downstream]
		if h.index < 0 {
			continue
		}
		m := r.objectOf(slot{h.index, from.item})
		if from.uid != "" {
			m.uid, m.at = from.uid, from.at
		}
		u := from.unusual.get()
		m.inheritGenerated(u)
		m.unusual.set(u.verified.uid != "", func(t *unusualTarget) { t.verified = u.verified })
		if m.contest = from.contest.clone(); !h.sees {
			continue
		}
		if m.read = from.read.clone(); from.baseline.isSet() {
			m.baseline = from.baseline.clone()
		}
	}
	for _, m := range old.unusual.get().unconfirmed {
		if h := successors[m.downstream]; h.index >= 0 {
			u := r.unusual.edit()
			u.unconfirmed = append(u.unconfirmed, place{h.index, m.at})
		}
	}
}
