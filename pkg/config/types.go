package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The doc comments of types and fields are the descriptions in the published JSON Schema: editors show them.
// A field tagged `holds:"cel"` is a CEL expression, one tagged `holds:"template"` a template.

const (
	// APIVersion is what a config file says of itself.
	APIVersion = "corollary.dev/v1alpha1"
	// Kind is the kind of an operator's file.
	Kind = "Operator"
	// ConventionsKind is the kind of a file that a conventionsFile names. A directory may hold such files
	// beside operators.
	ConventionsKind = "Conventions"
)

// Operator is one config file: the upstream kind, what makes an upstream valid, the downstreams that follow
// from it, and every name that ends up in the cluster.
type Operator struct {
	// APIVersion is corollary.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Operator.
	Kind string `json:"kind"`
	// Metadata names the operator.
	Metadata Metadata `json:"metadata"`
	// Mode is Enforce (default), or Observe: decide, count and report, but write nothing.
	Mode Mode `json:"mode,omitempty"`
	// ServiceAccount is who this operator acts as, by impersonation; by default whoever the process is.
	ServiceAccount *ServiceAccount `json:"serviceAccount,omitempty"`

	// Watch names the upstream kind and which objects of it count.
	Watch Watch `json:"watch"`
	// Parameters are constants of this operator: param "NAME" in templates, params.NAME in CEL.
	Parameters map[string]any `json:"parameters,omitempty"`
	// Inputs are related objects that are read and watched but never written; a change renders again.
	Inputs []Input `json:"inputs,omitempty"`
	// Validate holds the rules that make an upstream valid, in the dialect and field names of a CRD's
	// x-kubernetes-validations.
	Validate []Rule `json:"validate,omitempty"`
	// Downstreams are the objects that follow from an upstream, each a pipeline of its own.
	Downstreams []Downstream `json:"downstreams"`
	// Delimiters are the left and right delimiter of templates, {{ and }} by default.
	Delimiters []string `json:"delimiters,omitempty"`
	// ConventionsFile names a file of kind Conventions, relative to this one, that several operators may share. It holds
	// the same keys as conventions; this file's own win over them, one by one.
	ConventionsFile string `json:"conventionsFile,omitempty"`
	// Conventions are the names that end up in the cluster. None has a default.
	Conventions Conventions `json:"conventions"`
	// Deletion tells what happens when an upstream is deleted.
	Deletion Deletion `json:"deletion,omitempty"`
	// Status tells what is written into the upstream's status.
	Status Status `json:"status"`
	// Guard makes what would delete or change many objects at once wait for confirmation. It limits deletions by default.
	Guard *Guard `json:"guard,omitempty"`
	// Events tells which Kubernetes events are sent: All, Warnings (default) or None.
	Events EventPolicy `json:"events,omitempty"`
	// Retry bounds the delay after a failure; it grows from minDelay to maxDelay.
	Retry Retry `json:"retry,omitempty"`
	// ResyncPeriod is how often everything is looked at again without an event, 10h by default; 0s for never.
	ResyncPeriod Duration `json:"resyncPeriod,omitempty"`
}

// Metadata names an operator.
type Metadata struct {
	// Name stands in logs, metrics and events: a DNS label, unique among the loaded operators.
	Name string `json:"name"`
}

// ServiceAccount names a ServiceAccount whose rights an operator works with, and no others.
type ServiceAccount struct {
	// Namespace of the ServiceAccount.
	Namespace string `json:"namespace"`
	// Name of the ServiceAccount. It need not exist: rights are granted to a name.
	Name string `json:"name"`
}

// Watch selects the upstreams.
type Watch struct {
	// APIVersion of the upstream kind: GROUP/VERSION, or v1 for the core group.
	APIVersion string `json:"apiVersion"`
	// Kind of the upstreams.
	Kind string `json:"kind"`
	// Namespaces to watch; leave it out for all of them.
	Namespaces []string `json:"namespaces,omitempty"`
	// LabelSelector selects upstreams by their labels; the API server applies it.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// NamespaceSelector selects upstreams by the labels of their namespace.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// Input is a related object that templates and rules may read.
type Input struct {
	// Name of the input: input "NAME" in templates, inputs.NAME in CEL.
	Name string `json:"name"`
	// APIVersion of the input's kind.
	APIVersion string `json:"apiVersion"`
	// Kind of the input.
	Kind string `json:"kind"`
	// ObjectName is a CEL expression that gives the object's name from the upstream.
	ObjectName string `json:"objectName,omitempty" holds:"cel"`
	// FixedName is the object's name where it is the same for all upstreams.
	FixedName string `json:"fixedName,omitempty"`
	// Namespace is fixed text; by default the upstream's own. An upstream can never choose another.
	Namespace string `json:"namespace,omitempty"`
	// Missing is Wait (default), or Allow: a missing input is null.
	Missing MissingPolicy `json:"missing,omitempty"`
}

// Rule is a validation rule in the dialect of CRD x-kubernetes-validations.
type Rule struct {
	// Rule is a CEL expression over self that is true for a valid upstream.
	Rule string `json:"rule" holds:"cel"`
	// Message tells the upstream's author what is wrong.
	Message string `json:"message,omitempty"`
	// MessageExpression is a CEL expression that gives the message; it wins over message.
	MessageExpression string `json:"messageExpression,omitempty" holds:"cel"`
	// FieldPath names the field at fault: .spec.replicas, .spec.containers[name=app].image.
	FieldPath string `json:"fieldPath,omitempty"`
	// Reason is FieldValueInvalid (default), FieldValueForbidden, FieldValueRequired or FieldValueDuplicate.
	Reason string `json:"reason,omitempty"`
}

// Downstream is an object that follows from an upstream.
type Downstream struct {
	// Name is the key of this downstream in status, metrics and CEL (downstreams.NAME).
	Name string `json:"name"`
	// APIVersion of the downstream, such as apps/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of the downstream.
	Kind string `json:"kind"`
	// When is a CEL expression over self; while it is false the downstream is not wanted and deletionPolicy
	// applies. By default it is always wanted.
	When string `json:"when,omitempty" holds:"cel"`
	// Template gives the document; apiVersion and kind may be repeated in it.
	Template string `json:"template,omitempty" holds:"template"`
	// TemplateFile names a file with the template, relative to the config file, instead of template.
	// Load reads it into Template and keeps the name here.
	TemplateFile string `json:"templateFile,omitempty"`
	// Ready tells when the downstream is ready, beyond what its kind says of itself.
	Ready Ready `json:"ready,omitempty"`
	// TargetNamespaces tells where the downstream may live.
	TargetNamespaces TargetNamespaces `json:"targetNamespaces,omitempty"`
	// AdoptionPolicy is Never (default), or IfUnowned: an existing object without an owner is taken over.
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
	// Adopt tells what is taken over along with an object that another tool made.
	Adopt *Adopt `json:"adopt,omitempty"`
	// UpdatePolicy is Apply (default), Recreate (where the API server refuses to change an immutable field) or
	// CreateOnly.
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`
	// DeletionPolicy is Delete (default), or Orphan: the object stays, without our marks.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Drift tells what happens when others change the downstream.
	Drift Drift `json:"drift,omitempty"`
}

// Adopt tells what is taken over along with an object that another tool made.
type Adopt struct {
	// FieldManagers are the writers whose fields become ours, as metadata.managedFields names them: helm,
	// kubectl-client-side-apply, the operator that is replaced. Without that, a field which they set and the template
	// leaves out would stay for ever.
	FieldManagers []string `json:"fieldManagers"`
}

// Ready tells when a downstream is ready. What its kind says of itself (kstatus) comes first.
type Ready struct {
	// Rules must all be true.
	Rules []ReadyRule `json:"rules,omitempty"`
	// Failed says that the downstream has failed when one of them is true.
	Failed []ReadyRule `json:"failed,omitempty"`
	// MessageFrom is a CEL expression whose text is shown in Ready's message.
	MessageFrom string `json:"messageFrom,omitempty" holds:"cel"`
	// ObservedGeneration tells whether a downstream without status.observedGeneration can be ready: Auto (default: if its
	// schema does not have it, or its controller has written a status without it), Required (never) or Optional (always).
	ObservedGeneration ObservedGeneration `json:"observedGeneration,omitempty"`
}

// ReadyRule is one rule over self and downstream.
type ReadyRule struct {
	// Rule is a CEL expression over self and downstream.
	Rule string `json:"rule" holds:"cel"`
	// Message tells what the rule means while it decides.
	Message string `json:"message,omitempty"`
}

// TargetNamespaces tells in which namespaces a downstream may live.
type TargetNamespaces struct {
	// From is Same (default: the upstream's own, which of a Namespace is itself), Any, or List.
	From NamespacesFrom `json:"from,omitempty"`
	// Names are the allowed namespaces where from is List.
	Names []string `json:"names,omitempty"`
}

// Drift tells what happens when others change a downstream.
type Drift struct {
	// Policy is Enforce (default), Report or Ignore.
	Policy DriftPolicy `json:"policy,omitempty"`
	// InitialFields are set at creation and then left to others, an autoscaler for one: a list of paths such as
	// .spec.replicas.
	InitialFields []string `json:"initialFields,omitempty"`
	// ExclusiveFields are maps in which even keys that others add are drift: a list of paths such as .data.
	ExclusiveFields []string `json:"exclusiveFields,omitempty"`
}

// Conventions are the names that end up in the cluster. None of them has a default.
type Conventions struct {
	// FieldManager is the manager's name in server-side apply, unique among the loaded operators.
	FieldManager string `json:"fieldManager"`
	// Labels of every downstream. Values are templates; those with a constant value are the server-side
	// selector of the downstream watch, so at least one must be.
	Labels map[string]string `json:"labels,omitempty" holds:"template"`
	// Annotations of every downstream. Values are templates.
	Annotations map[string]string `json:"annotations,omitempty" holds:"template"`
	// Hash tells where the digest of the desired state is kept.
	Hash Hash `json:"hash"`
	// Owner tells how a downstream is marked as belonging to its upstream.
	Owner Owner `json:"owner"`
	// Finalizer holds an upstream until its downstreams are cleaned up, where owner references cannot do it.
	Finalizer string `json:"finalizer,omitempty"`
	// Pause names what makes Corollary leave an upstream alone.
	Pause *Pause `json:"pause,omitempty"`
	// Reconcile names what makes Corollary look at an upstream now; `corollary reconcile` writes it.
	Reconcile *Reconcile `json:"reconcile,omitempty"`
	// Previous are names that this config used earlier. Objects that still use them are updated to the current names.
	Previous *Previous `json:"previous,omitempty"`
}

// Finalizers lists the finalizers that upstreams may have: the current and the previous one, if set.
func (c *Conventions) Finalizers() []string {
	return c.withPrevious(c.Finalizer, func(p *Previous) string { return p.Finalizer })
}

// FieldManagers lists the managers that may own fields of downstreams: the current and the previous one, if set.
func (c *Conventions) FieldManagers() []string {
	return c.withPrevious(c.FieldManager, func(p *Previous) string { return p.FieldManager })
}

func (c *Conventions) withPrevious(current string, previous func(*Previous) string) []string {
	names := []string{current}
	if c.Previous != nil {
		names = append(names, previous(c.Previous))
	}
	return slices.Compact(slices.DeleteFunc(names, func(name string) bool { return name == "" }))
}

// A file of kind Conventions holds names that end up in the cluster, for the operators whose conventionsFile it is.
type sharedConventions struct {
	// APIVersion is corollary.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Conventions.
	Kind string `json:"kind"`
	// Conventions are the names. Those that an operator gives itself win over them, one by one.
	Conventions Conventions `json:"conventions"`
}

// Reconcile names what makes Corollary look at an upstream now.
type Reconcile struct {
	// Annotation is the key of an annotation on the upstream; any new value asks for a look.
	Annotation string `json:"annotation"`
}

// Previous are the names that a config used before one of its conventions was changed. Objects that bear them count as
// ours and get the new ones; once none is left this can go.
type Previous struct {
	// FieldManager is the manager's name before.
	FieldManager string `json:"fieldManager,omitempty"`
	// Finalizer is the finalizer before.
	Finalizer string `json:"finalizer,omitempty"`
	// Hash is where the digest rode before: annotation or label.
	Hash *PreviousHash `json:"hash,omitempty"`
	// Owner is how owners were marked before.
	Owner *PreviousOwner `json:"owner,omitempty"`
}

// PreviousHash is where the digest rode before: exactly one of annotation and label.
type PreviousHash struct {
	// Annotation is the key of the annotation that held the hash.
	Annotation string `json:"annotation,omitempty"`
	// Label is the key of the label that held the hash.
	Label string `json:"label,omitempty"`
}

// PreviousOwner is how owners were marked before.
type PreviousOwner struct {
	// Annotation is the key of the annotation that named the owner.
	Annotation string `json:"annotation"`
}

// Hash tells where the digest of the desired document rides: exactly one of annotation and label.
type Hash struct {
	// Annotation is the key of the annotation that holds the hash.
	Annotation string `json:"annotation,omitempty"`
	// Label is the key of the label that holds the hash.
	Label string `json:"label,omitempty"`
	// Algorithm is sha256 (default), sha1 or md5.
	Algorithm HashAlgorithm `json:"algorithm,omitempty"`
}

// Owner tells how a downstream is marked as belonging to its upstream.
type Owner struct {
	// Reference says whether owner references are set where they are legal, true by default.
	Reference *bool `json:"reference,omitempty"`
	// Annotation is the key of the annotation that names the owner where a reference is not legal.
	Annotation string `json:"annotation,omitempty"`
}

// Pause names what makes Corollary leave an upstream alone.
type Pause struct {
	// Annotation is the key of an annotation on the upstream.
	Annotation string `json:"annotation"`
}

// Deletion tells what happens when an upstream is deleted.
type Deletion struct {
	// Propagation is Background (default) or Foreground.
	Propagation Propagation `json:"propagation,omitempty"`
	// Wait holds the upstream until its downstreams are gone.
	Wait bool `json:"wait,omitempty"`
	// Before is an object that is made first and must be done before anything is deleted.
	Before *Before `json:"before,omitempty"`
}

// Before is an object that is made when an upstream is deleted, and must be done before anything goes.
type Before struct {
	// APIVersion of the object, such as batch/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Template gives the document; apiVersion and kind may be repeated in it.
	Template string `json:"template,omitempty" holds:"template"`
	// TemplateFile names a file with the template, relative to the config file, instead of template.
	// Load reads it into Template and keeps the name here.
	TemplateFile string `json:"templateFile,omitempty"`
	// DoneWhen is a CEL expression over downstream that is true once it finished.
	DoneWhen string `json:"doneWhen" holds:"cel"`
	// FailedWhen is a CEL expression over downstream that is true once it has failed; "false" by default.
	FailedWhen string `json:"failedWhen,omitempty" holds:"cel"`
	// TargetNamespaces tells where the object may live.
	TargetNamespaces TargetNamespaces `json:"targetNamespaces,omitempty"`
	// OnFailure is Hold (default): the upstream stays until a person acts; or Proceed.
	OnFailure BeforePolicy `json:"onFailure,omitempty"`
	// Timeout is how long it may take, counted from the upstream's deletion; 1h by default.
	Timeout Duration `json:"timeout,omitempty"`
	// OnTimeout is Hold (default), or Proceed.
	OnTimeout BeforePolicy `json:"onTimeout,omitempty"`
}

// Status tells what is written into the upstream's status.
type Status struct {
	// Enabled is true by default; false for kinds whose status is not ours, such as Namespace or ConfigMap.
	Enabled *bool `json:"enabled,omitempty"`
	// Conditions names the condition types that are written.
	Conditions Conditions `json:"conditions,omitempty"`
	// Downstreams is the path of a list with the downstreams' identifiers, below .status; not written by default.
	Downstreams string `json:"downstreams,omitempty"`
	// Fields are further values to write.
	Fields []StatusField `json:"fields,omitempty"`
}

// Conditions maps Corollary's conditions to the condition types that are written. One without a name is not
// written; ready is required where status is enabled.
type Conditions struct {
	// Ready is the type that says whether every wanted downstream is ready.
	Ready string `json:"ready,omitempty"`
	// Valid is the type that says whether the upstream passes the rules.
	Valid string `json:"valid,omitempty"`
	// Reconciling is the type that says that work is under way.
	Reconciling string `json:"reconciling,omitempty"`
	// Stalled is the type that says that work cannot go on by itself.
	Stalled string `json:"stalled,omitempty"`
}

// StatusField is one value of the upstream's status.
type StatusField struct {
	// Path is where the value goes: keys below .status.
	Path string `json:"path"`
	// Value is a CEL expression over self and downstreams.
	Value string `json:"value" holds:"cel"`
}

// Guard makes what would delete or change many objects at once wait for confirmation: a start, a changed config, a change
// of an input that several upstreams read, or of a namespace's labels. What the author of an upstream does never waits.
type Guard struct {
	// MaxDeleted is the largest share of the standing downstreams, 10% by default, that may be deleted without
	// confirmation; 100% is no limit.
	MaxDeleted string `json:"maxDeleted,omitempty"`
	// MaxChanged is the largest share that may be changed or deleted; by default there is no limit but MaxDeleted.
	MaxChanged string `json:"maxChanged,omitempty"`
	// Minimum is the number of objects that never need confirmation, 5 by default.
	Minimum *int `json:"minimum,omitempty"`
	// Confirm is where a confirmation is written, by `corollary confirm` or by hand.
	Confirm *Confirm `json:"confirm,omitempty"`
	// Confirmed is a confirmation in the config itself, for changes that come by review: the digest that the waiting
	// operator tells. It counts for the objects that were counted then, as they were.
	Confirmed string `json:"confirmed,omitempty"`
}

// Confirm is the key of a ConfigMap whose value is the digest of the change that may go on.
type Confirm struct {
	// Namespace of the ConfigMap.
	Namespace string `json:"namespace"`
	// ConfigMap is its name; `corollary confirm` makes it where it does not exist.
	ConfigMap string `json:"configMap"`
	// Key in its data.
	Key string `json:"key"`
}

// Retry bounds the delay after a failure.
type Retry struct {
	// MinDelay is the first delay, 5s by default, at least 1s.
	MinDelay Duration `json:"minDelay,omitempty"`
	// MaxDelay is the longest delay, 5m by default.
	MaxDelay Duration `json:"maxDelay,omitempty"`
}
