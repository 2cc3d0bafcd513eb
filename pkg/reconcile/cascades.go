package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// cascades remembers, by the upstream's uid, what the deletions that the watch has shown ask for: the garbage collector removes
// the finalizer that says it within milliseconds, before a worker reconciles.
type cascades struct {
	mu   sync.Mutex
	seen map[types.UID]operator.Cascade
}

// NoteDeleting records an upstream that is being deleted, with its finalizers, as the watch shows it.
func (r *Reconciler) NoteDeleting(uid types.UID, finalizers []string) {
	c := &r.cascades
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[types.UID]operator.Cascade{}
	}
	if cascade := operator.CascadeOf(finalizers); cascade != operator.CascadeConfig || c.seen[uid] == "" {
		c.seen[uid] = cascade
	}
}

// NoteUpstreamGone records that an upstream is gone.
func (r *Reconciler) NoteUpstreamGone(uid types.UID) { r.cascades.forget(uid) }

// forget is for an upstream that is gone.
func (c *cascades) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, uid)
}

// forgetAll is for upstreams that the watch does not show any more.
func (c *cascades) forgetAll(gone func(types.UID) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.seen, func(uid types.UID, _ operator.Cascade) bool { return gone(uid) })
}

// inherit takes over what another one has seen, and does not have any more.
func (c *cascades) inherit(from *cascades) {
	from.mu.Lock()
	seen := maps.Clone(from.seen)
	from.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, cascade := range seen {
		if c.seen == nil {
			c.seen = map[types.UID]operator.Cascade{}
		}
		c.seen[uid] = cmp.Or(c.seen[uid], cascade)
	}
}

func (c *cascades) of(uid types.UID) operator.Cascade {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[uid]
}

// watchLagsDeletion reports whether an upstream is being deleted and its watch, which has it, has not shown that yet. A
// response, or the cache before the event is handled, may lack what the deletion asks for.
func (r *reconciliation) watchLagsDeletion() bool {
	r.cascades.mu.Lock()
	_, told := r.cascades.seen[r.upstream.GetUID()]
	r.cascades.mu.Unlock()
	if told {
		return false
	}
	return r.Cache.UpstreamUID(r.ref) == r.upstream.GetUID()
}

// cascade is what the deletion of the upstream asks for.
func (r *reconciliation) cascade() operator.Cascade {
	if c := operator.CascadeOf(r.upstream.GetFinalizers()); c != operator.CascadeConfig {
		return c
	}
	if c := r.cascades.of(r.upstream.GetUID()); c != operator.CascadeConfig {
		return c
	}
	return decide.RecordedCascade(r.Pipeline.Settings, r.upstream)
}

// propagation is how the downstreams of an upstream are deleted.
func (r *reconciliation) propagation() metav1.DeletionPropagation {
	if r.upstream.GetDeletionTimestamp() != nil && r.cascade() == operator.CascadeForeground {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletionPropagation(r.Pipeline.Config.Deletion.Propagation)
}

// mayBeCollected reports whether the upstream must be read before a decision is carried out, because it may be gone. The events
// of the garbage collector's work may come before that of the upstream's deletion: what it deleted would be created again, a
// Job run again; and an owner reference that it removed with --cascade=orphan would, once set again, have the object deleted.
func (r *reconciliation) mayBeCollected(d *operator.Decision) bool {
	return slices.ContainsFunc(d.Outcomes, func(o operator.Outcome) bool {
		switch {
		case !r.record.desired.Objects[o.Object].Reference || o.Theirs:
			return false
		case o.Action == operator.ActionCreate: // with our finalizer it is not gone
			return !r.hasFinalizer() && r.record.objects[o.Object].uid != ""
		}
		return o.Action == operator.ActionApply && o.Live != nil && !marks.Marked(o.Live, r.upstream.GetUID())
	})
}
