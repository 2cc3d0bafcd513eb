package render

import (
	"fmt"
	"strings"
)

// Error is one thing wrong with a template, or with what it makes of an upstream.
type Error struct {
	// Line and Column say where in the author's template, from 1; 0 where that is unknown. Column counts bytes.
	Line, Column int
	// Problem says what is wrong and names the field or value: ".spec.tag is not set".
	Problem string
	// Mend says how to put it right; empty where the problem says it all.
	Mend string
}

// Error gives "line 7: .spec.tag is not set: how to mend it".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	b.WriteString(e.Problem)
	if e.Mend != "" {
		b.WriteString(": ")
		b.WriteString(e.Mend)
	}
	return b.String()
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

// problem is what a template function returns: the position is added by whoever knows the call.
type problem struct{ text, mend string }

func (p *problem) Error() string { return p.text }

func problemf(mend, format string, args ...any) error {
	return &problem{text: fmt.Sprintf(format, args...), mend: mend}
}
