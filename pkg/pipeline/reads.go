package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corollary-dev/corollary/pkg/rules"
)

// This file is about what expressions and templates read beside the upstream: parameters and inputs.

// parameters takes the constants of the config over as JSON values.
func (c *compiler) parameters() {
	text, err := utiljson.Marshal(c.file.Operator.Parameters)
	if err == nil && len(c.file.Operator.Parameters) > 0 {
		err = utiljson.Unmarshal(text, &c.p.params)
	}
	if err != nil {
		c.fail("parameters", "write values that JSON has", "%v", err)
	}
}

// inputs compiles where each input stands. An input's name cannot depend on another input.
func (c *compiler) inputs() {
	for i, s := range c.p.Inputs {
		path := fmt.Sprintf("inputs[%d]", i)
		if s.Config.List != nil {
			c.matching(s, path)
		}
		if s.Config.ObjectName != "" {
			s.objectName = c.program(path+".objectName", func() (*rules.Program, error) {
				return c.env.String(s.Config.ObjectName, rules.Upstream, "")
			})
			if reads := c.programInputs(s.objectName); len(reads) > 0 {
				c.fail(path+".objectName", "name the object by self or params", "objectName reads an input, but inputs are located before any is read")
			}
			c.p.readsStatus = c.p.readsStatus || (s.objectName != nil && readsStatus(s.objectName.Reads))
		}
		c.inputScope(s, path)
	}
}

// inputScope holds an input's namespace to the scope of the kinds, where both are known.
func (c *compiler) inputScope(s *InputSource, path string) {
	key, namespaces := ".namespace", s.Config.Namespace != ""
	if list := s.Config.List; list != nil {
		key, namespaces = ".list.namespaces", len(list.Namespaces) > 0
	}
	switch {
	case s.Kind.GVR.Empty(), s.HasRows():
	case !s.Kind.Namespaced && namespaces:
		c.fail(path+key, "leave it out", "a %s has no namespace", s.Kind.GVK.Kind)
	case !c.p.Upstream.GVR.Empty() && s.Kind.Namespaced && !namespaces && !c.p.Upstream.Namespaced && !c.p.UpstreamIsNamespace():
		c.fail(path, "add "+key[1:]+", which is fixed text", "a cluster-scoped %s has no namespace in which to look for a %s", c.p.Upstream.GVK.Kind, s.Kind.GVK.Kind)
	}
}

// declared reports names of params, variables and inputs that the config does not have. at says where in a template a name stands;
// nil for an expression.
func (c *compiler) declared(path, kind string, names []string, at func(name string) (file string, line int)) {
	known := slices.Sorted(maps.Keys(c.p.params))
	section := "parameters"
	switch kind {
	case "variable":
		known, section = nil, "variables"
		for _, v := range c.file.Operator.Variables {
			known = append(known, v.Name)
		}
	case "downstream":
		known, section = nil, "downstreams"
		for _, d := range c.p.Downstreams {
			known = append(known, d.Name)
		}
	case "input":
		known, section = nil, "inputs"
		for _, s := range c.p.Inputs {
			if s.Name != "" { // the loader reports one without a name
				known = append(known, s.Name)
			}
		}
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		fix := "add it to " + section
		if len(known) > 0 {
			fix += ", or name one of " + strings.Join(known, ", ")
		}
		e := c.file.Errorf(path, fix, "%s %q is not declared", kind, name)
		if at != nil {
			e.File, e.Line = at(name)
		}
		c.addOnce(e)
	}
}

// programReads checks the parameters and inputs that an expression names, and notes what it reads of inputs.
func (c *compiler) programReads(path string, reads func(string) ([][]string, bool)) {
	c.upstreamReadsOf(path, reads)
	for variable, kind := range map[string]string{"params": "parameter", "inputs": "input"} {
		paths, _ := reads(variable)
		var names []string
		for _, p := range paths {
			if len(p) > 0 && !slices.Contains(names, p[0]) {
				names = append(names, p[0])
			}
		}
		c.declared(path, kind, names, nil)
	}
	siblings, all := reads("downstreams")
	var names []string
	for _, p := range siblings {
		names = append(names, strings.Join(p[:min(1, len(p))], ""))
	}
	if all {
		names = append(names, "all of them")
	}
	c.noSiblings(path, names)
	paths, whole := reads("inputs")
	for _, s := range c.p.Inputs {
		s.View.Whole = s.View.Whole || whole
		for _, p := range paths {
			if len(p) > 0 && p[0] == s.Name {
				s.View.add([][]string{p[1:]}, len(p) == 1)
			}
		}
	}
}

// programInputs are the inputs that an expression reads.
func (c *compiler) programInputs(p *rules.Program) inputSet {
	if p == nil {
		return nil
	}
	return c.inputsOf(p.Reads)
}

func (c *compiler) inputsOf(reads func(string) ([][]string, bool)) inputSet {
	var set inputSet
	paths, whole := reads("inputs")
	for i, s := range c.p.Inputs {
		if whole || slices.ContainsFunc(paths, func(p []string) bool { return len(p) == 0 || p[0] == s.Name }) {
			set.add(i)
		}
	}
	return set
}

// holeOf tells where the template's hole is in which a name is given as a constant; its first line if there is none.
func (d *Downstream) holeOf(name string) (file string, line int) {
	for _, h := range d.template.Holes() {
		if strings.Contains(h.Text, strconv.Quote(name)) {
			return d.source.at(h.Line)
		}
	}
	return d.source.at(1)
}

// templateInputs checks the parameters, variables and inputs that a template names, notes what it reads of inputs, and returns which
// ones it reads. at says where a name stands; nil: at path.
func (c *compiler) templateInputs(path string, t text, at func(string) (string, int)) inputSet {
	c.declared(path, "parameter", t.Params(), at)
	c.declared(path, "variable", t.Variables(), at)
	c.declared(path, "input", t.Inputs(), at)
	c.declared(path, "downstream", t.Downstreams(), at)
	c.noSiblings(path, t.Downstreams())
	var set inputSet
	for i, s := range c.p.Inputs {
		paths, whole := t.InputReads(s.Name)
		s.View.add(paths, whole)
		if whole || len(paths) > 0 {
			set.add(i)
		}
	}
	return set
}

// readsStatus reports whether reads may reach the status of self.
func readsStatus(reads func(string) ([][]string, bool)) bool {
	paths, whole := reads("self")
	for _, path := range paths {
		whole = whole || len(path) == 0 || path[0] == "status"
	}
	return whole
}
