package config

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/config/random"
	"github.com/corollary-dev/corollary/pkg/config/staged"
)

// The doc comments of types and fields are the descriptions in the published JSON Schema: editors show them. Tags say
// what Go's types do not: `holds:"cel"` and `holds:"template"` mark CEL expressions and templates, `enum` lists the
// allowed values, `form` names a pattern of forms (of a list's items, of a map's keys), `min` and `max` bound a list's
// length or a number, `unique` refuses duplicate items. The JSON Schema is made from them.

const (
	// APIVersion is the apiVersion of config files.
	APIVersion = "corollary.dev/v1alpha1"
	// Kind is the kind of an operator's file.
	Kind = "Operator"
	// ConventionsKind is the kind of a file that conventionsFile names. A directory may contain such files and operators.
	ConventionsKind = "Conventions"
	// EveryCluster is the activation of an operator that writes in every cluster.
	EveryCluster = "None"
)

// Operator is one config file: the upstream kind, the rules for a valid upstream, the downstreams that follow from it,
// and every name that ends up in the cluster.
type Operator struct {
	// APIVersion is corollary.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Operator.
	Kind string `json:"kind"`
	// Metadata names the operator.
	Metadata common.Metadata `json:"metadata"`
	Runtime

	// Watch names the upstream kind and selects its objects.
	Watch Watch `json:"watch,omitempty"`
	// Source reads the upstreams from a database instead of watching them: each row that a query returns is one.
	Source *query.Source `json:"source,omitempty"`
	Environment
	// Validate lists the rules for a valid upstream, as in x-kubernetes-validations of a CustomResourceDefinition.
	Validate []Rule `json:"validate,omitempty"`
	// Downstreams are the objects that follow from an upstream. Each has its own template, hash and decision.
	Downstreams []Downstream `json:"downstreams" min:"1"`
	Templating
	// ConventionsFile is the path of a file of kind Conventions, relative to this one, that several operators may share.
	// Keys in conventions override those of the file one by one.
	ConventionsFile string `json:"conventionsFile,omitempty"`
	// Conventions are the names that end up in the cluster. None has a default.
	Conventions Conventions `json:"conventions"`
	// Deletion says what happens when an upstream is deleted.
	Deletion Deletion `json:"deletion,omitempty"`
	// Status says what is written into the upstream's status.
	Status Status `json:"status,omitempty"`
	// Conversion says how objects of the watched kind are converted between its served versions.
	Conversion *conversion.Conversion `json:"conversion,omitempty"`
	// Guard holds a change that would delete or change many objects until it is confirmed. Default: at most 10% deletions.
	Guard *Guard `json:"guard,omitempty"`
	// Rollout brings a changed config to its upstreams step by step. Default: to all at once.
	Rollout *staged.Rollout `json:"rollout,omitempty"`
	// Events selects the Kubernetes events that are sent: All, Warnings (default) or None.
	Events EventPolicy `json:"events,omitempty"`
	// Retry sets the delays between retries after a failure; they grow from minDelay to maxDelay.
	Retry Retry `json:"retry,omitempty"`
	// ResyncPeriod is how often every upstream is reconciled without an event. Default: 10h; 0s: never.
	ResyncPeriod common.Duration `json:"resyncPeriod,omitempty"`
}

// Runtime says how, where and as whom the operator runs.
type Runtime struct {
	// Mode is Enforce (default), or Observe: decide and report, but write only the status.
	Mode Mode `json:"mode,omitempty"`
	// Activation names the activation that this operator follows, if several are loaded: it writes only in the active
	// cluster. None: it writes in every cluster.
	Activation string `json:"activation,omitempty"`
	// Requires names the versions that the config needs. While one is missing, it is refused with an error that says
	// which.
	Requires *Requires `json:"requires,omitempty"`
	// ServiceAccount is the account that this operator impersonates. Default: the account of the process.
	ServiceAccount *ServiceAccount `json:"serviceAccount,omitempty"`
}

// Environment is what rules and templates can read besides the upstream.
type Environment struct {
	// Parameters are constants: param "NAME" in templates, params.NAME in CEL.
	Parameters map[string]any `json:"parameters,omitempty" form:"member"`
	// Variables are named expressions: variables.NAME in CEL, variable "NAME" in templates. Each is evaluated once, when
	// it is read.
	Variables []Variable `json:"variables,omitempty"`
	// Inputs are related objects that are read and watched, never written. A change of one renders again.
	Inputs []Input `json:"inputs,omitempty"`
}

// Templating is what all templates have in common.
type Templating struct {
	// Helpers are define blocks, for template and include in all templates, labels and annotations.
	Helpers string `json:"helpers,omitempty"`
	// HelpersFile is the path of a file with the helpers, relative to the config file, instead of helpers.
	HelpersFile string `json:"helpersFile,omitempty"`
	// Delimiters are the left and the right delimiter of templates. Default: ["{{", "}}"].
	Delimiters []string `json:"delimiters,omitempty" form:"delimiter" min:"2" max:"2" unique:"true"`
}

// ServiceAccount names the ServiceAccount whose rights the operator uses, and no others.
type ServiceAccount struct {
	// Namespace of the ServiceAccount.
	Namespace string `json:"namespace" form:"dnsLabel"`
	// Name of the ServiceAccount. It does not have to exist: RBAC grants rights to a name.
	Name string `json:"name" form:"objectName"`
}

// Variable is an expression with a name, as in a ValidatingAdmissionPolicy.
type Variable struct {
	// Name of the variable: a letter, then letters, digits and _.
	Name string `json:"name" form:"member"`
	// Expression is a CEL expression over self, params, inputs and the variables before it. Its result may be any value.
	Expression string `json:"expression" holds:"cel"`
}

// Rule is a validation rule in the dialect of CRD x-kubernetes-validations.
type Rule struct {
	// Rule is a CEL expression over self that is true for a valid upstream.
	Rule string `json:"rule" holds:"cel"`
	// Message says to the author of the upstream what is wrong.
	Message string `json:"message,omitempty"`
	// MessageExpression is a CEL expression that gives the message; it wins over message.
	MessageExpression string `json:"messageExpression,omitempty" holds:"cel"`
	// FieldPath is the path of the wrong field, such as .spec.replicas or .spec.containers[name=app].image.
	FieldPath string `json:"fieldPath,omitempty" form:"path"`
	// Reason is FieldValueInvalid (default), FieldValueForbidden, FieldValueRequired or FieldValueDuplicate.
	Reason string `json:"reason,omitempty" enum:"FieldValueInvalid,FieldValueForbidden,FieldValueRequired,FieldValueDuplicate"`
}

// Downstream is an object that follows from an upstream.
type Downstream struct {
	// Name is the key of this downstream in status, metrics and CEL (downstreams.NAME).
	Name string `json:"name" form:"member"`
	// APIVersion of the downstream, such as apps/v1.
	APIVersion string `json:"apiVersion" form:"apiVersion"`
	// Kind of the downstream.
	Kind string `json:"kind" form:"kind"`
	// ForEach makes one object for each item of a list or map. The template and all expressions of the downstream read the
	// item: item in CEL and in templates.
	ForEach *ForEach `json:"forEach,omitempty"`
	// When is a CEL expression over self. If it is false, the downstream is not wanted and deletionPolicy applies.
	// Default: true. With forEach it is asked for each item.
	When string `json:"when,omitempty" holds:"cel"`
	// After lists downstreams that come first: until they are ready, this one is neither created nor changed. With
	// deletion.wait, they are deleted after it.
	After []After `json:"after,omitempty"`
	// Template renders the document. It may repeat apiVersion and kind.
	Template string `json:"template,omitempty" holds:"template"`
	// TemplateFile is the path of a file with the template, relative to the config file, instead of template.
	TemplateFile string `json:"templateFile,omitempty"`
	// Ownership is Object (default), or Fields: the object is someone else's, and only the fields that the template sets
	// are ours. It is never created or deleted; until it exists, the downstream is Waiting. It takes no labels and
	// annotations from conventions.
	Ownership Ownership `json:"ownership,omitempty"`
	// Force takes fields that another field manager owns. Only with ownership Fields; without it, such a field is a
	// Conflict.
	Force bool `json:"force,omitempty"`
	// Ready adds conditions for being ready to those of the kind itself (kstatus). With ownership Fields, they are the
	// only ones.
	Ready Ready `json:"ready,omitempty"`
	// TargetNamespaces limits the namespaces that the downstream may be in.
	TargetNamespaces TargetNamespaces `json:"targetNamespaces,omitempty"`
	// AdoptionPolicy is Never (default), or IfUnowned: an existing object without an owner is adopted.
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
	// Adopt says which fields are taken over when an object that another tool created is adopted.
	Adopt *Adopt `json:"adopt,omitempty"`
	// UpdatePolicy is Apply (default), Recreate (delete and create, if the API server refuses to change an immutable
	// field) or CreateOnly (never change an existing object).
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`
	// DeletionPolicy is Delete (default), or Orphan: the object stays, without our labels, annotations and owner
	// reference.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Drift says what happens when others change the downstream.
	Drift Drift `json:"drift,omitempty"`
	// Generated are random values of a Secret: made when it is created, then kept as they are.
	Generated []random.Generated `json:"generated,omitempty" max:"32"`
}

// After names a downstream that comes first. Its name alone is enough.
type After struct {
	// Name of the downstream.
	Name string `json:"name" form:"member" short:"true"`
	// Until is Ready (default), or Created: then it is enough that the downstream exists, and a later change does not
	// wait.
	Until AfterUntil `json:"until,omitempty"`
}

// ForEach makes one object for each item. An object's name says which item it is of; the order of the items means
// nothing.
type ForEach struct {
	// Items is a CEL expression over self, inputs and params that gives a list, or a map, of which each item is
	// {key: …, value: …}.
	Items string `json:"items" holds:"cel"`
	// MaxItems is how many items there may be (default 100); with more, the upstream is invalid.
	MaxItems *int `json:"maxItems,omitempty" min:"1" max:"1000"`
}

// Adopt says which fields are taken over when an object that another tool created is adopted.
type Adopt struct {
	// FieldManagers are the managers whose fields become ours, as metadata.managedFields names them, such as helm or
	// kubectl-client-side-apply. A field that another manager set and that the template leaves out stays forever.
	FieldManagers []string `json:"fieldManagers" form:"manager" min:"1" unique:"true"`
}

// Ready says when a downstream is ready. The readiness of its kind (kstatus) is checked first.
type Ready struct {
	// Rules must all be true.
	Rules []ReadyRule `json:"rules,omitempty"`
	// Failed lists rules; the downstream has failed if one of them is true.
	Failed []ReadyRule `json:"failed,omitempty"`
	// MessageFrom is a CEL expression whose text is shown in Ready's message.
	MessageFrom string `json:"messageFrom,omitempty" holds:"cel"`
	// ObservedGeneration says whether a downstream without status.observedGeneration can be ready: Auto (default: yes if
	// its schema lacks the field, or its controller wrote a status without it), Required (never) or Optional (always).
	ObservedGeneration ObservedGeneration `json:"observedGeneration,omitempty"`
}

// ReadyRule is one rule over self and downstream.
type ReadyRule struct {
	// Rule is a CEL expression over self and downstream.
	Rule string `json:"rule" holds:"cel"`
	// Message is shown in the condition while the rule decides.
	Message string `json:"message,omitempty"`
}

// TargetNamespaces limits the namespaces that a downstream may be in.
type TargetNamespaces struct {
	// From is Same (default: the upstream's namespace; for a Namespace, itself), Any, or List.
	From NamespacesFrom `json:"from,omitempty"`
	// Names are the allowed namespaces if from is List.
	Names []string `json:"names,omitempty" form:"dnsLabel" min:"1" unique:"true"`
}

// Drift says what happens when others change a downstream.
type Drift struct {
	// Policy is Enforce (default: repair), Report (only events and status) or Ignore.
	Policy DriftPolicy `json:"policy,omitempty"`
	// InitialFields are paths of fields that are set at creation and then left to others, such as .spec.replicas for an
	// autoscaler.
	InitialFields []string `json:"initialFields,omitempty" form:"path" unique:"true"`
	// ExclusiveFields are paths of maps in which even keys that others add are drift, such as .data.
	ExclusiveFields []string `json:"exclusiveFields,omitempty" form:"path" unique:"true"`
}

// Conventions are the names that end up in the cluster. None of them has a default.
type Conventions struct {
	// FieldManager is the field manager of server-side apply, unique among the loaded operators.
	FieldManager string `json:"fieldManager" form:"manager"`
	// Labels of every downstream. Values are templates. At least one must be constant: the constant labels are the
	// server-side selector of the downstream watch.
	Labels map[string]string `json:"labels,omitempty" holds:"template" form:"key" min:"1"`
	// Annotations of every downstream. Values are templates.
	Annotations map[string]string `json:"annotations,omitempty" holds:"template" form:"key"`
	// Hash says where the hash of the desired state is stored on a downstream.
	Hash Hash `json:"hash"`
	// Owner says how a downstream is marked as belonging to its upstream.
	Owner Owner `json:"owner"`
	// DownstreamName names the annotation on downstreams that says of which downstream of the config they are.
	DownstreamName *DownstreamName `json:"downstreamName,omitempty"`
	// Finalizer holds a deleted upstream until its downstreams are cleaned up, if owner references cannot do it.
	Finalizer string `json:"finalizer,omitempty" form:"finalizer"`
	// Pause names the annotation that makes Corollary leave an upstream alone.
	Pause *Pause `json:"pause,omitempty"`
	// Reconcile names the annotation that requests an immediate reconcile; `corollary reconcile` sets it.
	Reconcile *Reconcile `json:"reconcile,omitempty"`
	// ActivationToken names the annotation on downstreams that holds the fencing token of the activation.
	ActivationToken *ActivationToken `json:"activationToken,omitempty"`
	// Shard names the label on downstreams that holds the shard of their upstream, if the process runs with --shards.
	Shard *Shard `json:"shard,omitempty"`
	// Rollout names the annotation on downstreams that says in which rollout they were applied.
	Rollout *staged.Mark `json:"rollout,omitempty"`
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

// SharedConventions is a file of kind Conventions: names that end up in the cluster, for all operators whose
// conventionsFile it is.
type SharedConventions struct {
	// APIVersion is corollary.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Conventions.
	Kind string `json:"kind"`
	// Conventions are the names. Those in an operator's own file override them one by one.
	Conventions Conventions `json:"conventions"`
}

// Reconcile names the annotation that requests an immediate reconcile.
type Reconcile struct {
	// Annotation is the key of an annotation on the upstream. Any new value requests a reconcile.
	Annotation string `json:"annotation" form:"key"`
}

// Previous are names that this config used earlier. Objects with them count as ours and are updated to the current
// names; remove this key when no object uses them.
type Previous struct {
	// FieldManager is the previous field manager.
	FieldManager string `json:"fieldManager,omitempty" form:"manager"`
	// Finalizer is the previous finalizer.
	Finalizer string `json:"finalizer,omitempty" form:"key"`
	// Hash is where the hash was stored: annotation or label.
	Hash *PreviousHash `json:"hash,omitempty"`
	// Owner is how the owner was marked.
	Owner *PreviousOwner `json:"owner,omitempty"`
}

// PreviousHash is where the hash was stored: exactly one of annotation and label.
type PreviousHash struct {
	// Annotation is the key of the annotation that held the hash.
	Annotation string `json:"annotation,omitempty" form:"key"`
	// Label is the key of the label that held the hash.
	Label string `json:"label,omitempty" form:"key"`
}

// PreviousOwner is how the owner was marked.
type PreviousOwner struct {
	// Annotation is the key of the annotation that named the owner.
	Annotation string `json:"annotation" form:"key"`
}

// Hash says where the hash of the desired state is stored on a downstream: exactly one of annotation and label.
type Hash struct {
	// Annotation is the key of the annotation that holds the hash.
	Annotation string `json:"annotation,omitempty" form:"key"`
	// Label is the key of the label that holds the hash.
	Label string `json:"label,omitempty" form:"key"`
	// Algorithm is sha256 (default), sha1 or md5.
	Algorithm string `json:"algorithm,omitempty" enum:"sha256,sha1,md5"`
}

// Owner says how a downstream is marked as belonging to its upstream.
type Owner struct {
	// Reference is true (default) if owner references are set where Kubernetes allows them.
	Reference *bool `json:"reference,omitempty"`
	// Annotation is the key of the annotation that names the owner if there is no owner reference.
	Annotation string `json:"annotation,omitempty" form:"key"`
}

// DownstreamName names the annotation on downstreams that says of which downstream of the config they are.
type DownstreamName struct {
	// Annotation is the key of the annotation. With it, a downstream that is renamed or removed is known to be another one
	// also where no status says so. It is part of the hash: objects get it at once.
	Annotation string `json:"annotation" form:"key"`
}

// ActivationToken names the annotation on downstreams that holds the fencing token.
type ActivationToken struct {
	// Annotation is the key of the annotation. It is not part of the hash, and is written only along with other changes.
	Annotation string `json:"annotation" form:"key"`
}

// Shard names the label on downstreams that holds the shard of their upstream.
type Shard struct {
	// Label is the key of the label: its value is the number of the shard. With it the API server sends each process only
	// the downstreams of the shards that it holds. Without --shards it is not set.
	Label string `json:"label" form:"key"`
}

// Pause names the annotation that makes Corollary leave an upstream alone.
type Pause struct {
	// Annotation is the key of an annotation on the upstream. The value "true" pauses it.
	Annotation string `json:"annotation" form:"key"`
}

// Deletion says what happens when an upstream is deleted.
type Deletion struct {
	// Propagation of deletions, as in Kubernetes: Background (default) or Foreground.
	Propagation string `json:"propagation,omitempty" enum:"Background,Foreground"`
	// Wait is true to hold the upstream until its downstreams are deleted. Default: false.
	Wait bool `json:"wait,omitempty"`
	// Before is an object, such as a Job, that is created first and must finish before anything is deleted.
	Before *Before `json:"before,omitempty"`
}

// Before is an object that is created when an upstream is deleted and must finish before anything is deleted.
type Before struct {
	// APIVersion of the object, such as batch/v1.
	APIVersion string `json:"apiVersion" form:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind" form:"kind"`
	// When is a CEL expression over self: if it is false, no object is needed, and the deletion continues at once.
	// Default: "true".
	When string `json:"when,omitempty" holds:"cel"`
	// Template renders the document. It may repeat apiVersion and kind.
	Template string `json:"template,omitempty" holds:"template"`
	// TemplateFile is the path of a file with the template, relative to the config file, instead of template.
	TemplateFile string `json:"templateFile,omitempty"`
	// DoneWhen is a CEL expression over downstream that is true when the object has finished.
	DoneWhen string `json:"doneWhen" holds:"cel"`
	// FailedWhen is a CEL expression over downstream that is true when the object has failed. Default: "false".
	FailedWhen string `json:"failedWhen,omitempty" holds:"cel"`
	// TargetNamespaces limits the namespaces that the object may be in.
	TargetNamespaces TargetNamespaces `json:"targetNamespaces,omitempty"`
	// OnFailure is Hold (default: the upstream stays until a person acts), or Proceed (the deletion continues).
	OnFailure BeforePolicy `json:"onFailure,omitempty"`
	// Timeout is how long it may take, counted from the upstream's deletion. Default: 1h.
	Timeout common.Duration `json:"timeout,omitempty"`
	// OnTimeout is Hold (default) or Proceed, as for onFailure.
	OnTimeout BeforePolicy `json:"onTimeout,omitempty"`
}

// Retry sets the delays between retries after a failure.
type Retry struct {
	// MinDelay is the first delay, at least 1s. Default: 5s.
	MinDelay common.Duration `json:"minDelay,omitempty"`
	// MaxDelay is the longest delay. Default: 5m.
	MaxDelay common.Duration `json:"maxDelay,omitempty"`
}

// SharesKind reports whether the objects of two downstreams are of one kind, whatever its version.
func (d *Downstream) SharesKind(other *Downstream) bool {
	return GroupKind(d.APIVersion, d.Kind) == GroupKind(other.APIVersion, other.Kind)
}

// OwnsFields reports whether the downstream sets fields of objects that others make.
func (d *Downstream) OwnsFields() bool { return d.Ownership == OwnershipFields }

// OutlivesUpstream reports whether objects of the downstream, which are its own, are kept when their upstream is
// deleted.
func (d *Downstream) OutlivesUpstream() bool {
	return d.DeletionPolicy == DeletionOrphan && !d.OwnsFields()
}

// GroupKind identifies a kind whatever its version.
func GroupKind(apiVersion, kind string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	return group + "/" + kind
}

// IsTemplate reports whether a text has a hole or an action of a template.
func (op *Operator) IsTemplate(s string) bool {
	return len(op.Delimiters) > 0 && op.Delimiters[0] != "" && strings.Contains(s, op.Delimiters[0])
}
