package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Watch selects the upstreams.
type Watch struct {
	// APIVersion of the upstream kind: GROUP/VERSION, or v1 for the core group.
	APIVersion string `json:"apiVersion" form:"apiVersion"`
	// Kind of the upstreams.
	Kind string `json:"kind" form:"kind"`
	// Namespaces to watch. Default: all.
	Namespaces []string `json:"namespaces,omitempty" form:"dnsLabel" min:"1" unique:"true"`
	// LabelSelector selects upstreams by their labels; the API server applies it.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// NamespaceSelector selects upstreams by the labels of their namespace.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// MatchConditions select upstreams by anything in them: each must be true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`
	// Schema describes the kind: corollary generate crd prints its CustomResourceDefinition, and no file with one is
	// needed.
	Schema *KindSchema `json:"schema,omitempty"`
	// Acknowledged are fields, such as .spec.owner, of which check says neither that nothing reads them nor that only one
	// of several downstreams does. What is below such a field is acknowledged, too.
	Acknowledged []string `json:"acknowledged,omitempty" form:"path" unique:"true"`
}

// KindSchema describes a kind in SimpleSchema, the notation of kro.
type KindSchema struct {
	// Spec has the fields of .spec: a type with markers, such as integer | default=1 minimum=1, or a map of fields.
	Spec map[string]any `json:"spec"`
	// Types are types for fields, written as those of spec.
	Types map[string]any `json:"types,omitempty" form:"schemaName"`
	// Scope is Namespaced (default) or Cluster.
	Scope Scope `json:"scope,omitempty"`
	// Plural is the name of the resource. Default: the regular plural of the kind.
	Plural string `json:"plural,omitempty" form:"resource"`
	// ShortNames are shorter names for kubectl.
	ShortNames []string `json:"shortNames,omitempty" form:"resource" min:"1" unique:"true"`
}

// MatchCondition is a condition that an object must meet to be an upstream, as in a ValidatingAdmissionPolicy.
type MatchCondition struct {
	// Name of the condition, unique among those of the watch.
	Name string `json:"name"`
	// Expression is a CEL expression over self, whose result is a bool.
	Expression string `json:"expression" holds:"cel"`
}

// GVK is the watched kind.
func (w *Watch) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(w.APIVersion, w.Kind)
}
