package pipeline

import (
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// observedGenerationPath is where a kind's own controller says which generation it has seen.
const observedGenerationPath = ".status.observedGeneration"

// views tells the caches what to keep of live downstreams: what ready and status expressions read, and no more.
func (c *compiler) views() {
	conv := c.file.Operator.Conventions
	for _, d := range c.p.Downstreams {
		v := drift.View{Manager: conv.FieldManager, Hash: c.p.Hash, OwnerAnnotation: conv.Owner.Annotation, Initial: d.View.Initial, Generated: len(d.Generated), Exclusive: d.View.Exclusive, Aside: marks.Aside(c.p.Settings), Previous: c.p.Previous, Words: d.Words}
		if adopt := d.Config.Adopt; adopt != nil {
			v.Adopt = adopt.FieldManagers
		}
		for _, r := range append(append([]readyRule{}, d.ready...), d.failed...) {
			keep(&v, r.program, "downstream", nil)
		}
		keep(&v, d.messageFrom, "downstream", nil)
		if d.hasObservedGeneration {
			v.Keep = append(v.Keep, []string{"status", "observedGeneration"})
		}
		v.Keep, v.KeepWhole = append(v.Keep, d.shown.Paths...), v.KeepWhole || d.shown.Whole
		for _, program := range c.p.fields {
			keep(&v, program, "downstreams", d)
		}
		d.View = v
	}
}

// keep adds what a program reads below variable (and, of the map downstreams, below a downstream) to a view.
func keep(v *drift.View, program *rules.Program, variable string, d *Downstream) {
	if program == nil {
		return
	}
	paths, whole := program.Reads(variable)
	if whole {
		v.KeepWhole = true
		return
	}
	for _, path := range paths {
		if d != nil {
			if len(path) == 0 || path[0] != d.Name {
				continue
			}
			if path = path[1:]; d.Several() && len(path) > 0 {
				path = path[1:] // the name of an object
			}
		}
		if len(path) == 0 {
			v.KeepWhole = true
			return
		}
		v.Keep = append(v.Keep, path)
	}
}
