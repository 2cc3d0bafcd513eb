package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// byUpstream indexes downstreams by the upstream that their owner annotation names.
const byUpstream = "upstream"

func upstreamsNamed(obj any) ([]string, error) {
	live, ok := obj.(*drift.Live)
	if !ok {
		return nil, nil
	}
	ref, _, ok := pipeline.ParseOwnerMark(live.OwnerMark)
	if !ok || pipeline.IsBeforeObject(live) {
		return nil, nil
	}
	return []string{ref.String()}, nil
}

// leftOf lists the objects that an earlier upstream of that name has left, as where somebody took the finalizer off it by
// force. What an owner reference marks is the garbage collector's. Of an upstream that this survey does not watch nothing is
// known; of one that it watches the API server is asked, since the watch may be behind.
func (v *Survey) leftOf(ctx context.Context, ref pipeline.Ref) ([]reconcile.Change, error) {
	if !v.surveyor.options.Left || !v.session.Cache.Watches(ref.Namespace) {
		return nil, nil
	}
	left := v.leftBefore(ref, v.session.Cache.UpstreamUID(ref))
	if len(left) == 0 {
		return nil, nil
	}
	up, err := v.session.Client.Get(ctx, v.session.UpstreamTarget(ref))
	switch {
	case errors.Is(err, apply.ErrGone):
		return left, nil
	case err != nil:
		return nil, fmt.Errorf("looking at %s %s: %w", v.session.Pipeline.Upstream.GVK.Kind, ref, err)
	}
	return v.leftBefore(ref, up.GetUID()), nil
}

// leftBefore lists the objects that are marked for another upstream of that name than the one with this uid.
func (v *Survey) leftBefore(ref pipeline.Ref, uid types.UID) []reconcile.Change {
	var left []reconcile.Change
	seen := map[types.UID]bool{}
	for i, s := range v.session.caches.downstreams {
		for _, sub := range s {
			objs, _ := sub.indexer().ByIndex(byUpstream, ref.String())
			for _, obj := range objs {
				live, ok := obj.(*drift.Live)
				if !ok || seen[live.UID] || !pipeline.LeftBy(live, ref, uid) {
					continue
				}
				seen[live.UID] = true
				home, _ := v.session.Pipeline.HomeOf(i, live, nil)
				d := v.session.Pipeline.Downstreams[home]
				left = append(left, reconcile.Change{Index: home, Downstream: d.Name, Leftover: true, Kind: d.Kind.GVK, Live: live, Theirs: true, Action: reconcile.ChangeLeave,
					Target: pipeline.Ref{Namespace: live.Namespace, Name: live.Name}})
			}
		}
	}
	slices.SortFunc(left, func(a, b reconcile.Change) int { return reconcile.CompareChanges(&a, &b) })
	return left
}
