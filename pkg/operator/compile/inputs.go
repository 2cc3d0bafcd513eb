package compile

import (
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// readParameters takes the constants of the config over as JSON values.
func readParameters(c *compilation) {
	text, err := utiljson.Marshal(c.file.Operator.Parameters)
	if err == nil && len(c.file.Operator.Parameters) > 0 {
		err = utiljson.Unmarshal(text, &c.p.Params)
	}
	if err != nil {
		c.fail("parameters", "write values that JSON has", "%v", err)
	}
}

// compileVariables compiles the config's variables, each for those after it.
func compileVariables(c *compilation) {
	for i, v := range c.file.Operator.Variables {
		path := fmt.Sprintf("variables[%d].expression", i)
		program := c.expression(path, func() (*rules.Program, error) { return c.env.Variable(v.Name, v.Expression) })
		c.p.Variables = append(c.p.Variables, desired.Variable{Name: v.Name, Program: program})
	}
}

// compileMatching compiles the expression of a list.
func compileMatching(c *compilation, s *desired.InputSource, path string) {
	// Always kept: they identify the objects of a list.
	s.View.Add([][]string{{"metadata", "namespace"}, {"metadata", "name"}}, false)
	view := &desired.MatchingView{}
	s.View.Matching = view
	expr := s.Config.List.Matching
	if expr == "" {
		return
	}
	s.Matching = c.expression(path+".list.matching", func() (*rules.Program, error) {
		return c.env.Bool(expr, rules.Matching, s.Name)
	})
	if s.Matching == nil {
		return
	}
	c.p.ReadsStatus = c.p.ReadsStatus || readsStatus(s.Matching.Reads)
	view.Paths, view.Whole = s.Matching.Reads("object")
	s.View.Add(view.Paths, view.Whole) // its digest changes whenever the result may
	if equal := s.Matching.Equality(); equal != nil {
		view.Key = equal.Object
	}
}

// compileInputs compiles where each input is. An input's name cannot depend on another input.
func compileInputs(c *compilation) {
	for i, s := range c.p.Inputs {
		path := fmt.Sprintf("inputs[%d]", i)
		if s.Config.List != nil {
			compileMatching(c, s, path)
		}
		if s.Config.ObjectName != "" {
			s.ObjectName = c.expression(path+".objectName", func() (*rules.Program, error) {
				return c.env.String(s.Config.ObjectName, rules.Upstream, "")
			})
			if reads := c.programInputs(s.ObjectName); len(reads) > 0 {
				c.fail(path+".objectName", "name the object by self or params",
					"objectName reads an input, but inputs are located before any is read")
			}
			c.p.ReadsStatus = c.p.ReadsStatus || (s.ObjectName != nil && readsStatus(s.ObjectName.Reads))
		}
		checkInputScope(c, s, path)
	}
}

// checkInputScope holds an input's namespace to the scope of the kinds, where both are known.
func checkInputScope(c *compilation, s *desired.InputSource, path string) {
	key, namespaces := ".namespace", s.Config.Namespace != ""
	if list := s.Config.List; list != nil {
		key, namespaces = ".list.namespaces", len(list.Namespaces) > 0
	}
	switch {
	case s.Kind.GVR.Empty(), s.HasRows():
	case !s.Kind.Namespaced && namespaces:
		c.fail(path+key, "leave it out", "a %s has no namespace", s.Kind.GVK.Kind)
	case !c.p.Upstream.GVR.Empty() && s.Kind.Namespaced && !namespaces &&
		!c.p.Upstream.Namespaced && !c.p.UpstreamIsNamespace():
		c.fail(path, "add "+key[1:]+", which is fixed text", "a cluster-scoped %s has no namespace in which to look for a %s",
			c.p.Upstream.GVK.Kind, s.Kind.GVK.Kind)
	}
}
