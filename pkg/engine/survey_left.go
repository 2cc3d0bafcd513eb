package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// byUpstream indexes downstreams by the upstream that their owner annotation names.
const byUpstream = "upstream"

func upstreamsNamed(obj any) ([]string, error) {
	live, ok := obj.(*drift.Live)
	if !ok {
		return nil, nil
	}
	ref, _, ok := pipeline.ParseOwnerMark(live.OwnerMark)
	if !ok || pipeline.IsHook(live) {
		return nil, nil
	}
	return []string{ref.String()}, nil
}

// leftOf lists the objects that an earlier upstream of that name has left, as where somebody took the finalizer off it by
// force. uid is that of the one that is there; empty for none. What an owner reference marks is the garbage collector's.
func (v *Survey) leftOf(ref pipeline.Ref, uid types.UID) []Change {
	if !v.surveyor.options.Left {
		return nil
	}
	var left []Change
	seen := map[types.UID]bool{}
	for i, s := range v.downstreams {
		d := v.pipeline.Downstreams[i]
		for _, sub := range s {
			objs, _ := sub.indexer().ByIndex(byUpstream, ref.String())
			for _, obj := range objs {
				live, ok := obj.(*drift.Live)
				if !ok || seen[live.UID] || !pipeline.LeftBy(live, ref, uid) {
					continue
				}
				seen[live.UID] = true
				left = append(left, Change{Index: i, Downstream: d.Name, Leftover: true, Kind: d.Kind.GVK, Live: live, Theirs: true, Action: ChangeLeave,
					Target: pipeline.Ref{Namespace: live.Namespace, Name: live.Name}})
			}
		}
	}
	slices.SortFunc(left, func(a, b Change) int { return compareChanges(&a, &b) })
	return left
}
