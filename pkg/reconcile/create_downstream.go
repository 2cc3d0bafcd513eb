package reconcile

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// CreateDownstream creates downstream i of an upstream and remembers that it did: so a test case begins. It returns the desired
// state, which says why nothing was created, and what the upstream's status would record of the object; nil for nothing.
func (r *Reconciler) CreateDownstream(ctx context.Context, up *unstructured.Unstructured, i int) (*pipeline.Desired, *status.Recorded, error) {
	l := r.newReconciliation(pipeline.Ref{Namespace: up.GetNamespace(), Name: up.GetName()}, up.DeepCopy())
	defer l.releaseSlot()
	l.selected = true
	l.updateDesired(ctx)
	w := l.record.desired
	k := w.First(i)
	if len(w.Invalid) > 0 || w.Objects[k].Err != nil || !w.Objects[k].Wanted {
		return w, nil, nil
	}
	o := pipeline.Outcome{Downstream: i, Object: k, State: pipeline.StateCreate, Action: pipeline.ActionCreate, Target: w.Objects[k].Target}
	if err := l.create(ctx, o, pipeline.Input{Desired: w}); err != nil {
		return w, nil, err
	}
	d := l.Pipeline.Decide(l.gather(ctx))
	results := l.results(d)
	l.upstream.Object["status"] = l.Pipeline.Report(ctx, l.upstream, l.inputsRead(), w, results, d.Leftovers, metav1.NewTime(l.now)).Status
	return w, l.recordedAs(l.recorded(), k), nil
}
