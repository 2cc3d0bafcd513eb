package compile

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
)

// compileConventions compiles the labels and annotations that every document of ours gets.
func compileConventions(c *compilation, d *downstream) {
	if d.OwnsFields() { // others choose the labels of their objects
		return
	}
	d.Labels = compileTexts(c, d, "conventions.labels", c.file.Operator.Conventions.Labels)
	annotations := map[string]string{}
	if key := c.p.NameKey(); key != "" {
		annotations[key] = d.Name
	}
	maps.Copy(annotations, c.file.Operator.Conventions.Annotations)
	d.Annotations = compileTexts(c, d, "conventions.annotations", annotations)
	for _, e := range slices.Concat(d.Labels, d.Annotations) {
		d.Inputs.Add(e.Inputs...)
	}
	d.Selector = labels.Set{}
	for _, e := range d.Labels {
		if value, ok := e.Text.Constant(); ok {
			d.Selector[e.Key] = value
		}
	}
}

// noteConventionReads files what labels and annotations read of the upstream.
func noteConventionReads(c *compilation) {
	in, conventions := c.p.rootsOf(nil), &c.file.Operator.Conventions
	for _, texts := range []map[string]string{conventions.Labels, conventions.Annotations} {
		for _, text := range texts {
			noteTextReads(c, "conventions", check.Walk(text, c.p.renderOptions(), in))
		}
	}
}

func compileTexts(c *compilation, d *downstream, path string, entries map[string]string) []desired.TextEntry {
	var list []desired.TextEntry
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		at, text := fmt.Sprintf("%s['%s']", path, key), entries[key]
		t, err := render.CompileText(text, c.p.renderOptions())
		for _, e := range templateErrors(err) {
			if e.Line <= parsing.Lines(text) || !c.wrongHelpers {
				c.failOnce(at, e.Fix, "%s", e.Problem)
			}
		}
		if t != nil {
			for _, found := range check.Walk(text, c.p.renderOptions(), c.p.rootsOf(nil)).Findings {
				if e := c.file.Errorf(at, "", "%s", found.Problem); found.Unsure {
					c.warn(*e)
				} else {
					c.addOnce(e)
				}
			}
			d.texts = append(d.texts, t)
			list = append(list, desired.TextEntry{Key: key, Text: t.Template,
				Inputs: templateInputs(c, at, readingOf(c.p.Renderer, t), nil)})
		}
	}
	return list
}

func conventionTexts(r *desired.Renderer, d *downstream) []text {
	var list []text
	for _, t := range d.texts {
		list = append(list, readingOf(r, t))
	}
	return list
}
