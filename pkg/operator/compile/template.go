package compile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/render/holes"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// rootsOf are the schemas of what a template begins with. items gives what it has as its item; nil if it has none.
func (p *Pipeline) rootsOf(items *rules.Program) check.Roots {
	in := check.Roots{Upstream: p.Upstream.Schema, Variables: map[string]*spec.Schema{},
		Objects: map[string]*spec.Schema{}}
	for _, s := range p.Inputs {
		in.Objects[check.ObjectName("input", s.Name)] = check.Object(s.Kind.Schema, s.Config.List != nil, false)
	}
	for _, other := range p.Downstreams {
		in.Objects[check.ObjectName("downstream", other.Name)] = check.Object(other.Kind.Schema, false, other.Several())
	}
	for _, v := range p.Variables {
		if v.Program != nil {
			in.Variables[v.Name] = v.Program.Schema()
		}
	}
	if items != nil {
		in.Item = items.Schema()
	}
	return in
}

// variableReads are the fields of the upstream that a variable reads.
func (p *Pipeline) variableReads(name string) [][]string {
	program := p.VariableProgram(name)
	if program == nil {
		return nil
	}
	paths, _ := program.Reads("self")
	return paths
}

// StructureHoles returns the holes of a downstream through which a custom resource can put a map or list into the
// document, and how many of the holes that are a whole value cannot hold one.
func (p *Pipeline) StructureHoles(d *desired.Downstream) (open []holes.Hole, closed int) {
	of := p.before
	if d.Index != operator.BeforeIndex {
		of = p.downstreams[d.Index]
	}
	return check.Walk(d.Config.Template, p.renderOptions(), p.rootsOf(d.Items)).StructureHoles(of.template.Holes)
}

// noteTextReads files what a template or a text reads, through variables, too.
func noteTextReads(c *compilation, path string, w *check.Walked) {
	c.upstreamReads(path, w.Reads...)
	for _, name := range w.Variables {
		if program := c.p.VariableProgram(name); program != nil {
			c.upstreamReadsOf(path, program.Reads)
		}
	}
}

func compileOwnTemplate(c *compilation, d *downstream) {
	file, first := c.file.TemplatePos(d.Index)
	compileTemplate(c, d, newSource(c.file, fmt.Sprintf("downstreams[%d].template", d.Index),
		d.Config.Template, file, first))
	c.p.ReadsStatus = c.p.ReadsStatus || (d.template != nil && readingOf(c.p.Renderer, d.template).ReadsStatus())
}

// checkHelpers checks the helpers by themselves.
func checkHelpers(c *compilation) {
	s := newSource(c.file, "helpers", "", "", 0)
	for _, e := range templateErrors(render.CheckHelpers(c.p.renderOptions())) {
		wrong := s.problem(e.Line, e.Problem, e.Fix)
		c.errs, c.wrongHelpers = append(c.errs, &wrong), true
	}
}

func compileTemplate(c *compilation, d *downstream, s source) {
	if d.source, d.Place = s, s.at; d.Config.Template == "" {
		return // the loader has reported that
	}
	options := c.p.renderOptions()
	walked := check.Walk(d.Config.Template, options, c.p.rootsOf(d.Items))
	noteTextReads(c, s.path, walked)
	documents := walked.Documents(d.Kind, d.OwnsFields())
	if d.updatesInPlace() && c.p.Upstream.Schema != nil {
		documents.UpdatedInPlace(c.p.Upstream.Schema, c.p.variableReads)
	}
	options.Probed, options.Items = documents.Add, d.Several()
	t, err := render.Compile(d.Config.Template, options)
	for _, e := range templateErrors(err) {
		if e.Line <= s.lines || !c.wrongHelpers {
			wrong := s.problem(e.Line, e.Problem, e.Fix)
			c.errs = append(c.errs, &wrong)
		}
	}
	if t != nil {
		d.template, d.Template = t, t.Template
		d.Inputs.Add(templateInputs(c, s.path, readingOf(c.p.Renderer, t), d.holeOf)...)
		checkFields(c, d)
		reportUndeclared(c, d, walked)
		reportRefused(c, d, documents)
	}
}

// templateErrors unpacks what render.Compile returns: one error or several.
func templateErrors(err error) []*parsing.Error {
	var several parsing.Errors
	var one *parsing.Error
	switch {
	case errors.As(err, &several):
		return several
	case errors.As(err, &one):
		return []*parsing.Error{one}
	case err != nil:
		return []*parsing.Error{{Line: 1, Problem: err.Error()}}
	}
	return nil
}

func (p *Pipeline) renderOptions() render.Options {
	o := render.Options{Helpers: p.Config.Helpers}
	for _, s := range p.Inputs {
		if s.Config.List != nil {
			o.Lists = append(o.Lists, s.Name)
		}
	}
	for _, d := range p.Downstreams {
		if d.Several() {
			o.Lists = append(o.Lists, parsing.DownstreamKey(d.Name))
		}
	}
	if d := p.Config.Delimiters; len(d) == 2 {
		o.Left, o.Right = d[0], d[1]
	}
	return o
}

// holeOf returns where the template's hole is in which a name is given as a constant; its first line if there is none.
func (d *downstream) holeOf(name string) (file string, line int) {
	for _, h := range d.template.Holes {
		if strings.Contains(h.Text, strconv.Quote(name)) {
			return d.source.at(h.Line)
		}
	}
	return d.source.at(1)
}

// templateInputs checks the parameters, variables and inputs that a template names, notes what it reads of inputs, and
// returns which ones it reads. at says where a name is; nil: at path.
func templateInputs(c *compilation, path string, t text, at func(string) (string, int)) desired.InputSet {
	c.declared(path, "parameter", t.Params(), at)
	c.declared(path, "variable", t.Variables(), at)
	c.declared(path, "input", t.Inputs(), at)
	c.declared(path, "downstream", t.Downstreams(), at)
	c.noSiblings(path, t.Downstreams())
	var set desired.InputSet
	for i, s := range c.p.Inputs {
		paths, whole := t.InputReads(s.Name)
		s.View.Add(paths, whole)
		if whole || len(paths) > 0 {
			set.Add(i)
		}
	}
	return set
}
