package parsing

import (
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/redact"
)

// Error is one problem in a template, or in rendering it for an upstream.
type Error struct {
	// Line and Column are the position in the template, from 1; 0 if unknown. Column counts bytes. Lines of the helpers
	// follow those of the template.
	Line, Column int
	// Problem says what is wrong, with the field or value: ".spec.tag is not set".
	Problem string
	// Fix says how to fix it; empty if the problem says it all.
	Fix string
	// Limit is ErrLimit or ErrTime if a limit ended the rendering, or the error of a Budget's larger; else nil.
	Limit error
	// Input is the object that exists but lacks the field that the template reads, as in "input settings" or "downstream
	// service"; empty for other problems.
	Input string

	// Action is the text of the action that failed, Kind the problem without values; each is empty if unknown.
	Action, Kind string
	// Lines is the number of lines of the template; later lines are in the helpers. 0 means that there are no helpers.
	Lines int
}

// Unwrap returns the limit that ended the rendering, or nil.
func (e *Error) Unwrap() error { return e.Limit }

// Error returns "line 7: .spec.tag is not set: how to fix it".
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Lines > 0 && e.Line > e.Lines:
		fmt.Fprintf(&b, "line %d of the helpers: ", e.Line-e.Lines)
	case e.Line > 0:
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	b.WriteString(e.Problem)
	if e.Fix != "" {
		b.WriteString(": ")
		b.WriteString(e.Fix)
	}
	return b.String()
}

// Redacted returns the error without the values that the problem quotes.
func (e *Error) Redacted() string {
	out := Error{Line: e.Line, Lines: e.Lines, Problem: e.Kind, Fix: e.Fix}
	if e.Kind == "" {
		out.Problem, out.Fix = redact.NotQuoted, ""
	}
	if e.Action != "" && !strings.Contains(out.Problem, e.Action) {
		out.Problem = e.Action + ": " + out.Problem
	}
	return out.Error()
}

// Errors are all the errors of compiling a template, sorted by line.
type Errors []*Error

// Error returns one error per line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}
