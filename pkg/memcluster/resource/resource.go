// Package resource knows the objects of one served version of a kind: how they are read, prepared, validated, defaulted
// and written, and which fields managers own. It has no objects.
package resource

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Resource is one served version of a kind.
type Resource struct {
	kinds.Kind
	Singular, List string
	Short          []string         // the short names
	Categories     []string         // such as all, of kubectl get all
	Custom         *kinds.Version   // nil for a built-in kind
	versions       []*kinds.Version // the versions of a custom kind, served or not
	columns        []apiextensionsv1.CustomResourceColumnDefinition
	// Redefined is the resourceVersion of the last change of a custom kind's definition; 0 if there was none
	Redefined uint64
	// managers are the field managers by subresource, created on first use.
	managers map[string]*managedfields.FieldManager
}

// DefinitionsResource is that of CustomResourceDefinitions.
var DefinitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// BuiltinResources returns the built-in kinds that an API server serves by default.
func BuiltinResources() map[schema.GroupVersionResource]*Resource {
	served := map[schema.GroupVersionResource]*Resource{}
	for _, k := range kinds.Builtins() {
		if !kinds.ServedByDefault(k.GVK) || notStored.Has(k.GVK.Kind) || k.GVK.Group == "apiregistration.k8s.io" {
			continue
		}
		r := &Resource{Kind: *k, List: k.GVK.Kind + "List", Short: shortNames[k.GVR.GroupResource().String()],
			managers: map[string]*managedfields.FieldManager{}}
		if inAll.Has(k.GVK.Kind) {
			r.Categories = []string{"all"}
		}
		served[k.GVR] = r
	}
	return served
}

// notStored are kinds that are only sent to subresources, or are in no request.
var notStored = sets.New("Binding", "ComponentStatus", "Eviction", "PodStatusResult", "RangeAllocation",
	"Scale", "SerializedReference",
	"TokenRequest")

// IsReview reports whether an object is a question that is answered and not stored.
func (r *Resource) IsReview() bool {
	return r.GVK.Group == "authentication.k8s.io" || r.GVK.Group == "authorization.k8s.io"
}

// shortNames are the short names of built-in resources, by resource and group; TestBuiltinKinds compares them with an
// API server.
var shortNames = map[string][]string{
	"certificatesigningrequests.certificates.k8s.io": {"csr"}, "configmaps": {"cm"}, "cronjobs.batch": {"cj"},
	"customresourcedefinitions.apiextensions.k8s.io": {"crd", "crds"}, "daemonsets.apps": {"ds"},
	"deployments.apps": {"deploy"},
	"endpoints":        {"ep"}, "events": {"ev"}, "events.events.k8s.io": {"ev"},
	"horizontalpodautoscalers.autoscaling": {"hpa"},
	"ingresses.networking.k8s.io":          {"ing"}, "ipaddresses.networking.k8s.io": {"ip"},
	"limitranges": {"limits"}, "namespaces": {"ns"},
	"networkpolicies.networking.k8s.io": {"netpol"}, "nodes": {"no"}, "persistentvolumeclaims": {"pvc"},
	"persistentvolumes":           {"pv"},
	"poddisruptionbudgets.policy": {"pdb"}, "pods": {"po"},
	"priorityclasses.scheduling.k8s.io": {"pc"}, "replicasets.apps": {"rs"},
	"replicationcontrollers": {"rc"}, "resourcequotas": {"quota"}, "serviceaccounts": {"sa"}, "services": {"svc"},
	"statefulsets.apps": {"sts"}, "storageclasses.storage.k8s.io": {"sc"},
	"volumeattributesclasses.storage.k8s.io": {"vac"},
}

// inAll are the built-in kinds that kubectl get all shows.
var inAll = sets.New("CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job", "Pod", "ReplicaSet",
	"ReplicationController", "Service", "StatefulSet")

// AsksForRights reports whether objects are questions of a user for its own rights.
func (r *Resource) AsksForRights() bool {
	return r.IsReview() && r.GVK.Kind == "SelfSubjectAccessReview"
}

// ReadSchema returns the kind's OpenAPI schema.
func (r *Resource) ReadSchema() (*spec.Schema, error) {
	if r.Custom != nil {
		return r.Schema, nil
	}
	return kinds.BuiltinSchema(r.GVK)
}

// withGeneration are the built-in kinds whose objects have a metadata.generation.
var withGeneration = sets.New("CronJob", "CustomResourceDefinition", "DaemonSet", "Deployment",
	"DeviceClass", "DeviceTaintRule",
	"EndpointSlice", "FlowSchema", "Ingress", "IngressClass", "Job", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding",
	"MutatingWebhookConfiguration", "NetworkPolicy", "Pod", "PodDisruptionBudget", "PodTemplate", "PriorityClass",
	"PriorityLevelConfiguration", "ReplicaSet", "ReplicationController", "ResourceSlice", "StatefulSet",
	"ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration")

// HasGeneration reports whether the API server counts the generations of the objects.
func (r *Resource) HasGeneration() bool { return r.Custom != nil || withGeneration.Has(r.GVK.Kind) }

// updatedByVersion are the built-in kinds whose updates must contain a resourceVersion.
var updatedByVersion = sets.New("CSIDriver", "CSINode", "CSIStorageCapacity", "ClusterTrustBundle",
	"CustomResourceDefinition", "Lease",
	"LeaseCandidate", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
	"MutatingWebhookConfiguration", "PodDisruptionBudget",
	"RuntimeClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"ValidatingWebhookConfiguration", "VolumeAttachment")

// RequiresVersion reports whether an update must have a resourceVersion.
func (r *Resource) RequiresVersion() bool { return r.Custom != nil || updatedByVersion.Has(r.GVK.Kind) }

// ReturnedOnDelete are the built-in kinds whose deletion returns the object, not a Status.
var ReturnedOnDelete = sets.New("CSIDriver", "CSINode", "DeviceClass", "DeviceTaintRule",
	"Namespace", "PersistentVolume",
	"PersistentVolumeClaim", "Pod", "PodTemplate", "ResourceClaim", "ResourceClaimTemplate", "ResourceQuota",
	"ResourceSlice", "Service", "ServiceAccount",
	"StorageClass", "VolumeAttachment", "VolumeAttributesClass")

// orphansByDefault reports whether a deletion without a propagation policy orphans the dependents.
func (r *Resource) orphansByDefault() bool {
	return r.GVK == schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"} ||
		r.GVK == schema.GroupVersionKind{Version: "v1", Kind: "ReplicationController"}
}

// FieldManager returns the field manager for writes to the object or to a subresource.
func (r *Resource) FieldManager(sub string) (*managedfields.FieldManager, error) {
	if m := r.managers[sub]; m != nil {
		return m, nil
	}
	types, err := r.types()
	if err != nil {
		return nil, err
	}
	newManager := managedfields.NewDefaultFieldManager
	if r.Custom != nil {
		newManager = managedfields.NewDefaultCRDFieldManager
	}
	converter := unconverted{r.versions}
	m, err := newManager(types, converter, converter, r, r.GVK, r.GVK.GroupVersion(), sub, r.resetFields(sub))
	if err != nil {
		return nil, err
	}
	r.managers[sub] = m
	return m, nil
}

// New implements runtime.ObjectCreater.
func (r *Resource) New(schema.GroupVersionKind) (runtime.Object, error) { return r.Blank() }

// resetFields returns the fields that a write to the object, or to its status, does not change, so that it owns none of
// them.
func (r *Resource) resetFields(sub string) map[fieldpath.APIVersion]fieldpath.Filter {
	var reset *fieldpath.Set
	switch {
	case !r.HasStatus:
		return nil
	case sub == "":
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	case r.Custom != nil:
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	default:
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "labels"), fieldpath.MakePathOrDie("spec"))
	}
	sets := map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(r.GVK.GroupVersion().String()): reset}
	for _, v := range r.versions {
		sets[fieldpath.APIVersion(schema.GroupVersion{Group: r.GVK.Group, Version: v.Name}.String())] = reset
	}
	return fieldpath.NewExcludeFilterSetMap(sets)
}

// TypeMeta is apiVersion and kind of the objects.
func (r *Resource) TypeMeta() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: r.GVK.GroupVersion().String(), Kind: r.GVK.Kind}
}
