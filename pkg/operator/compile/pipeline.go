package compile

import (
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Pipeline is one compiled config. It is immutable and safe for concurrent use.
type Pipeline struct {
	*health.Checks
	// Warnings are what `check` says to the author and `run` logs: no errors, but worth a look.
	Warnings []config.Error
	// Refusals are what the API server refuses in the templates, as far as the schemas say: errors of `check`. `run` starts
	// in spite of them, and logs them.
	Refusals []config.Error
	// UpstreamReads are the fields of the upstream that are read, by the index of the downstream; -1 are all other reads.
	UpstreamReads map[int][]check.Read
	// ReadsStatus: a rule or template reads the upstream's own status: then a change of status renders again.
	ReadsStatus bool

	downstreams []*downstream
}

// downstream is a downstream with what is known of it from the config alone.
type downstream struct {
	*desired.Downstream
	rules       *health.Rules
	source      source
	statusReads [][]string // the fields of the upstream's status that when or the document are made from; an empty path is all
}

// addDownstream adds a downstream to the pipeline and to its settings.
func (p *Pipeline) addDownstream(settings *operator.Downstream) {
	d := &downstream{Downstream: &desired.Downstream{Downstream: settings}, rules: &health.Rules{}}
	p.Settings.Downstreams = append(p.Settings.Downstreams, settings)
	p.Downstreams, p.Rules = append(p.Downstreams, d.Downstream), append(p.Rules, d.rules)
	p.downstreams = append(p.downstreams, d)
}

// addField adds one of status.fields; a program of nil has it stay as it is.
func (p *Pipeline) addField(path fieldpath.Path, program *rules.Program) {
	p.StatusFields, p.Fields = append(p.StatusFields, path), append(p.Fields, program)
}

// updatesInPlace reports whether an object is updated when its document changes.
func (d *downstream) updatesInPlace() bool {
	return d.Config.UpdatePolicy != config.UpdateRecreate && d.Config.UpdatePolicy != config.UpdateCreateOnly
}
