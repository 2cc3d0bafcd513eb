package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// NoteLeft takes in that the watch no longer shows the upstream of that uid, which may stand without the labels that it selects by.
func (r *Reconciler) NoteLeft(ref pipeline.Ref, uid types.UID) { r.deselected.upstream(ref, uid) }

// Leaving lists the upstreams that were seen to leave and have not been dealt with.
func (r *Reconciler) Leaving() []pipeline.Ref { return r.deselected.refs() }

// Cascades is how many upstreams it remembers the deletion of.
func (r *Reconciler) Cascades() int {
	r.cascades.mu.Lock()
	defer r.cascades.mu.Unlock()
	return len(r.cascades.seen)
}

// NoteNamespaceLeft takes in that namespaces are no longer selected, or are again.
func (r *Reconciler) NoteNamespaceLeft(left bool, names ...pipeline.Ref) {
	r.deselected.namespace(names, left)
}

// IsEcho tells whether the news of an upstream is that of our own write, which needs no work.
func (r *Reconciler) IsEcho(ref pipeline.Ref, uid types.UID, version string) bool {
	rec := r.memory.peek(ref)
	return rec != nil && rec.isEcho(uid, version)
}

// IsEchoOf is IsEcho for an object that an upstream owns.
func (r *Reconciler) IsEchoOf(ref pipeline.Ref, live *drift.Live) bool {
	rec := r.memory.peek(ref)
	return rec != nil && rec.isEchoOf(live)
}

// NoteDownstreamGone takes in that the watch no longer shows an object that an upstream owns.
func (r *Reconciler) NoteDownstreamGone(ref pipeline.Ref, uid types.UID) {
	if rec := r.memory.peek(ref); rec != nil {
		rec.dropResponse(uid)
	}
}

// ReadersOf lists the upstreams that read an object of input i, there or not.
func (r *Reconciler) ReadersOf(i int, at ...pipeline.Ref) []pipeline.Ref { return r.readers.of(i, at) }

// RetryRefused forgets which values of status fields the API server refused, since the kind may have changed, and lists the
// upstreams of a namespace, or of all where it is empty, that have some.
func (r *Reconciler) RetryRefused(namespace string) []pipeline.Ref {
	return r.unstorable.expire(namespace)
}

// OwnersOf finds the upstreams that an object's marks name. An owner keeps its name as long as it keeps its uid, so the
// name says what to look at; the reconciliation itself goes by uid, whether the upstream is in the cache or not.
func (r *Reconciler) OwnersOf(obj any) []pipeline.Ref {
	live, ok := obj.(*drift.Live)
	if !ok {
		return nil
	}
	var refs []pipeline.Ref
	up := r.Pipeline.Upstream
	for _, owner := range live.Owners {
		if owner.Kind != up.GVK.Kind {
			continue
		}
		ref := pipeline.Ref{Name: owner.Name}
		if up.Namespaced {
			ref.Namespace = live.Namespace
		}
		refs = append(refs, ref)
	}
	if ref, _, ok := pipeline.ParseOwnerMark(live.OwnerMark); ok {
		refs = append(refs, ref)
	}
	return refs
}
