package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// witnesses are the objects that are known to be the upstream's own, each once: those that are recorded, and what is remembered, as a status
// that was written may not be known yet.
func (r *reconciliation) witnesses(recorded []status.Recorded) (list []memory.Witness) {
	listed := map[types.UID]int{}
	add := func(w memory.Witness) {
		switch k, ok := listed[w.UID]; {
		case w.UID == "":
		case !ok:
			list, listed[w.UID] = append(list, w), len(list)
		case list[k].Guessed:
			list[k] = w
		}
	}
	for _, rec := range recorded {
		if i := r.Pipeline.IndexOf(rec.Name); i >= 0 {
			add(memory.Witness{Place: memory.At(i, operator.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}), UID: rec.UID, Guessed: rec.Guessed})
		}
	}
	for _, w := range r.record.Witnesses() {
		add(w)
	}
	return list
}

// trusted are the identifiers in the upstream's status, if it can be trusted.
func (r *reconciliation) trusted() []status.Recorded {
	if !r.Pipeline.TrustsStatus() {
		return nil
	}
	return r.recorded()
}

// findLeftovers returns the objects that are at no target of a desired state; nil: all of them. They are remembered until they are known
// to be gone: once the status records their successors, nothing else may say whose they are.
func (r *reconciliation) findLeftovers(w *operator.Desired, owned [][]*drift.Live) []operator.Owned {
	known := map[types.UID]int{}
	for _, w := range r.witnesses(r.trusted()) {
		if known[w.UID] = w.Downstream; w.Guessed {
			known[w.UID] = operator.NoIndex
		}
	}
	left := decide.Leftovers(r.Pipeline.Settings, r.upstream.GetUID(), w, owned, knownBy(r, r.recorded()), known)
	before := r.record.Notes.Get().Left
	var now []memory.Witness
	for i := range left {
		own := &left[i]
		if k := slices.IndexFunc(before, memory.IsOf(own.Live.UID)); k >= 0 {
			own.UnwantedSince = before[k].Since
		}
		now = append(now, memory.Witness{Place: memory.At(own.Downstream, operator.RefOf(own.Live)), UID: own.Live.UID, Since: own.UnwantedSince, Guessed: !own.Certain})
	}
	for _, w := range before { // if the watch does not show it any more, it may have lost the labels of the watch: it is read
		isShown := slices.ContainsFunc(now, memory.IsOf(w.UID))
		if !isShown && !r.record.IsNotOurs(w.UID, r.now) && !r.isTarget(w.Downstream, w.At) {
			now = append(now, w)
		}
	}
	r.record.Notes.Set(len(now) > 0, func(n *memory.Notes) { n.Left = now })
	return left
}

// withWitnessed adds, by downstream, the objects in the cache that only a witness knows.
func (r *reconciliation) withWitnessed(owned [][]*drift.Live) [][]*drift.Live {
	for _, w := range r.witnesses(r.trusted()) {
		live, up := r.record.Notes.Get().WithMark(r.Cache.Live(w.Downstream, w.At)), r.upstream.GetUID()
		if live == nil || live.UID != w.UID || marks.Marked(live, up) || marks.OwnedByOther(live, up) || r.record.IsNotOurs(w.UID, r.now) {
			continue
		}
		// Whoever may write the status must not name an object that never was ours.
		if live.Hash == "" && len(r.Pipeline.Config.Conventions.Labels) == 0 {
			continue
		}
		if !slices.ContainsFunc(owned[w.Downstream], func(o *drift.Live) bool { return o.UID == live.UID }) {
			owned[w.Downstream] = append(owned[w.Downstream], live)
		}
	}
	return owned
}
