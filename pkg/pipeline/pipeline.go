package pipeline

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Pipeline is one compiled config. It is immutable and safe for concurrent use.
type Pipeline struct {
	// Name is metadata.name of the config.
	Name   string
	Config *config.Operator
	// OnlyDeletes: it was compiled with Options.Deletions.
	OnlyDeletes bool
	// Upstream is the watched kind; GVR and Schema are empty where the kind was not known at compile time.
	Upstream kinds.Kind
	// Downstreams are in the config's order.
	Downstreams []*Downstream
	// Inputs are in the config's order.
	Inputs []*InputSource
	// Before is what is made when an upstream is deleted, before anything goes; nil if the config has none.
	Before *BeforeObject
	// UpstreamWords are all that is shown of an upstream that is a Secret itself; nil: all of it may be.
	UpstreamWords redact.Words
	// Storable is what the upstream's status can hold; nil if status is off.
	Storable *status.Storable
	// storesBaseline is true if the kind's schema has room for a baseline in the list of downstreams.
	storesBaseline bool
	// Warnings are what `check` tells the author and `run` logs: no errors, but worth a reconciliation.
	Warnings []config.Error
	// Refusals are what the API server refuses in the templates, as far as the schemas tell: errors of `check`. `run` starts
	// in spite of them, and logs them.
	Refusals []config.Error
	// UpstreamReads are for the hints of check.
	UpstreamReads UpstreamReads

	params          map[string]any
	order           []int // of the downstreams: each behind those that it reads
	variables       []variable
	matchConditions []matchCondition
	validator       *rules.Validator
	validatorInputs inputSet
	quietRules      []bool // of the validator: their errors may quote a value of a Secret
	fields          []statusField
	readsStatus     bool
	downstreamsPath fieldpath.Path
	algorithm       drift.Algorithm
	hashKey         drift.Key
	previous        drift.Previous
}

// Downstream is one compiled downstream of a config.
type Downstream struct {
	Index  int
	Name   string
	Config *config.Downstream
	Kind   kinds.Kind
	// View is what the cache keeps of a live object.
	View drift.View
	// Selector is what the constant labels select: the server-side filter of the watch.
	Selector labels.Set
	// Words are the author's: of a document that can hold values of a Secret nothing else is shown. nil: all of it may be.
	Words redact.Words

	// hashPrefix begins the hash of its documents.
	hashPrefix string
	// hidesValues: errors of when and of making the document may quote a value of a Secret.
	hidesValues bool
	// items gives the items of forEach; nil without.
	items       *rules.Program
	itemsInputs inputSet
	siblings    []int     // the downstreams that it reads
	shown       InputView // what others read of its objects
	when        *rules.Program
	whenInputs  inputSet
	template    *render.Template
	source      source
	inputs      inputSet   // what the document is made from
	statusReads [][]string // the fields of the upstream's status that when or the document are made from; an empty path is all
	labels      []textEntry
	annotations []textEntry
	ready       []readyRule
	failed      []readyRule
	messageFrom *rules.Program
	// readsItem: a rule about readiness, or its message, reads the item.
	readsItem bool
	// hasObservedGeneration is true if status.observedGenerationPath is asked for: its controller says there what it has seen.
	hasObservedGeneration bool
	initial               []fieldpath.Path // the generated ones last
	generated             []GeneratedField
	exclusive             []fieldpath.Path
}

type textEntry struct {
	key    string
	text   *render.Text
	inputs inputSet
}

type readyRule struct {
	path        string // in the config
	program     *rules.Program
	message     string
	hidesValues bool // its errors may quote a value of a Secret
}

type statusField struct {
	path    fieldpath.Path
	program *rules.Program
}

// Params are the values of the config's parameters, of JSON's types. They are shared: never change them.
func (p *Pipeline) Params() map[string]any { return p.params }

// GVK returns the downstream's group, version and kind as the config names them.
func (d *Downstream) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(d.Config.APIVersion, d.Config.Kind)
}

// Siblings are the indices of the downstreams that it reads.
func (d *Downstream) Siblings() []int { return d.siblings }

// Several reports whether the downstream may have any number of objects (forEach), which are told apart by their places.
func (d *Downstream) Several() bool { return d.Config.ForEach != nil }

// Holes lists every hole of the downstream's template.
func (d *Downstream) Holes() []render.Hole { return d.template.Holes() }

// ReadsStatus reports whether a rule or template reads the upstream's own status: then a change of status renders again.
func (p *Pipeline) ReadsStatus() bool { return p.readsStatus }

// Paused reports whether the upstream has the config's pause annotation with the value "true".
func (p *Pipeline) Paused(upstream *unstructured.Unstructured) bool {
	pause := p.Config.Conventions.Pause
	return pause != nil && upstream.GetAnnotations()[pause.Annotation] == "true"
}

// SelectsLabels reports whether the config selects upstreams by their labels or their namespace's.
func (p *Pipeline) SelectsLabels() bool {
	return p.Config.Watch.LabelSelector != nil || p.Config.Watch.NamespaceSelector != nil
}

// SelectsSome reports whether the config watches some objects of the kind only.
func (p *Pipeline) SelectsSome() bool {
	return p.SelectsLabels() || p.HasMatchConditions() || len(p.Config.Watch.Namespaces) > 0
}

// StatusEnabled reports whether the config lets us write the upstream's status.
func (p *Pipeline) StatusEnabled() bool {
	return p.Config.Status.Enabled == nil || *p.Config.Status.Enabled
}

// OwnsFields reports whether its objects are those of others, of which only the rendered fields are ours.
func (d *Downstream) OwnsFields() bool { return d.Config.Ownership == config.OwnershipFields }

// updatesInPlace reports whether an object is updated when its document changes.
func (d *Downstream) updatesInPlace() bool {
	return d.Config.UpdatePolicy != config.UpdateRecreate && d.Config.UpdatePolicy != config.UpdateCreateOnly
}

// TrustsStatus reports whether what the upstream's status records of its downstreams is a witness. A status that is written
// like any other field is none: whoever may create the upstream could claim any object by it.
func (p *Pipeline) TrustsStatus() bool {
	path := p.Config.Status.Downstreams
	return p.Upstream.HasStatus && p.StatusEnabled() && path != "" && (p.Storable == nil || p.Storable.Stores(path))
}

// referenceLegal reports whether an owner reference from a downstream at target to the upstream is legal and wanted:
// a namespaced owner may own in its own namespace only, a cluster-scoped one anywhere. What shall outlive its upstream
// has no reference, since the garbage collector would take it.
func (p *Pipeline) referenceLegal(d *Downstream, upstreamNamespace string, target Ref) bool {
	if r := p.Config.Conventions.Owner.Reference; r != nil && !*r {
		return false
	}
	if d.Config.DeletionPolicy == config.DeletionOrphan {
		return false
	}
	return upstreamNamespace == "" || upstreamNamespace == target.Namespace
}

// OwnerMark is the value of the owner annotation, which stands where a reference is not legal: namespace/name/uid of
// the upstream. Only the uid says who owns; the rest is for people, and to find the upstream again.
func OwnerMark(upstream *unstructured.Unstructured) string {
	return upstream.GetNamespace() + "/" + upstream.GetName() + "/" + string(upstream.GetUID())
}

// ParseOwnerMark splits an owner annotation. A malformed one gives ok false.
func ParseOwnerMark(mark string) (ref Ref, uid string, ok bool) {
	parts := strings.Split(mark, "/")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return Ref{}, "", false
	}
	return Ref{Namespace: parts[0], Name: parts[1]}, parts[2], true
}
