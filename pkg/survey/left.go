package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// leftOf returns the objects that an earlier upstream of that name has left, for example because someone removed its
// finalizer. Those with an owner reference are left to the garbage collector. It skips upstreams that this survey does
// not watch, and asks the API server whether an upstream exists, because the watch may lag.
func (v *Survey) leftOf(ctx context.Context, ref operator.Ref) ([]preview.Change, error) {
	switch {
	case !v.surveyor.options.Left:
		return nil, nil
	case ref == operator.Ref{}:
		return v.leftBefore(ref, ""), nil
	case !v.cache.Watches(ref.Namespace):
		return nil, nil
	}
	if p := v.reconciler.Pipeline; p.HasRows() {
		return v.leftBefore(ref, p.Row(ref.Name, nil).GetUID()), nil
	}
	left := v.leftBefore(ref, v.cache.UpstreamUID(ref))
	if len(left) == 0 {
		return nil, nil
	}
	up, err := v.reconciler.ReadUpstream(ctx, ref)
	switch {
	case errors.Is(err, apply.ErrGone):
		return left, nil
	case err != nil:
		return nil, fmt.Errorf("inspecting %s %s: %w", v.reconciler.Pipeline.Upstream.GVK.Kind, ref, err)
	}
	return v.leftBefore(ref, up.GetUID()), nil
}

// leftBefore returns the objects with the owner mark of an earlier upstream of that name, with another uid; for the
// zero Ref, those that have lost their owner mark.
func (v *Survey) leftBefore(ref operator.Ref, uid types.UID) []preview.Change {
	var left []preview.Change
	seen := map[types.UID]bool{}
	for i, live := range v.cache.MarkedFor(ref) {
		reason := "it " + marks.LostOwner(live)
		if ref != (operator.Ref{}) {
			reason = "it " + marks.EarlierMark(live, v.reconciler.Pipeline.Upstream.GVK.Kind)
		}
		if seen[live.UID] || ref != (operator.Ref{}) && !marks.LeftBy(live, ref, uid) {
			continue
		}
		seen[live.UID] = true
		home, _ := decide.HomeOf(v.reconciler.Pipeline.Settings, i, live, nil)
		d := v.reconciler.Pipeline.Downstreams[home]
		left = append(left, preview.Change{
			Index: home, Downstream: d.Name, Leftover: true, Kind: d.Kind.GVK, Live: live, Theirs: true,
			Action: preview.Leave, Reason: reason,
			Target: operator.Ref{Namespace: live.Namespace, Name: live.Name},
		})
	}
	slices.SortFunc(left, func(a, b preview.Change) int { return preview.CompareChanges(&a, &b) })
	return left
}
