package program

import (
	"errors"
	"regexp"
	"strings"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Mode is the conversion at the end of a hole's pipeline.
type Mode uint8

const (
	// ModePlain keeps the value as it is.
	ModePlain Mode = iota
	// ModeYAML is toYaml.
	ModeYAML
	// ModeJSON is toJson.
	ModeJSON
	// ModeJSONRaw is toRawJson.
	ModeJSONRaw
	// ModeJSONPretty is toPrettyJson.
	ModeJSONPretty
	// ModeQuote is quote.
	ModeQuote
	// ModeSingleQuote is squote.
	ModeSingleQuote
)

// Site is a place in a template that an error can name: a hole, or an argument that must not be null.
type Site struct {
	Line, Column int
	// Text is the expression as written: ".spec.tag".
	Text string
	// Path has the fields to read from the base; nil: the base itself.
	Path []string
	// IsMap marks an argument in which a function looks up a key.
	IsMap bool
	// Weight is the number of steps of a counted body.
	Weight int

	// For actions that print only:

	// Source is the whole action, with delimiters.
	Source string
	Mode   Mode
	// Omit: a key or item without a value is omitted.
	Omit bool
	// NewLine: the text begins on a new line (nindent).
	NewLine bool
	// Hole: it prints a value, not the text of an include, which has holes of its own.
	Hole bool
	// InText: it shares its scalar with other text on some path, and so becomes text on every path.
	InText bool
}

// at adds a position to err. It returns a *parsing.Error, and nil, unchanged.
func (s *Site) at(err error) error {
	if err == nil {
		return nil
	}
	var known *parsing.Error
	if errors.As(err, &known) {
		return known
	}
	out := &parsing.Error{Line: s.Line, Column: s.Column, Problem: err.Error(), Action: s.action()}
	var p *values.Problem
	if errors.As(err, &p) {
		out.Fix, out.Kind, out.Limit = p.Fix, p.Kind, p.Limit
		if s.Hole && p.Fix != "" && !strings.Contains(p.Text, s.Text) {
			out.Problem = s.Text + ": " + p.Text
		}
	}
	return out
}

// ErrorAt returns an error of the skeleton at the hole that caused it.
func (s *Site) ErrorAt(e *skeleton.Error) *parsing.Error {
	out := &parsing.Error{Line: s.Line, Column: s.Column, Problem: e.Problem, Fix: e.Fix,
		Action: s.action(), Kind: e.WithoutValues()}
	if e.Named {
		out.Problem, out.Kind = s.Text+" "+e.Problem, s.Text+" "+out.Kind
	}
	return out
}

// action returns the text of the action at the site.
func (s *Site) action() string {
	if s.Source == "" {
		return s.Text
	}
	return parsing.OneLine(s.Source)
}

// helmFields are the fields of a Helm chart's dot that an upstream does not have.
var helmFields = map[string]bool{"Values": true, "Release": true, "Chart": true, "Capabilities": true,
	"Files": true, "Template": true,
	"Subcharts": true}

// missing returns the error for a value that is not set.
func (s *Site) missing() error {
	instead := "…"
	if s.IsMap {
		instead = "dict"
	}
	fix := "set it, or write `(" + s.Text + " | default " + instead + ")` in its place"
	if s.Hole {
		fix = "set it, or let the template use `| default …` or `| omitempty`"
	}
	switch top, _, _ := strings.Cut(strings.TrimPrefix(s.Text, "."), "."); {
	case strings.HasPrefix(s.Text, "input "):
		fix = "there is no such object, which the config allows: write `(" + s.Text + " | default dict)` in its place"
	case strings.HasPrefix(s.Text, "param "):
		fix = "the config declares none of that name: write the value into the template, or read it from the upstream"
	case strings.HasPrefix(s.Text, ".") && helmFields[top]:
		fix = "the dot is the upstream, with .metadata and .spec; there is no ." + top + " as in a Helm chart"
	}
	problem := s.Text + " is not set"
	e := &parsing.Error{Line: s.Line, Column: s.Column, Problem: problem, Fix: fix, Action: s.action(), Kind: problem}
	if m := fieldOfInput.FindStringSubmatch(s.Text); m != nil {
		e.Input = m[1] + " " + m[2]
	}
	return e
}

// fieldOfInput matches an expression that reads a field of an input or a downstream: (input "NAME").spec.host.
var fieldOfInput = regexp.MustCompile(`^\((input|downstream) "([^"]+)"\)\.`)
