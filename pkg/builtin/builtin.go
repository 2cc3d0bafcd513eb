// Package builtin lists the kinds of Kubernetes itself, and their scope. It knows no custom kinds, schemas or versions.
package builtin

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// clusterScoped lists the built-in kinds that have no namespace; every other built-in kind has one. A test compares the
// list with discovery.
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

// Unlisted are the built-in kinds that have no Go type in client-go.
var Unlisted = []schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
}

var kinds = sync.OnceValue(func() sets.Set[schema.GroupKind] {
	known := sets.New[schema.GroupKind]()
	for gvk := range clientscheme.Scheme.AllKnownTypes() {
		known.Insert(gvk.GroupKind())
	}
	for _, gvk := range Unlisted {
		known.Insert(gvk.GroupKind())
	}
	return known
})

// Scope reports whether a built-in kind is namespaced; known is false for any other kind.
func Scope(kind schema.GroupKind) (namespaced, known bool) {
	if !kinds().Has(kind) {
		return false, false
	}
	return !clusterScoped.Has(kind), true
}
