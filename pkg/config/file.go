package config

import (
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// File is one loaded operator and the places its values came from.
type File struct {
	Operator
	// Path is the file as it was given, or joined to the directory that was given; <stdin> for standard input.
	Path string

	*document          // values hold all layers once loaded
	problems  Errors   // what the loader found wrong
	unknown   []string // display paths of fields that do not exist
	overrides []override
	shared    *shared        // the file that conventionsFile names, nil for none
	described map[string]any // the OpenAPI schema of .spec that watch.schema describes
	follows   *ActivationFile
}

// index knows where values stand; keys are display paths as in errors.
type index map[string]position

// position is where one value is.
type position struct {
	line   int        // in the file, from 1; of a map or list: where its key is
	in     *document  // the conventionsFile if the value is there, nil for the config file
	source string     // the override that gave the value, empty for a file
	node   *yaml.Node // the value itself, aliases resolved; nil for an override
}

// Valid reports whether nothing was found wrong in this file. A file with errors is returned by Load too, so
// that later stages can report theirs in the same run; it must not be run.
func (f *File) Valid() bool { return len(f.problems) == 0 }

// Problems are what Load found wrong in this file.
func (f *File) Problems() Errors { return f.problems }

// Line returns the line in the config file where the value at path is, as in errors: downstreams[0].when.
// For a value that does not exist it is the line of the nearest thing around it; 0 where the value came from an
// override or from the conventionsFile.
func (f *File) Line(path string) int {
	pos := f.index.find(path)
	if pos.in != nil {
		return 0
	}
	return pos.line
}

// Errorf returns an error at path of this file, for stages after Load that find something wrong in it. fix
// says how to put it right and may be empty.
func (f *File) Errorf(path, fix, format string, args ...any) *Error {
	e := &Error{File: f.Path, Path: path, Problem: fmt.Sprintf(format, args...), Fix: fix}
	pos := f.index.find(path)
	e.Line = pos.line
	switch {
	case pos.source != "":
		e.File = pos.source
	case pos.in != nil:
		e.File = pos.in.name
	}
	return e
}

// TemplatePos says where the first line of downstreams[i]'s template is: the config file or the
// templateFile, and the line in it. Line n of the template is at line+n-1. For a block scalar that is the
// line below its |, for a plain or quoted text the line where it begins.
func (f *File) TemplatePos(i int) (file string, line int) {
	if i >= 0 && i < len(f.Downstreams) {
		if name := f.Downstreams[i].TemplateFile; name != "" {
			return f.Place(name), 1
		}
	}
	return f.TextPos(fmt.Sprintf("downstreams[%d].template", i))
}

// BeforeTemplatePos says where the first line of deletion.before's template is, as TemplatePos does.
func (f *File) BeforeTemplatePos() (file string, line int) {
	if b := f.Deletion.Before; b != nil && b.TemplateFile != "" {
		return f.Place(b.TemplateFile), 1
	}
	return f.TextPos("deletion.before.template")
}

// HelpersPos says where the first line of the helpers is, as TemplatePos does.
func (f *File) HelpersPos() (file string, line int) {
	if name := f.HelpersFile; name != "" {
		return f.Place(name), 1
	}
	return f.TextPos("helpers")
}

// TextPos says where the first line of the text at path is, by the rule of TemplatePos. A text that came
// from an override is at line 1 of that override.
func (f *File) TextPos(path string) (file string, line int) {
	pos := f.index.find(path)
	file, lines := f.Path, f.lines
	if pos.in != nil {
		file, lines = pos.in.name, pos.in.lines
	}
	switch {
	case pos.source != "":
		return pos.source, 1
	case pos.node == nil || pos.node.Kind != yaml.ScalarNode:
		return file, max(pos.line, 1)
	default:
		return file, textStart(pos.node, lines)
	}
}

// reported reports whether path, or something around it, has been reported as unreadable or of the wrong type:
// then nothing can be said about what it holds.
func (f *File) reported(path string) bool {
	for _, b := range f.broken {
		if below(path, b) {
			return true
		}
	}
	return false
}

// MisreadKeys are the keys of the file, and of its shared conventions, that YAML 1.1 reads as something else: nobody means that.
func (f *File) MisreadKeys() Errors {
	if f.shared != nil && f.shared.document != nil {
		return slices.Concat(f.misreadKeys, f.shared.misreadKeys)
	}
	return f.misreadKeys
}

// misread is the error of a key at a path that YAML 1.1 reads as something else; nil if it does not.
func (f *File) misread(path string) *Error {
	keys := f.MisreadKeys()
	if i := slices.IndexFunc(keys, func(e *Error) bool { return e.Path == path }); i >= 0 {
		return keys[i]
	}
	return nil
}

// below reports whether path is root or lies below it.
func below(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (root == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// textStart returns the line of a scalar's first line of text. A node begins at its anchor or tag, which may
// stand lines above a block scalar's indicator.
func textStart(n *yaml.Node, lines []string) int {
	line, col := n.Line, n.Column-1
	for line >= 1 && line <= len(lines) {
		rest := []rune(lines[line-1])
		rest = rest[min(max(col, 0), len(rest)):]
		text := strings.TrimLeft(string(rest), " \t")
		switch {
		case text == "" || text == "\r" || text[0] == '#':
			line, col = line+1, 0
		case text[0] == '&' || text[0] == '!':
			end := strings.IndexAny(text, " \t\r")
			if end < 0 {
				end = len(text)
			}
			col += len(rest) - len([]rune(text[end:]))
		case text[0] == '|' || text[0] == '>':
			return line + 1
		default:
			return line
		}
	}
	return n.Line
}

// find returns the position of path or of the nearest value around it.
func (x index) find(path string) position {
	p, err := parseDisplay(path)
	if err != nil {
		return x[""]
	}
	for ; len(p) > 0; p = p[:len(p)-1] {
		if pos, ok := x[display(p)]; ok {
			return pos
		}
	}
	return x[""]
}

// replace notes that an override now gives everything at and below path; from are the places of its value,
// which is there under the key v.
func (x index) replace(path fieldpath.Path, source string, from index) {
	at := display(path)
	for key := range x {
		if below(key, at) {
			delete(x, key)
		}
	}
	for n := 1; n < len(path); n++ {
		if around := display(path[:n]); x[around] == (position{}) {
			x[around] = position{source: source} // a map that the override makes on its way
		}
	}
	x[at] = position{source: source}
	for key, pos := range from {
		if below(key, overrideKey) {
			x[at+key[len(overrideKey):]] = position{source: source, node: pos.node}
		}
	}
}

// display writes a path as errors show it: without the leading dot.
func display(p fieldpath.Path) string {
	if len(p) == 0 {
		return ""
	}
	return strings.TrimPrefix(p.String(), ".")
}

// parseDisplay reads what display writes.
func parseDisplay(s string) (fieldpath.Path, error) {
	switch {
	case s == "":
		return nil, nil
	case strings.HasPrefix(s, "["):
		return fieldpath.Parse(s)
	default:
		return fieldpath.Parse("." + s)
	}
}
