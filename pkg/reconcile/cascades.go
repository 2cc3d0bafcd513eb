package reconcile

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// cascades remembers the deletions that the watch has brought and what they asked for, by the upstream's uid: the garbage
// collector takes the finalizer that says it off within milliseconds, before a worker looks.
type cascades struct {
	mu   sync.Mutex
	seen map[types.UID]pipeline.Cascade
}

// NoteDeleting takes in an upstream that is being deleted as a watch brings it, with its finalizers.
func (r *Reconciler) NoteDeleting(uid types.UID, finalizers []string) {
	c := &r.cascades
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[types.UID]pipeline.Cascade{}
	}
	if cascade := pipeline.CascadeOf(finalizers); cascade != pipeline.CascadeConfig || c.seen[uid] == "" {
		c.seen[uid] = cascade
	}
}

// NoteUpstreamGone takes in that an upstream is gone.
func (r *Reconciler) NoteUpstreamGone(uid types.UID) { r.cascades.forget(uid) }

// forget is for an upstream that is gone.
func (c *cascades) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, uid)
}

func (c *cascades) of(uid types.UID) pipeline.Cascade {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[uid]
}

// awaitsDeletion tells whether an upstream is being deleted and its watch, which has it, has not told so yet. What an API
// request answers, or the cache shows before the event is handled, may be without what the deletion asked for.
func (r *reconciliation) awaitsDeletion() bool {
	r.cascades.mu.Lock()
	_, told := r.cascades.seen[r.upstream.GetUID()]
	r.cascades.mu.Unlock()
	if told {
		return false
	}
	return r.Cache.UpstreamUID(r.ref) == r.upstream.GetUID()
}

// cascade is what the deletion of the upstream asks for.
func (r *reconciliation) cascade() pipeline.Cascade {
	if c := pipeline.CascadeOf(r.upstream.GetFinalizers()); c != pipeline.CascadeConfig {
		return c
	}
	return r.cascades.of(r.upstream.GetUID())
}

// propagation is how the downstreams of an upstream are deleted.
func (r *reconciliation) propagation() metav1.DeletionPropagation {
	if r.upstream.GetDeletionTimestamp() != nil && r.cascade() == pipeline.CascadeForeground {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletionPropagation(r.Pipeline.Config.Deletion.Propagation)
}

// mayBeCollected tells whether what is to be done may be about an upstream that is gone, so that it is read first. The
// garbage collector's work may be heard of before the upstream's deletion: what it deleted would be made again, a Job run
// again; and an owner reference that it took off with --cascade=orphan would, once given again, have the object deleted.
func (r *reconciliation) mayBeCollected(d *pipeline.Decision) bool {
	return slices.ContainsFunc(d.Outcomes, func(o pipeline.Outcome) bool {
		switch {
		case !r.record.desired.Downstreams[o.Downstream].Reference || o.Theirs:
			return false
		case o.Action == pipeline.ActionCreate: // with our finalizer it is not gone
			return !r.hasFinalizer() && r.record.targets[o.Downstream].uid != ""
		}
		return o.Action == pipeline.ActionApply && o.Live != nil && !pipeline.Marked(o.Live, r.upstream.GetUID())
	})
}
