package reconcile

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/status"
)

// CreateDownstream creates an object of downstream i of an upstream and remembers that it did: so a test case begins.
// With forEach, name is the object's. It returns the desired state, which says why nothing was created, the index of
// the object in it, or -1, and what the upstream's status would record of the object; nil for nothing.
func (r *Reconciler) CreateDownstream(
	ctx context.Context, up *unstructured.Unstructured, i int, name string,
) (*operator.Desired, int, *status.Recorded, error) {
	l := r.newReconciliation(operator.Ref{Namespace: up.GetNamespace(), Name: up.GetName()}, up.DeepCopy())
	defer l.ReleaseSlot()
	l.Selected = true
	l.UpdateDesired(ctx)
	w := l.Memory.Desired()
	k, d := w.First(i), r.Pipeline.Downstreams[i]
	if d.Several() {
		k = slices.IndexFunc(w.Objects, func(o operator.DesiredObject) bool {
			return o.Downstream == i && d.NameOf(o.Target) == name
		})
	}
	if k < 0 || len(w.Invalid) > 0 || w.Objects[k].Err != nil || !w.Objects[k].Wanted {
		return w, k, nil, nil
	}
	o := operator.Outcome{Downstream: i, Object: k, State: operator.StateCreate, Action: operator.ActionCreate,
		Target: w.Objects[k].Target}
	if res := l.Perform(ctx, o, operator.Input{Desired: w}); res.Err != nil {
		return w, k, nil, res.Err
	}
	decision := decide.Decide(l.Pipeline.Settings, l.GatherCached(ctx))
	results := l.Results(decision)
	l.Upstream.Object["status"] = l.Pipeline.Report(ctx, l.Upstream, l.InputsRead(), w, results, decision.Leftovers, nil,
		metav1.NewTime(l.Began)).Status
	return w, k, l.RecordedAs(l.Recorded(), k), nil
}
