package compile

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// text is a template or a text, as far as it says what it reads.
type text interface {
	Params() []string
	Variables() []string
	Inputs() []string
	Downstreams() []string
	InputReads(name string) (paths [][]string, whole bool)
	InputShown(name string) (paths [][]string, whole bool)
	ReadsStatus() bool
	StatusReads() (paths [][]string, whole bool)
}

// reading is a text that reads what its variables read, too.
type reading struct {
	text
	programs []*rules.Program
}

// readingOf says what a text reads, its variables included.
func readingOf(r *desired.Renderer, t text) text {
	read := reading{text: t}
	for _, name := range t.Variables() {
		if program := r.VariableProgram(name); program != nil {
			read.programs = append(read.programs, program)
		}
	}
	if len(read.programs) == 0 {
		return t
	}
	return read
}

// Downstreams are those of the text and its variables.
func (r reading) Downstreams() []string {
	names := slices.Clone(r.text.Downstreams())
	for _, program := range r.programs {
		paths, _ := program.Reads("downstreams")
		for _, path := range paths {
			if len(path) > 0 && !slices.Contains(names, path[0]) {
				names = append(names, path[0])
			}
		}
	}
	return names
}

// InputReads is that of the text and its variables.
func (r reading) InputReads(name string) (paths [][]string, whole bool) {
	return r.andOfInput(name)(r.text.InputReads(name))
}

// InputShown is that of the text and its variables.
func (r reading) InputShown(name string) (paths [][]string, whole bool) {
	return r.andOfInput(name)(r.text.InputShown(name))
}

// andOfInput adds what the variables read of an input.
func (r reading) andOfInput(name string) func(paths [][]string, whole bool) ([][]string, bool) {
	return func(paths [][]string, whole bool) ([][]string, bool) {
		root, member := "inputs", name
		if sibling, ok := strings.CutPrefix(name, parsing.DownstreamKey("")); ok {
			root, member = "downstreams", sibling
		}
		for _, program := range r.programs {
			more, all := program.Reads(root)
			whole = whole || all
			for _, path := range more {
				if len(path) > 0 && path[0] == member {
					paths, whole = append(slices.Clip(paths), path[1:]), whole || len(path) == 1
				}
			}
		}
		return paths, whole
	}
}

// ReadsStatus is that of the text and its variables.
func (r reading) ReadsStatus() bool {
	return r.text.ReadsStatus() || slices.ContainsFunc(r.programs, func(p *rules.Program) bool {
		return readsStatus(p.Reads)
	})
}

// StatusReads is that of the text and its variables.
func (r reading) StatusReads() (paths [][]string, whole bool) {
	paths, whole = r.text.StatusReads()
	for _, program := range r.programs {
		for _, path := range statusPaths(program.Reads) {
			paths, whole = append(slices.Clip(paths), path), whole || len(path) == 0
		}
	}
	return paths, whole
}
