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
	"k8s.io/apimachinery/pkg/util/sets"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// clusterScoped lists the built-in kinds that have no namespace; every other built-in kind has one. A test compares
// it with what an API server serves.
var clusterScoped = sets.New(
	schema.GroupKind{Kind: "ComponentStatus"},
	schema.GroupKind{Kind: "Namespace"},
	schema.GroupKind{Kind: "Node"},
	schema.GroupKind{Kind: "PersistentVolume"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	schema.GroupKind{Group: "authentication.k8s.io", Kind: "SelfSubjectReview"},
	schema.GroupKind{Group: "authentication.k8s.io", Kind: "TokenReview"},
	schema.GroupKind{Group: "authorization.k8s.io", Kind: "SelfSubjectAccessReview"},
	schema.GroupKind{Group: "authorization.k8s.io", Kind: "SelfSubjectRulesReview"},
	schema.GroupKind{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"},
	schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"},
	schema.GroupKind{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"},
	schema.GroupKind{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"},
	schema.GroupKind{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"},
	schema.GroupKind{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "IPAddress"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "ServiceCIDR"},
	schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"},
	schema.GroupKind{Group: "policy", Kind: "PodSecurityPolicy"},
	schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	schema.GroupKind{Group: "resource.k8s.io", Kind: "DeviceClass"},
	schema.GroupKind{Group: "resource.k8s.io", Kind: "DeviceTaintRule"},
	schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourcePoolStatusRequest"},
	schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceSlice"},
	schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIDriver"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "CSINode"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "VolumeAttachment"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"},
	schema.GroupKind{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"},
	schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"},
)

// unlisted are the built-in kinds whose Go types client-go does not carry.
var unlisted = []schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
}

// errNoBuiltinSchema is the SchemaErr of a built-in kind offline.
var errNoBuiltinSchema = errors.New("the schemas of built-in kinds are known from an API server only")

// builtins returns the kinds that client-go knows, without schemas. Their Go types tell which have a status, and
// every built-in kind that has one and is stored has the subresource too.
var builtins = sync.OnceValue(func() map[schema.GroupVersionKind]*Kind {
	known := map[schema.GroupVersionKind]*Kind{}
	add := func(gvk schema.GroupVersionKind, status bool) {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		known[gvk] = &Kind{GVK: gvk, GVR: plural, Namespaced: !clusterScoped.Has(gvk.GroupKind()), HasStatus: status,
			SchemaErr: errNoBuiltinSchema}
	}
	for gvk, t := range clientscheme.Scheme.AllKnownTypes() {
		if !isObject(t) {
			continue
		}
		_, status := t.FieldByName("Status")
		add(gvk, status && !isReview(gvk))
	}
	for _, gvk := range unlisted {
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

// IsBuiltin tells whether a kind is one that Kubernetes itself has, and which therefore no CustomResourceDefinition defines.
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
