package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// witness says that the object of a uid at a place is the upstream's own: the status records it, or this process has made it or found
// it to be its own. It holds although somebody has removed the object's owner marks.
type witness struct {
	place
	uid types.UID
	// since is the change of the desired state since which it is at no target; 0 if it is at one, or that is not known.
	since int
	// guessed means that only the kind of its downstream is known, not which one of several it is.
	guessed bool
}

// home is the downstream, or NoIndex if it is not known.
func (w witness) home() int {
	if w.guessed {
		return operator.NoIndex
	}
	return w.downstream
}

// witnesses lists what the status says, if it can be trusted, and what is remembered.
func (r *reconciliation) witnesses() []witness {
	list := slices.Clone(r.record.unusual.get().left)
	for _, m := range r.record.objects {
		if m.uid != "" {
			list = append(list, witness{place{m.downstream, m.at}, m.uid, 0, false})
		}
	}
	if !r.Pipeline.TrustsStatus() {
		return list
	}
	for _, rec := range r.recorded() {
		for i, d := range r.Pipeline.Downstreams {
			if d.Name == rec.Name && rec.UID != "" {
				list = append(list, witness{place{i, operator.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}}, rec.UID, 0, rec.Guessed})
			}
		}
	}
	return list
}

// findLeftovers returns the objects that are at no target of a desired state; nil: all of them. They are remembered until they are known
// to be gone: once the status records their successors, nothing else may say whose they are.
func (r *reconciliation) findLeftovers(w *operator.Desired, owned [][]*drift.Live) []operator.Owned {
	known := map[types.UID]int{}
	for _, w := range r.witnesses() {
		if home, ok := known[w.uid]; !ok || home == operator.NoIndex {
			known[w.uid] = w.home()
		}
	}
	left := decide.Leftovers(r.Pipeline.Settings, r.upstream.GetUID(), w, owned, knownBy(r, r.recorded()), known)
	before := r.record.unusual.get().left
	var now []witness
	for i := range left {
		own := &left[i]
		if k := slices.IndexFunc(before, func(w witness) bool { return w.uid == own.Live.UID }); k >= 0 {
			own.UnwantedSince = before[k].since
		}
		at := operator.Ref{Namespace: own.Live.Namespace, Name: own.Live.Name}
		now = append(now, witness{place{own.Downstream, at}, own.Live.UID, own.UnwantedSince, !own.Certain})
	}
	for _, w := range before { // if the watch does not show it any more, it may have lost the labels of the watch: it is read
		isShown := slices.ContainsFunc(now, func(shown witness) bool { return shown.uid == w.uid })
		if !isShown && !r.record.isNotOurs(w.uid, r.now) && !r.isTarget(w.downstream, w.at) {
			now = append(now, w)
		}
	}
	r.record.unusual.set(len(now) > 0, func(u *unusual) { u.left = now })
	return left
}

// withWitnessed adds, by downstream, the objects in the cache that only a witness knows.
func (r *reconciliation) withWitnessed(owned [][]*drift.Live) [][]*drift.Live {
	for _, w := range r.witnesses() {
		live, up := r.withMark(r.Cache.Live(w.downstream, w.at)), r.upstream.GetUID()
		if live == nil || live.UID != w.uid || marks.Marked(live, up) || marks.OwnedByOther(live, up) || r.record.isNotOurs(w.uid, r.now) {
			continue
		}
		// Whoever may write the status must not name an object that never was ours.
		if live.Hash == "" && len(r.Pipeline.Config.Conventions.Labels) == 0 {
			continue
		}
		if !slices.ContainsFunc(owned[w.downstream], func(o *drift.Live) bool { return o.UID == live.UID }) {
			owned[w.downstream] = append(owned[w.downstream], live)
		}
	}
	return owned
}
