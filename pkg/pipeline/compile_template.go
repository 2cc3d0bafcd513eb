package pipeline

import (
	"errors"
	"fmt"
	"sort"

	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
)

func (c *compiler) template(d *Downstream) {
	file, first := c.file.TemplatePos(d.Index)
	c.compileTemplate(d, newSource(c.file, fmt.Sprintf("downstreams[%d].template", d.Index), d.Config.Template, file, first))
	c.p.readsStatus = c.p.readsStatus || (d.template != nil && c.reading(d.template).ReadsStatus())
}

// helpers checks the helpers by themselves.
func (c *compiler) helpers() {
	s := newSource(c.file, "helpers", "", "", 0)
	for _, e := range templateErrors(render.CheckHelpers(c.p.renderOptions())) {
		wrong := s.problem(e.Line, e.Problem, e.Fix)
		c.errs, c.wrongHelpers = append(c.errs, &wrong), true
	}
}

func (c *compiler) compileTemplate(d *Downstream, s source) {
	if d.source = s; d.Config.Template == "" {
		return // the loader has reported that
	}
	options := c.p.renderOptions()
	walked := check.Walk(d.Config.Template, options, c.p.rootsOf(d))
	c.textReads(s.path, walked)
	documents := walked.Documents(d.Kind, d.OwnsFields())
	if d.updatesInPlace() && c.p.Upstream.Schema != nil {
		documents.UpdatedInPlace(c.p.Upstream.Schema, c.p.variableReads)
	}
	options.Probed, options.Items = documents.Add, d.Several()
	t, err := render.Compile(d.Config.Template, options)
	d.template = t
	for _, e := range templateErrors(err) {
		if e.Line <= s.lines || !c.wrongHelpers {
			wrong := s.problem(e.Line, e.Problem, e.Fix)
			c.errs = append(c.errs, &wrong)
		}
	}
	if t != nil {
		d.inputs.add(c.templateInputs(s.path, c.reading(t), d.holeOf)...)
		c.fields(d)
		c.undeclared(d, walked)
		c.refused(d, documents)
	}
}

// templateErrors unpacks what render.Compile returns: one error or several.
func templateErrors(err error) []*render.Error {
	var several render.Errors
	var one *render.Error
	switch {
	case errors.As(err, &several):
		return several
	case errors.As(err, &one):
		return []*render.Error{one}
	case err != nil:
		return []*render.Error{{Line: 1, Problem: err.Error()}}
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
			o.Lists = append(o.Lists, render.DownstreamKey(d.Name))
		}
	}
	if d := p.Config.Delimiters; len(d) == 2 {
		o.Left, o.Right = d[0], d[1]
	}
	return o
}

func (c *compiler) texts(path string, entries map[string]string) []textEntry {
	var list []textEntry
	for key, text := range entries {
		at := fmt.Sprintf("%s['%s']", path, key)
		t, err := render.CompileText(text, c.p.renderOptions())
		for _, e := range templateErrors(err) {
			if e.Line <= parsing.Lines(text) || !c.wrongHelpers {
				c.failOnce(at, e.Fix, "%s", e.Problem)
			}
		}
		if t != nil {
			for _, found := range check.Walk(text, c.p.renderOptions(), c.p.rootsOf(&Downstream{})).Findings {
				if e := c.file.Errorf(at, "", "%s", found.Problem); found.Unsure {
					c.warn(*e)
				} else {
					c.addOnce(e)
				}
			}
			list = append(list, textEntry{key: key, text: t, inputs: c.templateInputs(at, c.reading(t), nil)})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].key < list[j].key })
	return list
}
