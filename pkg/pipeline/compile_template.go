package pipeline

import (
	"errors"
	"fmt"
	"sort"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/render"
)

func (c *compiler) template(d *Downstream) {
	file, first := c.file.TemplatePos(d.Index)
	c.compileTemplate(d, fmt.Sprintf("downstreams[%d].template", d.Index), file, first)
	c.p.readsStatus = c.p.readsStatus || (d.template != nil && c.reading(d.template).ReadsStatus())
}

// compileTemplate compiles the template that stands at a path, its first line at that one of a file.
func (c *compiler) compileTemplate(d *Downstream, path, file string, first int) {
	if d.Config.Template == "" {
		return // the loader has reported that
	}
	types, options := c.types(d), c.renderOptions(d.Name)
	options.Sketch, options.Items = types.document, d.Several()
	t, err := render.Compile(d.Config.Template, options)
	d.template = t
	for _, e := range templateErrors(err) {
		c.errs = append(c.errs, &config.Error{File: file, Line: first + e.Line - 1, Path: path, Problem: e.Problem, Fix: e.Fix})
	}
	if t != nil {
		d.inputs.add(c.templateInputs(path, c.reading(t), holeOf(t, file, first))...)
		c.fields(d, path, file, first)
		c.undeclared(d, path, file, first)
		types.report(c, path, file, first)
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

func (c *compiler) renderOptions(name string) render.Options {
	o := render.Options{Name: name}
	for _, s := range c.p.Inputs {
		if s.Config.List != nil {
			o.Lists = append(o.Lists, s.Name)
		}
	}
	if d := c.file.Operator.Delimiters; len(d) == 2 {
		o.Left, o.Right = d[0], d[1]
	}
	return o
}

func (c *compiler) texts(path string, entries map[string]string) []textEntry {
	var list []textEntry
	for key, text := range entries {
		at := fmt.Sprintf("%s['%s']", path, key)
		t, err := render.CompileText(text, c.renderOptions(key))
		for _, e := range templateErrors(err) {
			c.failOnce(at, e.Fix, "%s", e.Problem)
		}
		if t != nil {
			list = append(list, textEntry{key: key, text: t, inputs: c.templateInputs(at, c.reading(t), nil)})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].key < list[j].key })
	return list
}
