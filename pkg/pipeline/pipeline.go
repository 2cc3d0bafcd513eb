package pipeline

import (
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Pipeline is one compiled config. It is immutable and safe for concurrent use.
type Pipeline struct {
	*operator.Settings
	// Downstreams are in the config's order, as those of Settings.
	Downstreams []*Downstream
	// Inputs are in the config's order.
	Inputs []*InputSource
	// Before is what is made when an upstream is deleted, before anything goes; nil if the config has none.
	Before *BeforeObject
	// Warnings are what `check` tells the author and `run` logs: no errors, but worth a reconciliation.
	Warnings []config.Error
	// Refusals are what the API server refuses in the templates, as far as the schemas tell: errors of `check`. `run` starts
	// in spite of them, and logs them.
	Refusals []config.Error
	// UpstreamReads are the fields of the upstream that are read, by the index of the downstream; -1 are all other reads.
	UpstreamReads map[int][]check.Read

	params          map[string]any
	order           []int // of the downstreams: each behind those that it reads
	variables       []variable
	matchConditions []matchCondition
	validator       *rules.Validator
	validatorInputs inputSet
	quietRules      []bool           // of the validator: their errors may quote a value of a Secret
	fields          []*rules.Program // of Settings.StatusFields
	readsStatus     bool
}

// Downstream is one compiled downstream of a config.
type Downstream struct {
	*operator.Downstream
	// hidesValues: errors of when and of making the document may quote a value of a Secret.
	hidesValues bool
	// items gives the items of forEach; nil without.
	items       *rules.Program
	itemsInputs inputSet
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
}

// addDownstream adds a downstream to the pipeline and to its settings.
func (p *Pipeline) addDownstream(d *operator.Downstream) {
	p.Settings.Downstreams = append(p.Settings.Downstreams, d)
	p.Downstreams = append(p.Downstreams, &Downstream{Downstream: d})
}

// addField adds one of status.fields; a program of nil has it stay as it is.
func (p *Pipeline) addField(path fieldpath.Path, program *rules.Program) {
	p.StatusFields, p.fields = append(p.StatusFields, path), append(p.fields, program)
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

// Params are the values of the config's parameters, of JSON's types. They are shared: never change them.
func (p *Pipeline) Params() map[string]any { return p.params }

// Holes lists every hole of the downstream's template.
func (d *Downstream) Holes() []render.Hole { return d.template.Holes() }

// ReadsStatus reports whether a rule or template reads the upstream's own status: then a change of status renders again.
func (p *Pipeline) ReadsStatus() bool { return p.readsStatus }

// SelectsSome reports whether the config watches some objects of the kind only.
func (p *Pipeline) SelectsSome() bool {
	return p.SelectsLabels() || p.HasMatchConditions() || len(p.Config.Watch.Namespaces) > 0
}

// updatesInPlace reports whether an object is updated when its document changes.
func (d *Downstream) updatesInPlace() bool {
	return d.Config.UpdatePolicy != config.UpdateRecreate && d.Config.UpdatePolicy != config.UpdateCreateOnly
}
