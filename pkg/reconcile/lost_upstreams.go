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

// NoteDeletedWithFinalizer records the state without a deletionTimestamp in which a watch shows the end of an upstream. It is not for the state
// that a watch showed before it was interrupted. With deletion.before, nothing is deleted that was not backed up: the objects stay.
func (r *Reconciler) NoteDeletedWithFinalizer(last *unstructured.Unstructured) {
	if r.Pipeline.Before != nil || !marks.HasFinalizer(r.Pipeline.Settings, last) {
		return
	}
	now := metav1.NewTime(r.time())
	last.SetDeletionTimestamp(&now)
	r.lostUpstreams.Note(last, now.Time)
}

// cleanUpLost cleans up after the lost upstream of that name, if there is one. It returns false, and after how long to go on, if that is not
// finished; a new upstream of the name waits for no more than one attempt.
func (r *Reconciler) cleanUpLost(ctx context.Context, ref operator.Ref) (after time.Duration, finished bool) {
	last := r.lostUpstreams.Get(ref, r.time())
	if last == nil {
		return 0, true
	}
	finished = r.Cache.UpstreamUID(ref) != ""
	switch there, err := r.ReadUpstream(ctx, ref); {
	case err == nil && there.GetUID() == last.GetUID(): // the cluster was restored
		finished = true
	case err == nil || errors.Is(err, apply.ErrGone):
		var done bool
		after, done = r.finalizeLost(ctx, ref, last)
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

// finalizeLost is the deletion of an upstream that is gone. done is true if there is nothing more to do for this process.
func (r *Reconciler) finalizeLost(ctx context.Context, ref operator.Ref, last *unstructured.Unstructured) (after time.Duration, done bool) {
	l := r.newReconciliation(ref, last)
	defer l.ReleaseSlot()
	l.IsGone = true
	acting, leave, ok := l.enterShard(ctx)
	defer leave()
	if !ok {
		return 0, true
	}
	if l.UpdateDesired(acting); l.NoSlot {
		return attempt.NoSlotDelay(), false
	}
	defer l.StartActing(acting)()
	after = l.finalize(acting)
	if done = l.finalized || r.Pipeline.Observing(); done {
		r.forget(ref)
	}
	return after, done
}
