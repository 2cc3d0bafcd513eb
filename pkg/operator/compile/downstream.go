package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

func compileDownstream(c *compilation, i int) {
	d, cfg := c.p.downstreams[i], c.p.downstreams[i].Config
	path := fmt.Sprintf("downstreams[%d]", i)
	compileForEach(c, d, path)
	compileWhen(c, d, path)
	compileOwnTemplate(c, d)
	d.NamesItems = d.Several() && readsItem(c.p.Settings, textAt(c.p.Settings, d, "name"))
	checkScope(c, d, path)
	compileConventions(c, d)
	noteStatusReads(c.p, d)
	d.rules.Ready = compileRules(c, d, path+".ready.rules", cfg.Ready.Rules, "waiting for")
	d.rules.Failed = compileRules(c, d, path+".ready.failed", cfg.Ready.Failed, "failed, since")
	switch cfg.Ready.ObservedGeneration {
	case config.ObservedRequired:
		d.rules.HasObservedGeneration = true
	case config.ObservedOptional:
	default:
		d.rules.HasObservedGeneration = d.Kind.Schema != nil && d.Kind.HasStatus &&
			status.Probe(d.Kind.Schema).Stores(observedGenerationPath)
	}
	if cfg.Ready.MessageFrom != "" {
		d.rules.MessageFrom = c.expression(path+".ready.messageFrom", func() (*rules.Program, error) {
			return c.env.String(cfg.Ready.MessageFrom, rules.Downstream, d.Name)
		})
	}
	for _, r := range slices.Concat(d.rules.Ready, d.rules.Failed, []health.Rule{{Program: d.rules.MessageFrom}}) {
		d.rules.ReadsItem = d.rules.ReadsItem || r.Program != nil && reaches(r.Program.Reads, "item", "")
	}
	d.View.Initial = parsePaths(cfg.Drift.InitialFields)
	for _, g := range cfg.Generated {
		if key, ok := g.Key(); ok && g.Length != nil {
			d.Generated = append(d.Generated, operator.GeneratedField{Key: key, Length: *g.Length,
				Characters: g.Charset.Characters()})
			d.View.Initial = append(d.View.Initial, fieldpath.New("data", key))
		}
	}
	d.View.Exclusive = parsePaths(cfg.Drift.ExclusiveFields)
}

// parsePaths parses paths, without those that the loader has reported.
func parsePaths(texts []string) []fieldpath.Path {
	var paths []fieldpath.Path
	for _, text := range texts {
		if path, err := fieldpath.Parse(text); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// compileForEach compiles the items. It comes before all other expressions of the downstream, which may read item.
func compileForEach(c *compilation, d *downstream, path string) {
	if !d.Several() {
		return
	}
	d.Items = c.expression(path+".forEach.items", func() (*rules.Program, error) {
		return c.env.Items(d.Config.ForEach.Items, d.Name)
	})
	d.ItemsInputs = c.programInputs(d.Items)
	d.ItemsVary = len(d.ItemsInputs) > 0 || d.Items != nil && d.ReadsSiblings(d.Items)
	c.p.ReadsStatus = c.p.ReadsStatus || (d.Items != nil && readsStatus(d.Items.Reads))
}

func compileWhen(c *compilation, d *downstream, path string) {
	if d.Config.When == "" || d.Config.When == "true" {
		return
	}
	d.When = c.expression(path+".when", func() (*rules.Program, error) {
		return c.env.Bool(d.Config.When, rules.Sibling, d.Name)
	})
	d.WhenInputs = c.programInputs(d.When)
	c.p.ReadsStatus = c.p.ReadsStatus || (d.When != nil && readsStatus(d.When.Reads))
}

func compileRules(c *compilation, d *downstream, path string, list []config.ReadyRule, lead string) []health.Rule {
	var out []health.Rule
	for i, r := range list {
		at := fmt.Sprintf("%s[%d].rule", path, i)
		program := c.expression(at, func() (*rules.Program, error) {
			return c.env.Bool(r.Rule, rules.Downstream, d.Name)
		})
		message := r.Message
		if message == "" {
			message = lead + ": " + strings.Join(strings.Fields(r.Rule), " ")
		}
		out = append(out, health.Rule{Path: at, Program: program, Message: message})
	}
	return out
}

// noteStatusReads notes which fields of the status a downstream is made from. A text that reads the whole status does
// not add to them: by name it reads something else.
func noteStatusReads(p *Pipeline, d *downstream) {
	var readers []text
	if d.template != nil {
		readers = append(readers, readingOf(p.Renderer, d.template))
	}
	for _, t := range conventionTexts(p.Renderer, d) {
		readers = append(readers, t)
		p.ReadsStatus = p.ReadsStatus || t.ReadsStatus()
	}
	for _, r := range readers {
		paths, _ := r.StatusReads()
		d.statusReads = append(d.statusReads, paths...)
	}
	if d.When != nil {
		d.statusReads = append(d.statusReads, statusPaths(d.When.Reads)...)
	}
	if d.Items != nil {
		d.statusReads = append(d.statusReads, statusPaths(d.Items.Reads)...)
	}
}

// observedGenerationPath is where a kind's own controller says which generation it has seen.
const observedGenerationPath = ".status.observedGeneration"

// setViews sets what the caches keep of live downstreams: what ready and status expressions read, and no more.
func setViews(p *Pipeline) {
	conv := p.Config.Conventions
	for _, d := range p.downstreams {
		v := drift.View{Manager: conv.FieldManager, Hash: p.Hash, OwnerAnnotation: conv.Owner.Annotation,
			NameAnnotation: p.NameKey(), Initial: d.View.Initial, Generated: len(d.Generated), Exclusive: d.View.Exclusive,
			Aside: marks.Aside(p.Settings), Previous: p.Previous, Words: d.Words}
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
		if key := marks.RolloutKey(p.Settings); key != "" {
			v.Keep = append(v.Keep, []string{"metadata", "annotations", key})
		}
		for _, halt := range p.Halts {
			keep(&v, halt.Program, "downstreams", d.Downstream.Downstream)
		}
		d.View = v
	}
}
