package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// beginGone is about a row that the query does not return: nil if it has no objects, or if it was never seen leaving.
// Then its objects are those of another process, or of rows that were gone before this one started and are yet to be
// counted.
func (r *Reconciler) beginGone(ctx context.Context, ref operator.Ref) *reconciliation {
	l := r.newReconciliation(ref, r.Pipeline.Row(ref.Name, nil))
	switch {
	case l.hasNothing():
		r.forgetGone(ref)
		return nil
	case l.isLeftOver() && !r.ReportsLeftovers:
		l.noteShared()
		r.forget(ref)
		return nil
	}
	l.UpdateDesired(ctx)
	return l
}

// HasLeft reports whether objects have the mark of a row.
func (r *Reconciler) HasLeft(ref operator.Ref) bool {
	return r.HasObjects(r.Pipeline.Row(ref.Name, nil).GetUID())
}

// HasObjects reports whether objects have the mark of the upstream with that uid.
func (r *Reconciler) HasObjects(uid types.UID) bool {
	for i := range r.Pipeline.Downstreams {
		if len(r.Cache.OwnedBy(i, uid)) > 0 {
			return true
		}
	}
	return false
}

// NoteGone records that the query does not return a row, so that its objects are to be removed.
func (r *Reconciler) NoteGone(ref operator.Ref) {
	r.Deselected.Upstream(ref, r.Pipeline.Row(ref.Name, nil).GetUID())
}

// reportRow reports the state of a row.
func (r *reconciliation) reportRow(state report.RowState) {
	if r.Rows == nil || r.IsGoneRow() {
		return
	}
	hashes := make([]any, 0, len(r.Memory.Desired().Objects))
	for _, o := range r.Memory.Desired().Objects {
		hashes = append(hashes, o.Hash)
	}
	key, _, _ := unstructured.NestedFieldNoCopy(r.Upstream.Object, "row", r.Pipeline.Config.Source.Key)
	r.Rows.Report(r.Ref, key, state, canonical.Digest(hashes))
}
