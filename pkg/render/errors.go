package render

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/redact"
)

// Error is one thing wrong with a template, or with what it makes of an upstream.
type Error struct {
	// Line and Column say where in the author's template, from 1; 0 where that is unknown. Column counts bytes. Lines of the helpers
	// go on after the template's.
	Line, Column int
	// Problem says what is wrong and names the field or value: ".spec.tag is not set".
	Problem string
	// Fix says how to put it right; empty if the problem says it all.
	Fix string
	// Limit is ErrLimit or ErrTime where a limit ended the rendering, or what a Budget's larger said; else nil.
	Limit error
	// Input is the object that exists without the field that the template reads, as in "input settings" or "downstream service"; empty for
	// any other problem.
	Input string

	// action is the author's text that is to blame, kind the problem without values; each empty where it is not known.
	action, kind string
	// lines are those of the template; the others are the helpers'. 0: none are.
	lines int
}

var (
	// ErrLimit says that rendering needs more than it may. It will, until the upstream, an input or the template changes.
	ErrLimit = errors.New("a limit of rendering is exceeded")
	// ErrTime says that rendering takes longer than it may, which on another occasion may be different.
	ErrTime = errors.New("rendering takes too long")
)

// Unwrap returns the limit that ended the rendering, if one did.
func (e *Error) Unwrap() error { return e.Limit }

// Error gives "line 7: .spec.tag is not set: how to fix it".
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.lines > 0 && e.Line > e.lines:
		fmt.Fprintf(&b, "line %d of the helpers: ", e.Line-e.lines)
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

// Redacted is the error without the values that the problem quotes.
func (e *Error) Redacted() string {
	out := Error{Line: e.Line, lines: e.lines, Problem: e.kind, Fix: e.Fix}
	if e.kind == "" {
		out.Problem, out.Fix = redact.NotQuoted, ""
	}
	if e.action != "" && !strings.Contains(out.Problem, e.action) {
		out.Problem = e.action + ": " + out.Problem
	}
	return out.Error()
}

// Errors is everything that compiling a template found, in the order of the template's lines.
type Errors []*Error

// Error gives one error a line.
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

// problem is what a template function returns: the position is added by whoever knows the call. kind is the text without
// values.
type problem struct {
	text, kind, fix string
	limit           error
}

func (p *problem) Error() string { return p.text }

// problemf formats a problem. %s is for the author's words and names of types, all else for values.
func problemf(fix, format string, args ...any) error {
	return &problem{text: fmt.Sprintf(format, args...), kind: redact.Sprintf(format, args...), fix: fix}
}
