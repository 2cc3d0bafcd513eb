package document

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Index knows where values stand; keys are display paths as in errors.
type Index map[string]Position

// Position is where one value is.
type Position struct {
	Line   int        // in the file, from 1; of a map or list: where its key is
	In     *Document  // the conventionsFile if the value is there, nil for the config file
	source string     // the override that gave the value, empty for a file
	Node   *yaml.Node // the value itself, aliases resolved; nil for an override
}

// Line returns the line in the config file where the value at path is, as in errors: downstreams[0].when.
// For a value that does not exist it is the line of the nearest thing around it; 0 where the value came from an
// override or from the conventionsFile.
func (d *Document) Line(path string) int {
	pos := d.Index.Find(path)
	if pos.In != nil {
		return 0
	}
	return pos.Line
}

// Errorf returns an error at path of this file, for stages after Load that find something wrong in it. fix
// says how to put it right and may be empty.
func (d *Document) Errorf(path, fix, format string, args ...any) *config.Error {
	e := &config.Error{File: d.Path, Path: path, Problem: fmt.Sprintf(format, args...), Fix: fix}
	pos := d.Index.Find(path)
	e.Line = pos.Line
	switch {
	case pos.source != "":
		e.File = pos.source
	case pos.In != nil:
		e.File = pos.In.Path
	}
	return e
}

// TextPos says where the first line of the text at path is, by the rule of TemplatePos. A text that came
// from an override is at line 1 of that override.
func (d *Document) TextPos(path string) (file string, line int) {
	pos := d.Index.Find(path)
	file, lines := d.Path, d.lines
	if pos.In != nil {
		file, lines = pos.In.Path, pos.In.lines
	}
	switch {
	case pos.source != "":
		return pos.source, 1
	case pos.Node == nil || pos.Node.Kind != yaml.ScalarNode:
		return file, max(pos.Line, 1)
	default:
		return file, textStart(pos.Node, lines)
	}
}

// Reported reports whether path, or something around it, has been reported as unreadable or of the wrong type:
// then nothing can be said about what it holds.
func (d *Document) Reported(path string) bool {
	for _, b := range d.Broken {
		if Below(path, b) {
			return true
		}
	}
	return false
}

// MisreadKey is the error of a key at a path that YAML 1.1 reads as something else; nil if it does not.
func (d *Document) MisreadKey(path string) *config.Error {
	if i := slices.IndexFunc(d.MisreadKeys, func(e *config.Error) bool { return e.Path == path }); i >= 0 {
		return d.MisreadKeys[i]
	}
	return nil
}

// Place returns where a file is that the document names: a relative name is resolved against the document's own folder.
func (d *Document) Place(name string) string {
	if filepath.IsAbs(name) || d.Path == StdinName {
		return name
	}
	return filepath.Join(filepath.Dir(d.Path), name)
}

// Given reports whether a layer gives the value: for defaults of what may be zero too.
func (d *Document) Given(path ...string) bool {
	v, _ := fieldpath.Get(d.Values, fieldpath.New(path...))
	return v != nil
}

// Below reports whether path is root or lies below it.
func Below(path, root string) bool {
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

// Find returns the position of path or of the nearest value around it.
func (x Index) Find(path string) Position {
	p, err := parseDisplay(path)
	if err != nil {
		return x[""]
	}
	for ; len(p) > 0; p = p[:len(p)-1] {
		if pos, ok := x[Display(p)]; ok {
			return pos
		}
	}
	return x[""]
}

// Replace notes that an override now gives everything at and below path; from are the places of its value,
// which is there under the key v.
func (x Index) Replace(path fieldpath.Path, source string, from Index) {
	at := Display(path)
	for key := range x {
		if Below(key, at) {
			delete(x, key)
		}
	}
	for n := 1; n < len(path); n++ {
		if around := Display(path[:n]); x[around] == (Position{}) {
			x[around] = Position{source: source} // a map that the override makes on its way
		}
	}
	x[at] = Position{source: source}
	for key, pos := range from {
		if Below(key, OverrideKey) {
			x[at+key[len(OverrideKey):]] = Position{source: source, Node: pos.Node}
		}
	}
}

// Display writes a path as errors show it: without the leading dot.
func Display(p fieldpath.Path) string {
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

// OverrideKey is the key under which an override's value is read as YAML.
const OverrideKey = "v"
