package reconcile

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// unfinalized are upstreams that were deleted with the finalizer on them and without a deletionTimestamp: an API server that deletes one at
// the moment that its finalizer is added may not see it. What was made for them is cleaned up as if they had waited for that.
type unfinalized struct {
	mu sync.Mutex
	by map[pipeline.Ref]*unstructured.Unstructured
}

// mostUnfinalized is how many are kept, until they are reconciled. The objects of others stay, and are reported if another upstream wants their
// names.
const mostUnfinalized = 1000

// NoteDeleted records the last state of an upstream that a watch shows deleted. A state that was seen before an interruption is not the last.
func (r *Reconciler) NoteDeleted(up *unstructured.Unstructured) {
	l := &reconciliation{Reconciler: r, upstream: up}
	if up.GetDeletionTimestamp() != nil || !l.hasFinalizer() {
		return
	}
	now := metav1.Now()
	up.SetDeletionTimestamp(&now)
	u := &r.unfinalized
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		u.by = map[pipeline.Ref]*unstructured.Unstructured{}
	}
	if len(u.by) < mostUnfinalized {
		u.by[pipeline.Ref{Namespace: up.GetNamespace(), Name: up.GetName()}] = up
	}
}

func (u *unfinalized) get(ref pipeline.Ref) *unstructured.Unstructured {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.by[ref]
}

func (u *unfinalized) forget(ref pipeline.Ref) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.by, ref)
}

// cleanUp cleans up after the unfinalized upstream of that name, if there is one. It is done before a later upstream of the name is looked at.
// It returns after how long to go on; done is true if nothing is left to do.
func (r *Reconciler) cleanUp(ctx context.Context, ref pipeline.Ref) (after time.Duration, done bool) {
	up := r.unfinalized.get(ref)
	if up == nil {
		return 0, true
	}
	l := r.newReconciliation(ref, up)
	defer l.releaseSlot()
	l.gone = true
	acting, leave, ok := l.enterShard(ctx)
	defer leave()
	if ok {
		l.updateDesired(acting)
		after = l.finalize(acting)
	}
	if !ok || l.finalized || r.Pipeline.Observing() {
		r.unfinalized.forget(ref)
		r.forget(ref)
		return 0, true
	}
	return after, false
}
