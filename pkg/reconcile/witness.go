package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// witness says that the object of a uid at a place is the upstream's own: the status records it, or this process has made it or found
// it to be its own. It holds although somebody has removed the object's owner marks.
type witness struct {
	place
	uid types.UID
}

// witnesses lists what the status says, if it can be trusted, and what is remembered.
func (r *reconciliation) witnesses() []witness {
	list := slices.Clone(r.record.left)
	for k, t := range r.record.targets {
		if t.uid != "" {
			list = append(list, witness{place{r.record.slots[k].downstream, t.at}, t.uid})
		}
	}
	if !r.Pipeline.TrustsStatus() {
		return list
	}
	for _, rec := range r.recorded() {
		for i, d := range r.Pipeline.Downstreams {
			if d.Name == rec.Name && rec.UID != "" {
				list = append(list, witness{place{i, pipeline.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}}, rec.UID})
			}
		}
	}
	return list
}

// findLeftovers returns the objects that stand at no target of a desired state; nil: all of them. They are remembered: once the status
// records their successors, nothing else may say whose they are.
func (r *reconciliation) findLeftovers(w *pipeline.Desired, owned [][]*drift.Live) []pipeline.Owned {
	known := map[types.UID]bool{}
	for _, w := range r.witnesses() {
		known[w.uid] = true
	}
	left := r.Pipeline.Leftovers(r.upstream.GetUID(), w, owned, r.recorded(), known)
	r.record.left = nil
	for _, own := range left {
		at := pipeline.Ref{Namespace: own.Live.Namespace, Name: own.Live.Name}
		r.record.left = append(r.record.left, witness{place{own.Downstream, at}, own.Live.UID})
	}
	return left
}

// withWitnessed adds, by downstream, the objects in the cache that only a witness knows.
func (r *reconciliation) withWitnessed(owned [][]*drift.Live) [][]*drift.Live {
	for _, w := range r.witnesses() {
		live, up := r.Cache.Live(w.downstream, w.at), r.upstream.GetUID()
		if live == nil || live.UID != w.uid || pipeline.Marked(live, up) || pipeline.OwnedByOther(live, up) {
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
