package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one problem in one place of a config.
type Error struct {
	// File is the config file as it was given, the templateFile, the conventionsFile, or the override ("--set …",
	// "environment …") that the value came from.
	File string
	// Line counts from 1; 0 where there are no lines (an override, a file that cannot be read).
	Line int
	// Path names the field: downstreams[0].template, conventions.labels['a.b/c']. Empty for the whole file.
	Path string
	// Problem says what is wrong, with the bad value.
	Problem string
	// Fix says how to put it right.
	Fix string
}

// Error returns FILE:LINE: path: problem: how to fix it, without the parts that are empty.
func (e *Error) Error() string {
	var parts []string
	switch {
	case e.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d", e.File, e.Line))
	case e.File != "":
		parts = append(parts, e.File)
	}
	for _, s := range []string{e.Path, e.Problem, e.Fix} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// Errors is everything that was found wrong, sorted by file and line.
type Errors []*Error

// Error returns all errors, a line each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns e as an error, nil when there is none. (An empty Errors in an error variable is not nil.)
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Sort orders by file, line, path and problem, and drops exact repetitions: a document that an alias repeats
// can report one mistake several times.
func (e Errors) Sort() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Problem, b.Problem))
	})
	return slices.CompactFunc(e, func(a, b *Error) bool { return *a == *b })
}
