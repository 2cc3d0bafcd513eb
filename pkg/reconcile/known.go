package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// Left takes in that the watch no longer shows the upstream of that uid, which may stand without the labels that it selects by.
func (s *Reconciler) Left(ref pipeline.Ref, uid types.UID) { s.deselected.upstream(ref, uid) }

// Leaving lists the upstreams that were seen to leave and have not been dealt with.
func (s *Reconciler) Leaving() []pipeline.Ref { return s.deselected.refs() }

// Cascades is how many upstreams it remembers the deletion of.
func (s *Reconciler) Cascades() int {
	s.cascades.mu.Lock()
	defer s.cascades.mu.Unlock()
	return len(s.cascades.seen)
}

// NamespaceLeft takes in that namespaces are no longer selected, or are again.
func (s *Reconciler) NamespaceLeft(left bool, names ...pipeline.Ref) {
	s.deselected.namespace(names, left)
}

// IsEcho tells whether the news of an upstream is that of our own write, which needs no work.
func (s *Reconciler) IsEcho(ref pipeline.Ref, uid types.UID, version string) bool {
	r := s.memory.peek(ref)
	return r != nil && r.isEcho(uid, version)
}

// IsEchoOf is IsEcho for an object that an upstream owns.
func (s *Reconciler) IsEchoOf(ref pipeline.Ref, live *drift.Live) bool {
	r := s.memory.peek(ref)
	return r != nil && r.isEchoOf(live)
}

// Drop takes in that the watch no longer shows an object that an upstream owns.
func (s *Reconciler) Drop(ref pipeline.Ref, uid types.UID) {
	if r := s.memory.peek(ref); r != nil {
		r.drop(uid)
	}
}

// ReadersOf lists the upstreams that read an object of input i, there or not.
func (s *Reconciler) ReadersOf(i int, at ...pipeline.Ref) []pipeline.Ref { return s.readers.of(i, at) }

// RetryRefused forgets which values of status fields the API server refused, since the kind may have changed, and lists the
// upstreams of a namespace, or of all where it is empty, that have some.
func (s *Reconciler) RetryRefused(namespace string) []pipeline.Ref {
	return s.unstorable.expire(namespace)
}

// OwnersOf finds the upstreams that an object's marks name. An owner keeps its name as long as it keeps its uid, so the
// name says what to look at; the reconciliation itself goes by uid, whether the upstream is in the cache or not.
func (s *Reconciler) OwnersOf(obj any) []pipeline.Ref {
	live, ok := obj.(*drift.Live)
	if !ok {
		return nil
	}
	var refs []pipeline.Ref
	up := s.Pipeline.Upstream
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
