package render

import (
	"bytes"
	"fmt"
	"strings"
	"text/template/parse"
)

// mainTree is the name of the tree outside define blocks.
const mainTree = ""

// Joined returns a template followed by the helpers. Positions and lines count through both: the first line of the helpers
// comes after the last line of the template.
func Joined(text, helpers string) string {
	if helpers == "" {
		return text
	}
	return text + "\n" + helpers
}

// Lines returns the number of lines of a template; later lines are in the helpers.
func Lines(text string) int { return 1 + strings.Count(text, "\n") }

// Parse parses a template and the helpers, without checking the functions that they call. The tree named "" is the template;
// the others are define blocks. It returns an *Error.
func Parse(text string, o Options) (map[string]*parse.Tree, error) {
	trees, _, err := parseAll(text, o.withDefaults())
	return trees, err
}

// parseAll also returns the names of the helpers.
func parseAll(text string, o Options) (trees map[string]*parse.Tree, helpers map[string]bool, err error) {
	trees, helpers = map[string]*parse.Tree{}, map[string]bool{}
	if o.Helpers != "" {
		blank := blanks(text) + "\n"
		outside, err := parseText(blank+o.Helpers, o, trees)
		if err != nil {
			return nil, nil, err
		}
		delete(trees, mainTree)
		for name := range trees {
			helpers[name] = true
		}
		for _, n := range outside.Root.Nodes {
			if text, ok := n.(*parse.TextNode); ok && strings.TrimSpace(string(text.Text)) == "" {
				continue
			}
			line, column := newPosition(blank + o.Helpers).at(begins(n))
			return nil, nil, &Error{Line: line, Column: column, Problem: "the helpers have something outside of define blocks",
				Fix: fmt.Sprintf("put it between %s define \"NAME\" %s and %s end %s", o.Left, o.Right, o.Left, o.Right)}
		}
	}
	tree, err := parseText(text, o, trees)
	if err != nil {
		return nil, nil, err
	}
	if trees[mainTree] == nil {
		trees[mainTree] = tree
	}
	return trees, helpers, nil
}

// begins returns the position of the first text of a node that is not blank.
func begins(n parse.Node) parse.Pos {
	if text, ok := n.(*parse.TextNode); ok {
		return n.Position() + parse.Pos(len(text.Text)-len(bytes.TrimLeft(text.Text, " \t\r\n")))
	}
	return n.Position()
}

func parseText(text string, o Options, trees map[string]*parse.Tree) (*parse.Tree, error) {
	tree, err := parseInto(trees, text, o)
	if err != nil {
		return nil, o.parseError(text, err)
	}
	return tree, nil
}

func parseInto(trees map[string]*parse.Tree, text string, o Options) (*parse.Tree, error) {
	tree := parse.New(mainTree)
	tree.Mode = parse.SkipFuncCheck
	return tree.Parse(text, o.Left, o.Right, trees)
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

// CheckHelpers checks helpers without a template. It returns an *Error, or Errors.
func CheckHelpers(o Options) error {
	o.Items = true // some may be used with forEach
	c, err := newCompiler("", o, true)
	if err != nil {
		return err
	}
	c.rewrite()
	_, err = c.done()
	return err
}
