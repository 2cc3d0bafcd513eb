package reconcile

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
)

// NoteDeletedWithFinalizer records the state without a deletionTimestamp in which a watch shows the end of an upstream.
// It is not for the state that a watch showed before it was interrupted. With deletion.before, nothing is deleted that
// was not backed up: the objects stay.
func (r *Reconciler) NoteDeletedWithFinalizer(last *unstructured.Unstructured) {
	if r.Pipeline.Before != nil || !marks.HasFinalizer(r.Pipeline.Settings, last) {
		return
	}
	at := metav1.NewTime(r.now())
	last.SetDeletionTimestamp(&at)
	r.lostUpstreams.Note(last, at.Time)
}

// cleanUpLost cleans up after the lost upstream of that name, if there is one. It returns false, and after how long to
// go on, if that is not finished; a new upstream of the name waits for no more than one attempt.
func (r *Reconciler) cleanUpLost(ctx context.Context, ref operator.Ref) (after time.Duration, finished bool) {
	last := r.lostUpstreams.Get(ref, r.now())
	if last == nil {
		return 0, true
	}
	finished = r.Cache.UpstreamUID(ref) != ""
	switch there, err := r.ReadUpstream(ctx, ref); {
	case err == nil && there.GetUID() == last.GetUID(): // the cluster was restored
		finished = true
	case err == nil || errors.Is(err, apply.ErrGone):
		var done bool
		after, done = r.newReconciliation(ref, last).finalizeLost(ctx)
		finished = finished || done
	default:
		after = r.readFailed(ref, err)
	}
	if finished {
		r.lostUpstreams.Forget(ref)
		return 0, true
	}
	return max(after, startOverAfter), false
}

// finalizeLost is the deletion of an upstream that is gone. done is true if there is nothing more to do for this
// process.
func (r *reconciliation) finalizeLost(ctx context.Context) (after time.Duration, done bool) {
	defer r.ReleaseSlot()
	r.IsGone = true
	acting, leave, ok := r.enterShard(ctx)
	defer leave()
	if !ok {
		return 0, true
	}
	if r.UpdateDesired(acting); r.NoSlot {
		return attempt.NoSlotDelay(), false
	}
	defer r.StartActing(acting)()
	after = r.finalize(acting)
	if done = r.finalized || r.Pipeline.Observing(); done {
		r.forget(r.Ref)
	}
	return after, done
}
