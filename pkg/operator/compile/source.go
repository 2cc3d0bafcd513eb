package compile

import (
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
)

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
	s := source{path: path, text: parsing.Joined(template, f.Operator.Helpers), lines: parsing.Lines(template), file: file, first: first}
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
