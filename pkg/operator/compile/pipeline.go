package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Pipeline is one compiled config. It is immutable and safe for concurrent use.
type Pipeline struct {
	*health.Checks
	// Warnings are what `check` says to the author and `run` logs: no errors, but worth a look.
	Warnings []config.Error
	// Refusals are what the API server refuses in the templates, as far as the schemas say: errors of `check`. `run`
	// starts in spite of them, and logs them.
	Refusals []config.Error
	// UpstreamReads are the fields of the upstream that are read, by the index of the downstream; -1 are all other reads.
	UpstreamReads map[int][]check.Read
	// ReadsStatus: a rule or template reads the upstream's own status: then a change of status renders again.
	ReadsStatus bool

	downstreams []*downstream
	before      *downstream // the object of deletion.before; nil if the config has none
}

// downstream is a downstream with what is known of it from the config alone.
type downstream struct {
	*desired.Downstream
	rules    *health.Rules
	template *render.Template
	texts    []*render.Template // of conventions
	source   source
	// statusReads are the fields of the upstream's status that when or the document are made from; an empty path is all
	statusReads [][]string
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

// MayBeDownstream reports whether input i is of a kind that this operator writes.
func (p *Pipeline) MayBeDownstream(i int) bool {
	gk := p.Inputs[i].Kind.GVK.GroupKind()
	return slices.ContainsFunc(p.Downstreams, func(d *desired.Downstream) bool { return d.GVK().GroupKind() == gk })
}

// ReadsOwn reports whether anything may be read that this operator writes itself.
func (p *Pipeline) ReadsOwn() bool {
	return p.ReadsStatus || slices.ContainsFunc(p.Inputs, func(s *desired.InputSource) bool {
		return p.MayBeDownstream(s.Index)
	})
}

// Feedback says how the desired state for downstream i can follow from what this operator writes itself. own are the
// inputs, by index, that are its downstreams.
func (p *Pipeline) Feedback(i int, own []int) string {
	d := p.downstreams[i]
	var causes []string
	for _, k := range own {
		if p.isMadeFrom(d, k) {
			causes = append(causes, fmt.Sprintf("the template reads its own output through input %s", p.Inputs[k].Name))
		}
	}
	for _, part := range report.StatusParts(p.Settings) {
		if part.ReadBy(d.statusReads) {
			causes = append(causes, part.String()+" changes what the template reads")
		}
	}
	if len(causes) == 0 {
		return "its sources change with each write, and only then"
	}
	return strings.Join(causes, ", ")
}

// isMadeFrom reports whether a downstream is made from input k, by itself or by way of downstreams that it reads.
func (p *Pipeline) isMadeFrom(d *downstream, k int) bool {
	from := []int{d.Index}
	for at := 0; at < len(from); at++ {
		d := p.downstreams[from[at]]
		if d.Inputs.Has(k) || d.WhenInputs.Has(k) || d.ItemsInputs.Has(k) || p.ValidatorInputs.Has(k) {
			return true
		}
		for _, sibling := range d.Siblings {
			if !slices.Contains(from, sibling) {
				from = append(from, sibling)
			}
		}
	}
	return false
}

// KindsRead are the kinds from whose objects all others follow.
func (p *Pipeline) KindsRead() (list []kinds.Kind) {
	if !p.HasRows() {
		list = append(list, p.Upstream)
	}
	for _, s := range p.Inputs {
		if !s.HasRows() {
			list = append(list, s.Kind)
		}
	}
	return list
}

// Kinds are the kinds of a config.
func (p *Pipeline) Kinds() []kinds.Kind {
	list := p.KindsRead()
	for _, d := range p.Downstreams {
		list = append(list, d.Kind)
	}
	if p.Before != nil {
		list = append(list, p.Before.Object.Kind)
	}
	return list
}
