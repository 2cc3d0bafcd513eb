package parsing

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"text/template/parse"
)

// Main is the name of the tree outside define blocks.
const Main = ""

// DownstreamKey returns the key of a downstream among the inputs. No input can have such a name.
func DownstreamKey(name string) string { return "downstreams." + name }

// Joined returns a template followed by the helpers. Positions and lines count through both: the first line of the
// helpers comes after the last line of the template.
func Joined(text, helpers string) string {
	if helpers == "" {
		return text
	}
	return text + "\n" + helpers
}

// Lines returns the number of lines of a template; later lines are in the helpers.
func Lines(text string) int { return 1 + strings.Count(text, "\n") }

// Delimiters are the delimiters of a template.
type Delimiters struct{ Left, Right string }

// WithDefaults returns the delimiters with {{ and }} in place of empty ones.
func (d Delimiters) WithDefaults() Delimiters {
	return Delimiters{Left: cmp.Or(d.Left, "{{"), Right: cmp.Or(d.Right, "}}")}
}

// Trees parses a template and the helpers, without checking the functions that they call. The tree named Main is the
// template; the others are define blocks. It returns the names of the helpers, too, or an *Error.
func Trees(text, helpers string, d Delimiters) (trees map[string]*parse.Tree, isHelper map[string]bool, err error) {
	trees, isHelper = map[string]*parse.Tree{}, map[string]bool{}
	if helpers != "" {
		blank := blanks(text) + "\n"
		outside, err := parseText(blank+helpers, d, trees)
		if err != nil {
			return nil, nil, err
		}
		delete(trees, Main)
		for name := range trees {
			isHelper[name] = true
		}
		for _, n := range outside.Root.Nodes {
			if text, ok := n.(*parse.TextNode); ok && strings.TrimSpace(string(text.Text)) == "" {
				continue
			}
			line, column := NewPosition(blank+helpers, d).At(begins(n))
			return nil, nil, &Error{Line: line, Column: column, Problem: "the helpers have something outside of define blocks",
				Fix: fmt.Sprintf("put it between %s define \"NAME\" %s and %s end %s", d.Left, d.Right, d.Left, d.Right)}
		}
	}
	tree, err := parseText(text, d, trees)
	if err != nil {
		return nil, nil, err
	}
	if trees[Main] == nil {
		trees[Main] = tree
	}
	return trees, isHelper, nil
}

// begins returns the position of the first text of a node that is not blank.
func begins(n parse.Node) parse.Pos {
	if text, ok := n.(*parse.TextNode); ok {
		return n.Position() + parse.Pos(len(text.Text)-len(bytes.TrimLeft(text.Text, " \t\r\n")))
	}
	return n.Position()
}

func parseText(text string, d Delimiters, trees map[string]*parse.Tree) (*parse.Tree, error) {
	tree, err := parseInto(trees, text, d)
	if err != nil {
		return nil, d.parseError(text, err)
	}
	return tree, nil
}

func parseInto(trees map[string]*parse.Tree, text string, d Delimiters) (*parse.Tree, error) {
	tree := parse.New(Main)
	tree.Mode = parse.SkipFuncCheck
	return tree.Parse(text, d.Left, d.Right, trees)
}

// blanks returns a text with the same number of lines, all empty.
func blanks(text string) string {
	out := make([]byte, len(text))
	for i := range out {
		if out[i] = ' '; text[i] == '\n' {
			out[i] = '\n'
		}
	}
	return string(out)
}
