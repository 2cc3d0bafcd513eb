package render

import (
	"errors"
	"regexp"
	"strings"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// mode is the conversion at the end of a hole's pipeline.
type mode uint8

const (
	modePlain mode = iota
	modeYAML
	modeJSON
	modeJSONRaw
	modeJSONPretty
	modeQuote
	modeSingleQuote
)

// modes are the functions that have a special meaning at the end of a hole's pipeline.
var modes = map[string]mode{
	"toYaml": modeYAML,
	"toJson": modeJSON, "mustToJson": modeJSON,
	"toRawJson": modeJSONRaw, "mustToRawJson": modeJSONRaw,
	"toPrettyJson": modeJSONPretty, "mustToPrettyJson": modeJSONPretty,
	"quote": modeQuote, "squote": modeSingleQuote,
}

// site is a place in a template that an error can name: a hole, or an argument that must not be null.
type site struct {
	line, column int
	text         string   // the expression as written: ".spec.tag"
	path         []string // the fields to read from the base; nil: the base itself
	isMap        bool     // an argument in which a function looks up a key
	weight       int      // steps of a counted body

	// For holes only:
	tree       string // the template that contains it
	source     string // the whole action, with delimiters
	mode       mode
	omit       bool
	newline    bool // the text begins on a new line (nindent)
	hole       bool
	alwaysText bool // its last function always returns text
	inText     bool // shares its scalar with other text on some path, and so becomes text on every path
	scalar     bool // its last function always returns a number or a boolean
	goQuoted   bool // its last function is printf "%q"
}

// at adds a position to err. It returns an *Error, and nil, unchanged.
func (s *site) at(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	out := &Error{Line: s.line, Column: s.column, Problem: err.Error(), Action: s.action()}
	var p *values.Problem
	if errors.As(err, &p) {
		out.Fix, out.Kind, out.Limit = p.Fix, p.Kind, p.Limit
		if s.hole && p.Fix != "" && !strings.Contains(p.Text, s.text) {
			out.Problem = s.text + ": " + p.Text
		}
	}
	return out
}

// action returns the text of the action at the site.
func (s *site) action() string {
	if s.source == "" {
		return s.text
	}
	return strings.Join(strings.Fields(s.source), " ")
}

// helmFields are the fields of a Helm chart's dot that an upstream does not have.
var helmFields = map[string]bool{"Values": true, "Release": true, "Chart": true, "Capabilities": true, "Files": true, "Template": true,
	"Subcharts": true}

// missing returns the error for a value that is not set.
func (s *site) missing() error {
	instead := "…"
	if s.isMap {
		instead = "dict"
	}
	fix := "set it, or write `(" + s.text + " | default " + instead + ")` in its place"
	if s.hole {
		fix = "set it, or let the template use `| default …` or `| omitempty`"
	}
	switch top, _, _ := strings.Cut(strings.TrimPrefix(s.text, "."), "."); {
	case strings.HasPrefix(s.text, "input "):
		fix = "there is no such object, which the config allows: write `(" + s.text + " | default dict)` in its place"
	case strings.HasPrefix(s.text, "param "):
		fix = "the config declares none of that name: write the value into the template, or read it from the upstream"
	case strings.HasPrefix(s.text, ".") && helmFields[top]:
		fix = "the dot is the upstream, with .metadata and .spec; there is no ." + top + " as in a Helm chart"
	}
	problem := s.text + " is not set"
	e := &Error{Line: s.line, Column: s.column, Problem: problem, Fix: fix, Action: s.action(), Kind: problem}
	if m := fieldOfInput.FindStringSubmatch(s.text); m != nil {
		e.Input = m[1] + " " + m[2]
	}
	return e
}

// fieldOfInput matches an expression that reads a field of an input or a downstream: (input "NAME").spec.host.
var fieldOfInput = regexp.MustCompile(`^\((input|downstream) "([^"]+)"\)\.`)

// fieldPos returns the start of a chain of fields: the parser records the position of its second field.
func fieldPos(pos parse.Pos, ident []string) parse.Pos {
	if len(ident) < 2 {
		return pos
	}
	first := len(ident[0])
	if !strings.HasPrefix(ident[0], "$") {
		first++
	}
	return pos - parse.Pos(first)
}
