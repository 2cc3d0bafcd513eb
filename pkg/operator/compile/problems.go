package compile

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
)

// problems collects what is wrong with a config, and what its author should know.
type problems struct {
	file               *load.File
	errs               config.Errors
	warnings, refusals []config.Error
	// wrongHelpers: the errors of the helpers are among errs.
	wrongHelpers bool
}

// fail records an error at a path of the config file.
func (p *problems) fail(path, fix, format string, args ...any) {
	p.errs = append(p.errs, p.file.Errorf(path, fix, format, args...))
}

// failOnce is fail for what every downstream would report again.
func (p *problems) failOnce(path, fix, format string, args ...any) {
	p.addOnce(p.file.Errorf(path, fix, format, args...))
}

func (p *problems) addOnce(e *config.Error) {
	if !slices.ContainsFunc(p.errs, func(have *config.Error) bool { return *have == *e }) {
		p.errs = append(p.errs, e)
	}
}

// reported reports whether something was said already of the field that is named in a problem.
func (p *problems) reported(e config.Error) bool {
	same := func(have config.Error) bool {
		return have.File == e.File && have.Line == e.Line && have.Path == e.Path &&
			(have.Problem == e.Problem || strings.HasPrefix(have.Problem, "metadata"))
	}
	return slices.ContainsFunc(p.warnings, same) || slices.ContainsFunc(p.refusals, same) ||
		slices.ContainsFunc(p.errs, func(have *config.Error) bool { return same(*have) })
}

func (p *problems) warn(e config.Error) {
	if !slices.Contains(p.warnings, e) {
		p.warnings = append(p.warnings, e)
	}
}

// source is the text of a template, followed by the helpers of its operator, and where both stand.
type source struct {
	path    string // of the template
	text    string
	lines   int // of the template
	file    string
	first   int // where the template's first line is
	helpers struct {
		file  string
		first int
	}
}

func newSource(f *load.File, path, template, file string, first int) source {
	s := source{path: path, text: parsing.Joined(template, f.Operator.Helpers),
		lines: parsing.Lines(template), file: file, first: first}
	s.helpers.file, s.helpers.first = f.HelpersPos()
	return s
}

// at returns file and line of a line of the text.
func (s *source) at(line int) (file string, at int) {
	if line > s.lines {
		return s.helpers.file, s.helpers.first + line - s.lines - 1
	}
	return s.file, s.first + max(line, 1) - 1
}

// problem is an error at a line of the text.
func (s *source) problem(line int, problem, fix string) config.Error {
	file, at := s.at(line)
	return config.Error{File: file, Line: at, Path: s.path, Problem: problem, Fix: fix}
}
