package survey

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// Newest is the upstream whose conditions changed last: the one that an operator wrote to last, but for writes that
// changed none.
type Newest struct {
	at  time.Time
	ref operator.Ref
}

// Add takes an upstream into account.
func (n *Newest) Add(f *preview.Finding) {
	if f.Upstream == nil {
		return
	}
	list, _, _ := unstructured.NestedSlice(f.Upstream.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		text, _ := c["lastTransitionTime"].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil && at.After(n.at) {
			n.at, n.ref = at, f.Ref
		}
	}
}

// LastWrite returns when the operator last changed that upstream, as LastWrite of the survey; zero if no upstream has a
// condition.
func (n *Newest) LastWrite(ctx context.Context, v *Survey) time.Time {
	if n.at.IsZero() {
		return time.Time{}
	}
	return v.LastWrite(ctx, n.ref)
}

// LastWrite returns when the operator last changed an upstream, from managedFields, to the second; zero if it never
// did, or the upstream cannot be read. It sends one request, because caches do not keep managedFields.
func (v *Survey) LastWrite(ctx context.Context, ref operator.Ref) time.Time {
	if v.reconciler.Pipeline.HasRows() { // what is written back says nothing of who wrote it
		return time.Time{}
	}
	up, err := v.reconciler.ReadUpstream(ctx, ref)
	if err != nil {
		return time.Time{}
	}
	return lastWrite(up.GetManagedFields(), v.reconciler.Pipeline.Config.Conventions.FieldManager)
}

func lastWrite(entries []metav1.ManagedFieldsEntry, manager string) time.Time {
	var last time.Time
	for _, e := range entries {
		if e.Manager == manager && e.Time != nil && e.Time.After(last) {
			last = e.Time.Time
		}
	}
	return last
}
