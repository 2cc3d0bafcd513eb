package config

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// APIVersion and Kind are what a config file says of itself.
const (
	APIVersion = "corollary.dev/v1alpha1"
	Kind       = "Operator"
)

// Mode says whether an operator may write.
type Mode string

// Modes.
const (
	ModeEnforce Mode = "Enforce"
	ModeObserve Mode = "Observe"
)

// Operator is one config file: the upstream kind, what makes an upstream valid, the downstreams that follow
// from it, and every name that ends up in the cluster.
type Operator struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Mode       Mode     `json:"mode,omitempty"`

	Watch           Watch          `json:"watch"`
	Parameters      map[string]any `json:"parameters,omitempty"`
	Inputs          []Input        `json:"inputs,omitempty"`
	Validate        []Rule         `json:"validate,omitempty"`
	Downstreams     []Downstream   `json:"downstreams"`
	Delimiters      []string       `json:"delimiters,omitempty"` // left, right; default {{ and }}
	ConventionsFile string         `json:"conventionsFile,omitempty"`
	Conventions     Conventions    `json:"conventions"`
	Deletion        Deletion       `json:"deletion,omitempty"`
	Status          Status         `json:"status"`
	Guard           *Guard         `json:"guard,omitempty"`
	Events          EventPolicy    `json:"events,omitempty"`
	Retry           Retry          `json:"retry,omitempty"`
	ResyncPeriod    Duration       `json:"resyncPeriod,omitempty"`
}

type Metadata struct {
	Name string `json:"name"`
}

type Watch struct {
	APIVersion        string                `json:"apiVersion"`
	Kind              string                `json:"kind"`
	Namespaces        []string              `json:"namespaces,omitempty"` // nil: all
	LabelSelector     *metav1.LabelSelector `json:"labelSelector,omitempty"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

type Input struct {
	Name       string `json:"name"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	ObjectName string `json:"objectName,omitempty"`
	FixedName  string `json:"fixedName,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Missing    string `json:"missing,omitempty"` // Wait | Allow
}

// Rule is a validation rule in the dialect of CRD x-kubernetes-validations.
type Rule struct {
	Rule              string `json:"rule"`
	Message           string `json:"message,omitempty"`
	MessageExpression string `json:"messageExpression,omitempty"`
	FieldPath         string `json:"fieldPath,omitempty"`
	Reason            string `json:"reason,omitempty"` // FieldValueInvalid | FieldValueForbidden | FieldValueRequired | FieldValueDuplicate
}

type Downstream struct {
	Name             string           `json:"name"`
	APIVersion       string           `json:"apiVersion"`
	Kind             string           `json:"kind"`
	When             string           `json:"when,omitempty"`
	Template         string           `json:"template,omitempty"`
	TemplateFile     string           `json:"templateFile,omitempty"` // the loader reads it into Template and keeps the name here
	Ready            Ready            `json:"ready,omitempty"`
	TargetNamespaces TargetNamespaces `json:"targetNamespaces,omitempty"`
	AdoptionPolicy   AdoptionPolicy   `json:"adoptionPolicy,omitempty"`
	UpdatePolicy     UpdatePolicy     `json:"updatePolicy,omitempty"`
	DeletionPolicy   DeletionPolicy   `json:"deletionPolicy,omitempty"`
	Drift            Drift            `json:"drift,omitempty"`
}

type Ready struct {
	Rules       []ReadyRule `json:"rules,omitempty"`
	Failed      []ReadyRule `json:"failed,omitempty"`
	MessageFrom string      `json:"messageFrom,omitempty"`
}

type ReadyRule struct {
	Rule    string `json:"rule"`
	Message string `json:"message,omitempty"`
}

type TargetNamespaces struct {
	From  NamespacesFrom `json:"from,omitempty"` // Same (default) | Any | List
	Names []string       `json:"names,omitempty"`
}

type NamespacesFrom string
type AdoptionPolicy string
type UpdatePolicy string
type DeletionPolicy string
type DriftPolicy string
type EventPolicy string
type HashAlgorithm string
type Propagation string

const (
	NamespacesSame NamespacesFrom = "Same"
	NamespacesAny  NamespacesFrom = "Any"
	NamespacesList NamespacesFrom = "List"

	AdoptNever     AdoptionPolicy = "Never"
	AdoptIfUnowned AdoptionPolicy = "IfUnowned"

	UpdateApply      UpdatePolicy = "Apply"
	UpdateRecreate   UpdatePolicy = "Recreate"
	UpdateCreateOnly UpdatePolicy = "CreateOnly"

	DeletionDelete DeletionPolicy = "Delete"
	DeletionOrphan DeletionPolicy = "Orphan"

	DriftEnforce DriftPolicy = "Enforce"
	DriftReport  DriftPolicy = "Report"
	DriftIgnore  DriftPolicy = "Ignore"

	EventsAll      EventPolicy = "All"
	EventsWarnings EventPolicy = "Warnings"
	EventsNone     EventPolicy = "None"

	SHA256 HashAlgorithm = "sha256"
	SHA1   HashAlgorithm = "sha1"
	MD5    HashAlgorithm = "md5"

	PropagationBackground Propagation = "Background"
	PropagationForeground Propagation = "Foreground"
)

type Drift struct {
	Policy          DriftPolicy `json:"policy,omitempty"`
	InitialFields   []string    `json:"initialFields,omitempty"`   // fieldpath syntax
	ExclusiveFields []string    `json:"exclusiveFields,omitempty"` // fieldpath syntax
}

// Conventions are the names that end up in the cluster. None of them has a default.
type Conventions struct {
	FieldManager string            `json:"fieldManager"`
	Labels       map[string]string `json:"labels,omitempty"`      // values are templates
	Annotations  map[string]string `json:"annotations,omitempty"` // values are templates
	Hash         Hash              `json:"hash"`
	Owner        Owner             `json:"owner"`
	Finalizer    string            `json:"finalizer,omitempty"`
	Pause        *Pause            `json:"pause,omitempty"`
}

type Hash struct {
	Annotation string        `json:"annotation,omitempty"`
	Label      string        `json:"label,omitempty"`
	Algorithm  HashAlgorithm `json:"algorithm,omitempty"`
}

type Owner struct {
	Reference  *bool  `json:"reference,omitempty"` // default true
	Annotation string `json:"annotation,omitempty"`
}

type Pause struct {
	Annotation string `json:"annotation"`
}

type Deletion struct {
	Propagation Propagation `json:"propagation,omitempty"`
	Wait        bool        `json:"wait,omitempty"`
	Before      *Before     `json:"before,omitempty"`
}

type Before struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Template   string   `json:"template,omitempty"`
	DoneWhen   string   `json:"doneWhen"`
	FailedWhen string   `json:"failedWhen,omitempty"`
	Timeout    Duration `json:"timeout,omitempty"`
	OnTimeout  string   `json:"onTimeout,omitempty"` // Hold | Proceed
}

type Status struct {
	Enabled     *bool         `json:"enabled,omitempty"` // default true
	Conditions  Conditions    `json:"conditions,omitempty"`
	Downstreams string        `json:"downstreams,omitempty"` // fieldpath below .status; empty: not written
	Fields      []StatusField `json:"fields,omitempty"`
}

// Conditions maps Corollary's conditions to the condition types that are written. An empty one is not written;
// ready is required where status is enabled.
type Conditions struct {
	Ready       string `json:"ready,omitempty"`
	Valid       string `json:"valid,omitempty"`
	Reconciling string `json:"reconciling,omitempty"`
	Stalled     string `json:"stalled,omitempty"`
}

type StatusField struct {
	Path  string `json:"path"`
	Value string `json:"value"` // CEL
}

type Guard struct {
	MaxChanged string `json:"maxChanged,omitempty"`
	Minimum    int    `json:"minimum,omitempty"`
}

type Retry struct {
	MinDelay Duration `json:"minDelay,omitempty"` // default 5s
	MaxDelay Duration `json:"maxDelay,omitempty"` // default 5m
}
