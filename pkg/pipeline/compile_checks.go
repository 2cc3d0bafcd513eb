package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// rootsOf are the schemas of what the template of a downstream begins with.
func (p *Pipeline) rootsOf(d *Downstream) check.Roots {
	in := check.Roots{Upstream: p.Upstream.Schema, Variables: map[string]*spec.Schema{}, Objects: map[string]*spec.Schema{}}
	for _, s := range p.Inputs {
		in.Objects[check.ObjectName("input", s.Name)] = check.Object(s.Kind.Schema, s.Config.List != nil, false)
	}
	for _, other := range p.Downstreams {
		in.Objects[check.ObjectName("downstream", other.Name)] = check.Object(other.Kind.Schema, false, other.Several())
	}
	for _, v := range p.variables {
		if v.program != nil {
			in.Variables[v.name] = v.program.Schema()
		}
	}
	if d.items != nil {
		in.Item = d.items.Schema()
	}
	return in
}

// variableReads are the fields of the upstream that a variable reads.
func (p *Pipeline) variableReads(name string) [][]string {
	program := p.variable(name)
	if program == nil {
		return nil
	}
	paths, _ := program.Reads("self")
	return paths
}

// undeclared refuses fields that a template reads and that are never there, since an API server drops what the schema of a kind does not
// declare. It warns of those that rendering does not need.
func (c *compiler) undeclared(d *Downstream, w *check.Walked) {
	for _, found := range w.Findings {
		if wrong := d.source.problem(found.Line, found.Problem, ""); found.Unsure {
			c.warn(wrong)
		} else {
			c.addOnce(&wrong)
		}
	}
}

// refused files what is wrong with the documents of a template.
func (c *compiler) refused(d *Downstream, documents *check.Documents) {
	for _, found := range documents.Findings() {
		e := d.source.problem(found.Line, found.Problem, found.Fix)
		if found.Other > 0 {
			_, other := d.source.at(found.Other)
			e.Problem += fmt.Sprintf(", the other in line %d", other)
		}
		switch {
		case c.reported(e):
		case found.Unsure:
			c.warn(e)
		default:
			c.p.Refusals = append(c.p.Refusals, e)
		}
	}
}

// reported reports whether something was said already of the field that is named in a problem.
func (c *compiler) reported(e config.Error) bool {
	same := func(have config.Error) bool {
		return have.File == e.File && have.Line == e.Line && have.Path == e.Path && (have.Problem == e.Problem || strings.HasPrefix(have.Problem, "metadata"))
	}
	return slices.ContainsFunc(c.p.Warnings, same) || slices.ContainsFunc(c.p.Refusals, same) ||
		slices.ContainsFunc(c.errs, func(have *config.Error) bool { return same(*have) })
}

func (c *compiler) warn(e config.Error) {
	if !slices.Contains(c.p.Warnings, e) {
		c.p.Warnings = append(c.p.Warnings, e)
	}
}

// statusField holds a field of status.fields to the upstream's schema.
func (c *compiler) statusField(i int, path fieldpath.Path, program *rules.Program) {
	var result *spec.Schema
	if program != nil {
		result = program.Result()
	}
	found := check.StatusField(c.p.Upstream, path, result)
	switch at := fmt.Sprintf("status.fields[%d]", i); {
	case found == nil:
	case found.Unsure:
		c.warn(*c.file.Errorf(at+".path", found.Fix, "%s", found.Problem))
	default:
		c.p.Refusals = append(c.p.Refusals, *c.file.Errorf(at+".value", found.Fix, "%s", found.Problem))
	}
}

// StructureHoles returns the holes of a downstream through which a custom resource can put a map or list into the
// document, and how many of the holes that stand alone cannot hold one.
func (p *Pipeline) StructureHoles(d *Downstream) (open []render.Hole, closed int) {
	return check.Walk(d.Config.Template, p.renderOptions(), p.rootsOf(d)).StructureHoles(d.Holes())
}

// Place tells file and line of a line of a downstream's template, such as that of a hole or of an error.
func (d *Downstream) Place(line int) (file string, at int) { return d.source.at(line) }
