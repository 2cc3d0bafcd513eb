package compile

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// warnOfFeedback warns of what reads what this operator writes itself. Only running shows whether that settles.
func warnOfFeedback(c *compilation) {
	for _, part := range report.StatusParts(c.p.Settings) {
		named := func(paths [][]string) bool {
			return part.ReadBy(slices.DeleteFunc(slices.Clone(paths), func(path []string) bool { return len(path) == 0 }))
		}
		for i, d := range c.p.downstreams {
			if !named(d.statusReads) {
				continue
			}
			e := c.file.Errorf(fmt.Sprintf("downstreams[%d]", i), "read what others write; "+neverSettles,
				"it is made from %s, which %s writes", part.Path, part.Name)
			if d.When != nil && named(statusPaths(d.When.Reads)) {
				e = c.file.Errorf(fmt.Sprintf("downstreams[%d].when", i), e.Fix,
					"it reads %s, which %s writes", part.Path, part.Name)
			} else if file, line := statusHole(d, part); line > 0 {
				e.File, e.Line, e.Path = file, line, fmt.Sprintf("downstreams[%d].template", i)
			}
			c.warnings = append(c.warnings, *e)
		}
		for i := range c.file.Operator.Validate {
			if c.p.Validator != nil && named(statusPaths(readsOfRule(c.p.Validator, i, rules.PartRule))) {
				c.warnings = append(c.warnings, *c.file.Errorf(fmt.Sprintf("validate[%d].rule", i),
					"read what others write; "+neverSettles, "it reads %s, which %s writes", part.Path, part.Name))
			}
		}
	}
	warnOfOwnInputs(c)
}

// statusHole finds the hole of a downstream's template that reads a part of the status.
func statusHole(d *downstream, part report.StatusPart) (string, int) {
	if d.template == nil {
		return "", 0
	}
	for _, h := range d.template.Holes {
		if strings.Contains(h.Text, ".status."+part.Path[1].Field) {
			return d.source.at(h.Line)
		}
	}
	return "", 0
}

const neverSettles = "a value that changes with each write is written forever, at growing intervals (Contested)"

// warnOfOwnInputs warns of inputs that are downstreams of the config itself, where what reads them is what they are
// made from.
func warnOfOwnInputs(c *compilation) {
	for k, s := range c.p.Inputs {
		for _, d := range c.p.downstreams {
			if s.Kind.GVK.GroupKind() != d.GVK().GroupKind() || d.Config.UpdatePolicy == config.UpdateCreateOnly ||
				!isSameObject(c.p, s, d) || !comesFrom(c.p, k, d) {
				continue
			}
			verb := "is"
			if s.Config.List != nil {
				verb = "has"
			}
			c.warnings = append(c.warnings, *c.file.Errorf(fmt.Sprintf("inputs[%d]", k), "read what others write; "+neverSettles,
				"input %s %s the object of downstream %s, which is rendered from it", s.Name, verb, d.Name))
		}
	}
}

// comesFrom reports whether downstream d is made from input k, by itself or by way of other downstreams that are
// inputs.
func comesFrom(p *Pipeline, k int, d *downstream) bool {
	from, todo := map[int]bool{}, []*downstream{d}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		for i, s := range p.Inputs {
			if from[i] || !p.isMadeFrom(next, i) {
				continue
			}
			from[i] = true
			for _, other := range p.downstreams {
				if s.Kind.GVK.GroupKind() == other.GVK().GroupKind() && isSameObject(p, s, other) {
					todo = append(todo, other)
				}
			}
		}
	}
	return from[k]
}

var nameLine = regexp.MustCompile(`^\s*(?:metadata:\s*\{)?\s*name:\s*(.*?)\s*\}?\s*$`)

// isSameObject reports whether an input is where a downstream is made, by evaluating both names for one made-up
// upstream. What cannot be evaluated so is taken for another object.
func isSameObject(p *Pipeline, s *desired.InputSource, d *downstream) bool {
	namespace := ""
	var line string
	if d.template == nil || s.Config.List != nil {
		return mayList(s, d)
	}
	for _, f := range d.template.Fields {
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
	watched := p.Config.Watch.Namespaces
	if fixed := cmp.Or(s.Config.Namespace, namespace); line == "" || fixed != namespace && len(watched) > 0 &&
		!slices.Contains(watched, fixed) {
		return false
	}
	text, err := render.CompileText(line, p.renderOptions())
	if err != nil {
		return false
	}
	upstream := probe(s)
	made, err := text.ExecuteText(program.Data{Upstream: upstream, Params: p.Params})
	if err != nil {
		return false
	}
	read, err := s.NameFor(rules.Vars{Self: upstream, Params: p.Params}, rules.NewBudget(context.Background()))
	return err == nil && read == made
}

// mayList reports whether an input is a list that has the objects of a downstream, by their labels. What an expression
// leaves of them is not known before it is evaluated.
func mayList(s *desired.InputSource, d *downstream) bool {
	selector, err := s.Selects()
	return s.Config.List != nil && s.Matching == nil && err == nil && selector.Matches(d.Selector)
}

// probe is an upstream in which every field that an input's name reads has a text of its own.
func probe(s *desired.InputSource) map[string]any {
	up := map[string]any{}
	paths := [][]string{{"metadata", "name"}, {"metadata", "namespace"}}
	if s.ObjectName != nil {
		more, _ := s.ObjectName.Reads("self")
		paths = append(paths, more...)
	}
	for _, path := range paths {
		_ = fieldpath.Set(up, fieldpath.New(path...), strings.ToLower(strings.Join(path, "-")))
	}
	return up
}
