package survey

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// LastWrite returns when the operator last changed an upstream, from managedFields, to the second; zero if it never did, or the
// upstream cannot be read. It sends one request, because caches do not keep managedFields.
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
