package kinds

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/corollary-dev/corollary/pkg/builtin"
)

// errNotRead is the SchemaErr of a built-in kind whose schema was not requested.
var errNotRead = errors.New("the schema was not read")

// builtins returns the kinds of client-go, without schemas. Their Go types show which have a status; every built-in
// kind that has one and is stored also has the subresource.
var builtins = sync.OnceValue(func() map[schema.GroupVersionKind]*Kind {
	known := map[schema.GroupVersionKind]*Kind{}
	add := func(gvk schema.GroupVersionKind, status bool) {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		namespaced, _ := builtin.Scope(gvk.GroupKind())
		known[gvk] = &Kind{GVK: gvk, GVR: plural, Namespaced: namespaced, HasStatus: status,
			SchemaErr: errNotRead}
	}
	for gvk, t := range clientscheme.Scheme.AllKnownTypes() {
		if !isObject(t) {
			continue
		}
		_, status := t.FieldByName("Status")
		add(gvk, status && !isReview(gvk))
	}
	for _, gvk := range builtin.Unlisted {
		add(gvk, true)
	}
	return known
})

// Builtins returns the built-in kinds in all versions, sorted by group, kind and version, without schemas.
func Builtins() []*Kind {
	return slices.SortedFunc(maps.Values(builtins()), func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(a.GVK.Group, b.GVK.Group), cmp.Compare(a.GVK.Kind, b.GVK.Kind),
			cmp.Compare(a.GVK.Version, b.GVK.Version))
	})
}

// IsBuiltin reports whether Kubernetes itself has a kind, so that no CustomResourceDefinition defines it.
func IsBuiltin(kind schema.GroupKind) bool {
	for gvk := range builtins() {
		if gvk.GroupKind() == kind {
			return true
		}
	}
	return false
}

// isObject reports whether a type is an object, not a list, options or an event type of the scheme.
func isObject(t reflect.Type) bool {
	_, ok := reflect.New(t).Interface().(metav1.ObjectMetaAccessor)
	return ok
}

// isReview reports whether a kind is a query of the API server: it has a status, but is not stored.
func isReview(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "authentication.k8s.io" || gvk.Group == "authorization.k8s.io" ||
		gvk.Kind == "Eviction" || gvk.Kind == "Scale"
}

// IsCustom reports whether a CustomResourceDefinition defines the kind. It can change while a process runs.
func (k Kind) IsCustom() bool { return !IsBuiltin(k.GVK.GroupKind()) }
