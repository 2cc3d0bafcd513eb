package compile

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// compilation carries one compilation from step to step.
type compilation struct {
	problems
	p   *Pipeline
	env *rules.Env
}

// expression compiles one expression and files its error under path.
func (c *compilation) expression(path string, compile func() (*rules.Program, error)) *rules.Program {
	program, err := compile()
	if err != nil {
		c.expressionError(path, err)
		return nil
	}
	c.programReads(path, program.Reads)
	return program
}

func (c *compilation) expressionError(path string, err error) {
	var ce *rules.CompileError
	var ve *rules.ValueError
	switch {
	case errors.As(err, &ve):
		c.fail(path, ve.Fix, "%s", ve.Problem)
		return
	case !errors.As(err, &ce):
		c.fail(path, "", "%v", err)
		return
	}
	e := c.file.Errorf(path, ce.Fix, "%s", ce.Problem)
	if file, line := c.file.TextPos(path); ce.Line > 1 && line > 0 {
		e.File, e.Line = file, line+ce.Line-1
	}
	c.errs = append(c.errs, e)
}

// upstreamReads files reads of the upstream under the downstream that a path of the config is in, or under -1.
func (c *compilation) upstreamReads(path string, reads ...check.Read) {
	i := -1
	if rest, ok := strings.CutPrefix(path, "downstreams["); ok {
		_, _ = fmt.Sscanf(rest, "%d].", &i)
	}
	c.p.UpstreamReads[i] = append(c.p.UpstreamReads[i], reads...)
}

// upstreamReadsOf files what an expression reads.
func (c *compilation) upstreamReadsOf(path string, reads func(string) ([][]string, bool)) {
	paths, whole := reads("self")
	if whole {
		c.upstreamReads(path, check.Read{Whole: true})
	}
	for _, p := range paths {
		c.upstreamReads(path, check.Read{Path: p, Whole: true})
	}
}

// readers are the places of the config that may read downstreams.
var readers = regexp.MustCompile(`^(variables\[|status\.fields\[|rollout\.haltWhen\[|downstreams\[\d+\]\.(when|forEach\.items|template)$)`)

// noSiblings reports downstreams that are read where none can be.
func (c *compilation) noSiblings(path string, names []string) {
	if len(names) > 0 && !readers.MatchString(path) {
		c.fail(path, "a template, when, forEach.items, status.fields and rollout.haltWhen can",
			"it cannot read downstreams, and it reads %s", strings.Join(names, ", "))
	}
}

// declared reports names of params, variables and inputs that the config does not have. at says where in a template a
// name is; nil for an expression.
func (c *compilation) declared(path, kind string, names []string, at func(name string) (file string, line int)) {
	known := slices.Sorted(maps.Keys(c.p.Params))
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
func (c *compilation) programReads(path string, reads func(string) ([][]string, bool)) {
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
				s.View.Add([][]string{p[1:]}, len(p) == 1)
			}
		}
	}
}

// programInputs are the inputs that an expression reads.
func (c *compilation) programInputs(p *rules.Program) desired.InputSet {
	if p == nil {
		return nil
	}
	return c.inputsOf(p.Reads)
}

func (c *compilation) inputsOf(reads func(string) ([][]string, bool)) desired.InputSet {
	var set desired.InputSet
	paths, whole := reads("inputs")
	for i, s := range c.p.Inputs {
		if whole || slices.ContainsFunc(paths, func(p []string) bool { return len(p) == 0 || p[0] == s.Name }) {
			set.Add(i)
		}
	}
	return set
}
