package compile

import (
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// observedGenerationPath is where a kind's own controller says which generation it has seen.
const observedGenerationPath = ".status.observedGeneration"

// setViews sets what the caches keep of live downstreams: what ready and status expressions read, and no more.
func setViews(p *Pipeline) {
	conv := p.Config.Conventions
	for _, d := range p.downstreams {
		v := drift.View{Manager: conv.FieldManager, Hash: p.Hash, OwnerAnnotation: conv.Owner.Annotation, Initial: d.View.Initial, Generated: len(d.Generated), Exclusive: d.View.Exclusive, Aside: marks.Aside(p.Settings), Previous: p.Previous, Words: d.Words}
		if adopt := d.Config.Adopt; adopt != nil {
			v.Adopt = adopt.FieldManagers
		}
		for _, r := range append(append([]health.Rule{}, d.rules.Ready...), d.rules.Failed...) {
			keep(&v, r.Program, "downstream", nil)
		}
		keep(&v, d.rules.MessageFrom, "downstream", nil)
		if d.rules.HasObservedGeneration {
			v.Keep = append(v.Keep, []string{"status", "observedGeneration"})
		}
		v.Keep, v.KeepWhole = append(v.Keep, d.Shown.Paths...), v.KeepWhole || d.Shown.Whole
		for _, program := range p.Fields {
			keep(&v, program, "downstreams", d.Downstream.Downstream)
		}
		d.View = v
	}
}
