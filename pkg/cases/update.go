package cases

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// updated returns the text of the case with the result as expectation. Everything else stays the same, including
// comments and the parts of the expectation that are met.
func (c *testCase) updated(got map[string]any, w treeWriter) ([]byte, error) {
	e := &editor{treeWriter: w, lines: strings.SplitAfter(string(c.text), "\n")}
	k, v := child(c.root, "expect")
	if k == nil {
		e.add(len(e.lines), 0, []string{"expect"}, got)
	} else {
		var end int
		e.between(c.root, func(key *yaml.Node, stop int) {
			if key == k {
				end = stop
			}
		}, len(e.lines))
		e.change([]string{"expect"}, k, v, end, c.expect, got)
	}
	if e.err != nil {
		return nil, e.err
	}
	out := &testCase{path: c.path, text: []byte(e.text())}
	if problems := out.parse(); len(problems) > 0 || !equal(out.expect, got) ||
		!equal(c.withoutExpectation(), out.withoutExpectation()) {
		return nil, fmt.Errorf(
			"%s: the result cannot be written into this file: write expect as a separate block, without anchors", c.path)
	}
	return out.text, nil
}

// withoutExpectation returns all of a case except its expectation.
func (c *testCase) withoutExpectation() map[string]any {
	values, err := c.decode()
	if err != nil {
		return nil
	}
	delete(values, "expect")
	return values
}

// editor changes lines of a case.
type editor struct {
	treeWriter
	lines []string
	edits []lineEdit
	err   error
}

// lineEdit replaces the lines [from, to), counted from zero.
type lineEdit struct {
	from, to int
	text     string
}

func (e *editor) text() string {
	slices.SortStableFunc(e.edits, func(a, b lineEdit) int { return b.from - a.from })
	lines := slices.Clone(e.lines)
	for _, edit := range e.edits {
		if edit.from > 0 && edit.from <= len(lines) && lines[edit.from-1] != "" &&
			!strings.HasSuffix(lines[edit.from-1], "\n") {
			lines[edit.from-1] += "\n"
		}
		lines = slices.Replace(lines, edit.from, edit.to, edit.text)
	}
	return strings.Join(lines, "")
}

// between calls visit with each key of a block and its last line: before the next key, or at the end of the block,
// without empty lines and comments that belong to what follows.
func (e *editor) between(node *yaml.Node, visit func(key *yaml.Node, stop int), end int) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, stop := node.Content[i], end
		if i+2 < len(node.Content) {
			stop = node.Content[i+2].Line - 1
		}
		for stop > key.Line && isBlankOrComment(e.lines[stop-1], key.Column-1) {
			stop--
		}
		visit(key, stop)
	}
}

// isBlankOrComment reports whether a line is empty, or a comment that is not indented deeper than a key.
func isBlankOrComment(line string, indent int) bool {
	text := strings.TrimSpace(line)
	return text == "" || strings.HasPrefix(text, "#") && strings.Index(line, "#") <= indent
}

// change replaces the value of a key. Maps of a case are changed key by key.
func (e *editor) change(path []string, k, v *yaml.Node, end int, want, have any) {
	if equal(want, have) {
		return
	}
	order, ours := e.keyOrder(path)
	wanted, _ := want.(map[string]any)
	has, _ := have.(map[string]any)
	if !ours || v.Kind != yaml.MappingNode || v.Style&yaml.FlowStyle != 0 || len(wanted) == 0 || len(has) == 0 {
		e.edits = append(e.edits, lineEdit{k.Line - 1, end, e.textOf(path, k.Column-1, have)})
		return
	}
	e.between(v, func(key *yaml.Node, stop int) {
		value, stays := has[key.Value]
		if !stays {
			e.edits = append(e.edits, lineEdit{key.Line - 1, stop, ""})
			return
		}
		_, node := child(v, key.Value)
		e.change(append(slices.Clone(path), key.Value), key, node, stop, wanted[key.Value], value)
	}, end)
	added := maps.Clone(has)
	maps.DeleteFunc(added, func(key string, _ any) bool { _, old := wanted[key]; return old })
	for _, key := range keysInOrder(added, order) {
		e.add(end, v.Column-1, append(slices.Clone(path), key), added[key])
	}
}

// add adds a key before a line.
func (e *editor) add(line, indent int, path []string, value any) {
	text := e.textOf(path, indent, value)
	if len(path) == 1 && line > 0 {
		text = "\n" + text
	}
	for i := range e.edits {
		if e.edits[i].from == line && e.edits[i].to == line {
			e.edits[i].text += text
			return
		}
	}
	e.edits = append(e.edits, lineEdit{line, line, text})
}

func (e *editor) textOf(path []string, indent int, value any) string {
	text, err := e.writeEntry(path, value)
	if err != nil && e.err == nil {
		e.err = err
	}
	return yamltext.Indent(text, strings.Repeat(" ", indent))
}

// replaceFile writes a file atomically, with the mode that it had.
func replaceFile(path string, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".case-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it does not exist if it was renamed
	_, err = f.Write(text)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(f.Name(), info.Mode().Perm())
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
