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

// errNotRead is the SchemaErr of a built-in kind whose schema was not asked for.
var errNotRead = errors.New("the schema was not read")

// builtins returns the kinds that client-go knows, without schemas. Their Go types tell which have a status, and
// every built-in kind that has one and is stored has the subresource too.
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

// Builtins returns the kinds that Kubernetes itself has, at all their versions, in the order of group, kind and version.
// Their schemas are not among it.
func Builtins() []*Kind {
	return slices.SortedFunc(maps.Values(builtins()), func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(a.GVK.Group, b.GVK.Group), cmp.Compare(a.GVK.Kind, b.GVK.Kind), cmp.Compare(a.GVK.Version, b.GVK.Version))
	})
}

// IsBuiltin reports whether a kind is one that Kubernetes itself has, and which therefore no CustomResourceDefinition defines.
func IsBuiltin(kind schema.GroupKind) bool {
	for gvk := range builtins() {
		if gvk.GroupKind() == kind {
			return true
		}
	}
	return false
}

// isObject tells an object's type from the lists, options and events that a scheme registers beside them.
func isObject(t reflect.Type) bool {
	_, ok := reflect.New(t).Interface().(metav1.ObjectMetaAccessor)
	return ok
}

// isReview tells the kinds that are questions to the API server: they carry a status, but nothing is stored.
func isReview(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "authentication.k8s.io" || gvk.Group == "authorization.k8s.io" ||
		gvk.Kind == "Eviction" || gvk.Kind == "Scale"
}

// IsCustom reports whether the kind comes from a CustomResourceDefinition, which can change while a process runs.
func (k Kind) IsCustom() bool { return !IsBuiltin(k.GVK.GroupKind()) }
