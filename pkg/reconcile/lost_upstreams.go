package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// lostUpstreams are upstreams that were deleted with the finalizer on them, and without a deletionTimestamp: an API server that deletes an
// upstream at the moment that its finalizer is added may not see that. What was made for them is cleaned up as if they had waited for it.
type lostUpstreams struct {
	mu sync.Mutex
	by map[operator.Ref]lostUpstream
	// added has the upstreams that got the finalizer since begun, and before those of the time before that.
	added, before map[types.UID]struct{}
	begun         time.Time
}

// lostUpstream is the last state of an upstream that is gone, and when its watch showed that.
type lostUpstream struct {
	last *unstructured.Unstructured
	at   time.Time
}

const (
	// lostFor is how long a deletion counts as one that came together with the finalizer, and how long cleaning up is tried. Later, the
	// objects stay; if another upstream wants their names, its status says so.
	lostFor  = time.Minute
	mostLost = 1000
)

// noteFinalizer records that an upstream is about to get the finalizer.
func (l *lostUpstreams) noteFinalizer(uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.begun) > lostFor {
		l.added, l.before, l.begun = map[types.UID]struct{}{}, l.added, now
	}
	l.added[uid] = struct{}{}
}

// note records an upstream that is gone, if it got the finalizer a short time ago.
func (l *lostUpstreams) note(last *unstructured.Unstructured, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.added[last.GetUID()]
	if _, before := l.before[last.GetUID()]; !ok && !before || len(l.by) >= mostLost {
		return
	}
	if l.by == nil {
		l.by = map[operator.Ref]lostUpstream{}
	}
	l.by[operator.Ref{Namespace: last.GetNamespace(), Name: last.GetName()}] = lostUpstream{last, now}
}

// get is the last state of the lost upstream of that name; nil for none.
func (l *lostUpstreams) get(ref operator.Ref, now time.Time) *unstructured.Unstructured {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lost, ok := l.by[ref]; ok && now.Sub(lost.at) <= lostFor {
		return lost.last
	}
	delete(l.by, ref)
	return nil
}

func (l *lostUpstreams) forget(ref operator.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, ref)
}

// NoteDeletedWithFinalizer records the state without a deletionTimestamp in which a watch shows the end of an upstream. It is not for the state
// that a watch showed before it was interrupted. With deletion.before, nothing is deleted that was not backed up: the objects stay.
func (r *Reconciler) NoteDeletedWithFinalizer(last *unstructured.Unstructured) {
	if r.Pipeline.Before != nil || !marks.HasFinalizer(r.Pipeline.Settings, last) {
		return
	}
	now := metav1.NewTime(r.time())
	last.SetDeletionTimestamp(&now)
	r.lostUpstreams.note(last, now.Time)
}

// cleanUpLost cleans up after the lost upstream of that name, if there is one. It returns false, and after how long to go on, if that is not
// finished; a new upstream of the name waits for no more than one attempt.
func (r *Reconciler) cleanUpLost(ctx context.Context, ref operator.Ref) (after time.Duration, finished bool) {
	last := r.lostUpstreams.get(ref, r.time())
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
		r.lostUpstreams.forget(ref)
		return 0, true
	}
	return max(after, startOverAfter), false
}

// finalizeLost is the deletion of an upstream that is gone. done is true if there is nothing more to do for this process.
func (r *Reconciler) finalizeLost(ctx context.Context, ref operator.Ref, last *unstructured.Unstructured) (after time.Duration, done bool) {
	l := r.newReconciliation(ref, last)
	defer l.releaseSlot()
	l.IsGone = true
	acting, leave, ok := l.enterShard(ctx)
	defer leave()
	if !ok {
		return 0, true
	}
	if l.updateDesired(acting); l.noSlot {
		return noSlotDelay(), false
	}
	defer l.startActing(acting)()
	after = l.finalize(acting)
	if done = l.finalized || r.Pipeline.Observing(); done {
		r.forget(ref)
	}
	return after, done
}
