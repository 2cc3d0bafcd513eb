package marks

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// UpstreamsOf returns the upstreams in an object's owner marks; none of nil. An owner keeps its name as long as it
// keeps its uid, so the name is enough to enqueue it; the reconciliation itself goes by uid.
func UpstreamsOf(s *operator.Settings, live *drift.Live) []operator.Ref {
	if live == nil {
		return nil
	}
	var refs []operator.Ref
	up := s.Upstream
	for _, owner := range live.Owners {
		if owner.Kind != up.GVK.Kind {
			continue
		}
		ref := operator.Ref{Name: owner.Name}
		if up.Namespaced {
			ref.Namespace = live.Namespace
		}
		refs = append(refs, ref)
	}
	if ref, _, ok := ParseOwnerMark(live.OwnerMark); ok {
		refs = append(refs, ref)
	}
	return refs
}

// UIDOf is the uid of the upstream of that name in an object's owner marks; empty for none.
func UIDOf(s *operator.Settings, ref operator.Ref, live *drift.Live) types.UID {
	for _, owner := range live.Owners {
		if owner.Kind == s.Upstream.GVK.Kind && owner.Name == ref.Name {
			return owner.UID
		}
	}
	_, uid, _ := ParseOwnerMark(live.OwnerMark)
	return types.UID(uid)
}

// HasFinalizer reports whether an upstream has the config's finalizer, current or previous.
func HasFinalizer(s *operator.Settings, upstream *unstructured.Unstructured) bool {
	f := s.Config.Conventions.Finalizer
	return f != "" && slices.Contains(upstream.GetFinalizers(), f) || HasPreviousFinalizer(s, upstream)
}

// HasManager reports whether the API server records a write of this operator to an object.
func HasManager(s *operator.Settings, obj *unstructured.Unstructured) bool {
	managers := s.Config.Conventions.FieldManagers()
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return slices.Contains(managers, e.Manager)
	})
}

// HasPreviousFinalizer reports whether it has the one of conventions.previous.
func HasPreviousFinalizer(s *operator.Settings, upstream *unstructured.Unstructured) bool {
	f := PreviousFinalizer(s)
	return f != "" && slices.Contains(upstream.GetFinalizers(), f)
}

// HasOurs reports whether an object has the hash or the finalizer of this operator, as every object that it creates
// before a deletion has from the start.
func HasOurs(s *operator.Settings, obj *unstructured.Unstructured) bool {
	held := func(name string) bool { return slices.Contains(s.Config.Conventions.Finalizers(), name) }
	return HasHash(s, obj) || slices.ContainsFunc(obj.GetFinalizers(), held)
}
