package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// This file is about what an operator writes and reads itself: each write may then call for the next one.

// MayBeDownstream reports whether input i is of a kind that this operator writes.
func (p *Pipeline) MayBeDownstream(i int) bool {
	gk := p.Inputs[i].Kind.GVK.GroupKind()
	return slices.ContainsFunc(p.Downstreams, func(d *Downstream) bool { return d.GVK().GroupKind() == gk })
}

// ReadsOwn reports whether anything may be read that this operator writes itself.
func (p *Pipeline) ReadsOwn() bool {
	return p.readsStatus || slices.ContainsFunc(p.Inputs, func(s *InputSource) bool { return p.MayBeDownstream(s.Index) })
}

// Feedback says how the desired state for downstream i can follow from what this operator writes itself. own are the inputs, by index,
// that are its downstreams.
func (p *Pipeline) Feedback(i int, own []int) string {
	d := p.Downstreams[i]
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
func (p *Pipeline) reads(d *Downstream, k int) bool {
	from := []int{d.Index}
	for at := 0; at < len(from); at++ {
		d := p.Downstreams[from[at]]
		if d.inputs.has(k) || d.whenInputs.has(k) || d.itemsInputs.has(k) || p.validatorInputs.has(k) {
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
