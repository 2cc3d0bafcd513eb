package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/rules"
)

const neverSettles = "a value that changes with each write is written forever, at growing intervals (Contested)"

// warnOfFeedback warns of what reads what this operator writes itself. Only running shows whether that settles.
func warnOfFeedback(c *compilation) {
	for _, part := range report.StatusParts(c.p.Settings) {
		named := func(paths [][]string) bool {
			return part.ReadBy(slices.DeleteFunc(slices.Clone(paths), func(path []string) bool { return len(path) == 0 }))
		}
		for i, d := range c.p.downstreams {
			if !named(d.statusReads) {
				continue
			}
			e := c.file.Errorf(fmt.Sprintf("downstreams[%d]", i), "read what others write; "+neverSettles, "it is made from %s, which %s writes", part.Path, part.Name)
			if d.When != nil && named(statusPaths(d.When.Reads)) {
				e = c.file.Errorf(fmt.Sprintf("downstreams[%d].when", i), e.Fix, "it reads %s, which %s writes", part.Path, part.Name)
			} else if file, line := statusHole(d, part); line > 0 {
				e.File, e.Line, e.Path = file, line, fmt.Sprintf("downstreams[%d].template", i)
			}
			c.p.Warnings = append(c.p.Warnings, *e)
		}
		for i := range validationsOf(c) {
			reads := func(variable string) ([][]string, bool) { return c.p.Validator.ReadsOf(i, rules.PartRule, variable) }
			if named(statusPaths(reads)) {
				c.p.Warnings = append(c.p.Warnings, *c.file.Errorf(fmt.Sprintf("validate[%d].rule", i), "read what others write; "+neverSettles, "it reads %s, which %s writes", part.Path, part.Name))
			}
		}
	}
	warnOfOwnInputs(c)
}

func validationsOf(c *compilation) []config.Rule {
	if c.p.Validator == nil {
		return nil
	}
	return c.file.Operator.Validate
}

// statusHole finds the hole of a downstream's template that reads a part of the status.
func statusHole(d *downstream, part report.StatusPart) (string, int) {
	if d.Template == nil {
		return "", 0
	}
	for _, h := range d.Template.Holes() {
		if strings.Contains(h.Text, ".status."+part.Path[1].Field) {
			return d.source.at(h.Line)
		}
	}
	return "", 0
}

// MayBeDownstream reports whether input i is of a kind that this operator writes.
func (p *Pipeline) MayBeDownstream(i int) bool {
	gk := p.Inputs[i].Kind.GVK.GroupKind()
	return slices.ContainsFunc(p.Downstreams, func(d *desired.Downstream) bool { return d.GVK().GroupKind() == gk })
}

// ReadsOwn reports whether anything may be read that this operator writes itself.
func (p *Pipeline) ReadsOwn() bool {
	return p.ReadsStatus || slices.ContainsFunc(p.Inputs, func(s *desired.InputSource) bool { return p.MayBeDownstream(s.Index) })
}

// Feedback says how the desired state for downstream i can follow from what this operator writes itself. own are the inputs, by index,
// that are its downstreams.
func (p *Pipeline) Feedback(i int, own []int) string {
	d := p.downstreams[i]
	var causes []string
	for _, k := range own {
		if p.reads(d, k) {
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

// reads reports whether a downstream is made from input k, by itself or by way of downstreams that it reads.
func (p *Pipeline) reads(d *downstream, k int) bool {
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
