package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// statusReads notes which fields of the status a downstream is made from. A text that reads the whole status does not add to
// them: by name it reads something else.
func (c *compiler) statusReads(d *Downstream) {
	var readers []text
	if d.template != nil {
		readers = append(readers, c.reading(d.template))
	}
	for _, t := range c.conventionTexts(d) {
		readers = append(readers, t)
		c.p.readsStatus = c.p.readsStatus || t.ReadsStatus()
	}
	for _, r := range readers {
		paths, _ := r.StatusReads()
		d.statusReads = append(d.statusReads, paths...)
	}
	if d.when != nil {
		d.statusReads = append(d.statusReads, statusPaths(d.when.Reads)...)
	}
	if d.items != nil {
		d.statusReads = append(d.statusReads, statusPaths(d.items.Reads)...)
	}
}

// statusPaths are the fields of the status that an expression reads; an empty one is the whole.
func statusPaths(reads func(string) ([][]string, bool)) [][]string {
	var list [][]string
	paths, whole := reads("self")
	for _, path := range paths {
		if len(path) > 0 && path[0] == "status" {
			list = append(list, path[1:])
		}
	}
	if whole {
		list = append(list, nil)
	}
	return list
}

const neverSettles = "a value that changes with each write is written forever, at growing intervals (Contested)"

// feedback warns of what reads what this operator writes itself. Whether that settles only running tells.
func (c *compiler) feedback() {
	for _, part := range report.StatusParts(c.p.Settings) {
		named := func(paths [][]string) bool {
			return part.ReadBy(slices.DeleteFunc(slices.Clone(paths), func(path []string) bool { return len(path) == 0 }))
		}
		for i, d := range c.p.Downstreams {
			if !named(d.statusReads) {
				continue
			}
			e := c.file.Errorf(fmt.Sprintf("downstreams[%d]", i), "read what others write; "+neverSettles, "it is made from %s, which %s writes", part.Path, part.Name)
			if d.when != nil && named(statusPaths(d.when.Reads)) {
				e = c.file.Errorf(fmt.Sprintf("downstreams[%d].when", i), e.Fix, "it reads %s, which %s writes", part.Path, part.Name)
			} else if file, line := c.statusHole(d, part); line > 0 {
				e.File, e.Line, e.Path = file, line, fmt.Sprintf("downstreams[%d].template", i)
			}
			c.p.Warnings = append(c.p.Warnings, *e)
		}
		for i := range c.validations() {
			reads := func(variable string) ([][]string, bool) { return c.p.validator.ReadsOf(i, rules.PartRule, variable) }
			if named(statusPaths(reads)) {
				c.p.Warnings = append(c.p.Warnings, *c.file.Errorf(fmt.Sprintf("validate[%d].rule", i), "read what others write; "+neverSettles, "it reads %s, which %s writes", part.Path, part.Name))
			}
		}
	}
	c.ownInputs()
}

func (c *compiler) validations() []config.Rule {
	if c.p.validator == nil {
		return nil
	}
	return c.file.Operator.Validate
}

// statusHole finds the hole of a downstream's template that reads a part of the status.
func (c *compiler) statusHole(d *Downstream, part report.StatusPart) (string, int) {
	if d.template == nil {
		return "", 0
	}
	for _, h := range d.template.Holes() {
		if strings.Contains(h.Text, ".status."+part.Path[1].Field) {
			return d.source.at(h.Line)
		}
	}
	return "", 0
}

// ownInputs warns of inputs that are downstreams of the config itself, where what reads them is what they are made from.
func (c *compiler) ownInputs() {
	for k, s := range c.p.Inputs {
		for _, d := range c.p.Downstreams {
			if s.Kind.GVK.GroupKind() != d.GVK().GroupKind() || d.Config.UpdatePolicy == config.UpdateCreateOnly || !c.sameObject(s, d) || !c.makes(k, d) {
				continue
			}
			is := "is"
			if s.Config.List != nil {
				is = "has"
			}
			c.p.Warnings = append(c.p.Warnings, *c.file.Errorf(fmt.Sprintf("inputs[%d]", k), "read what others write; "+neverSettles,
				"input %s %s the object of downstream %s, which is rendered from it", s.Name, is, d.Name))
		}
	}
}

// makes reports whether downstream d is made from input k, by itself or by way of other downstreams that are inputs.
func (c *compiler) makes(k int, d *Downstream) bool {
	from, todo := map[int]bool{}, []*Downstream{d}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		for i, s := range c.p.Inputs {
			if from[i] || !c.p.reads(next, i) {
				continue
			}
			from[i] = true
			for _, other := range c.p.Downstreams {
				if s.Kind.GVK.GroupKind() == other.GVK().GroupKind() && c.sameObject(s, other) {
					todo = append(todo, other)
				}
			}
		}
	}
	return from[k]
}

var nameLine = regexp.MustCompile(`^\s*(?:metadata:\s*\{)?\s*name:\s*(.*?)\s*\}?\s*$`)

// sameObject reports whether an input stands where a downstream is made, by evaluating both names for one made-up upstream. What
// cannot be evaluated so is taken for another object.
func (c *compiler) sameObject(s *InputSource, d *Downstream) bool {
	namespace := ""
	var line string
	if d.template == nil || s.Config.List != nil {
		return s.mayList(d)
	}
	for _, f := range d.template.Fields() {
		switch strings.Join(f.Path, ".") {
		case "metadata.namespace":
			if namespace = fmt.Sprint(f.Value); !f.Constant {
				return false
			}
		case "metadata.name":
			lines := strings.Split(d.source.text, "\n")
			if m := nameLine.FindStringSubmatch(lines[min(len(lines), max(f.Line, 1))-1]); m != nil {
				line = strings.Trim(m[1], `"'`)
			}
		}
	}
	watched := c.file.Operator.Watch.Namespaces
	if fixed := cmp.Or(s.Config.Namespace, namespace); line == "" || fixed != namespace && len(watched) > 0 && !slices.Contains(watched, fixed) {
		return false
	}
	text, err := render.CompileText(line, c.p.renderOptions())
	if err != nil {
		return false
	}
	upstream := probe(s)
	made, err := text.Execute(render.Data{Upstream: upstream, Params: c.p.params})
	if err != nil {
		return false
	}
	read, err := s.nameFor(rules.Vars{Self: upstream, Params: c.p.params}, rules.NewBudget(context.Background()))
	return err == nil && read == made
}

// mayList reports whether an input is a list that has the objects of a downstream, by their labels. What an expression leaves of them
// is not known before it is evaluated.
func (s *InputSource) mayList(d *Downstream) bool {
	selector, err := s.Selects()
	return s.Config.List != nil && s.matching == nil && err == nil && selector.Matches(d.Selector)
}

// probe is an upstream in which every field that an input's name reads has a text of its own.
func probe(s *InputSource) map[string]any {
	up := map[string]any{}
	paths := [][]string{{"metadata", "name"}, {"metadata", "namespace"}}
	if s.objectName != nil {
		more, _ := s.objectName.Reads("self")
		paths = append(paths, more...)
	}
	for _, path := range paths {
		_ = fieldpath.Set(up, fieldpath.New(path...), strings.ToLower(strings.Join(path, "-")))
	}
	return up
}
