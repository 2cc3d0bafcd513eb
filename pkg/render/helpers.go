package render

import (
	"bytes"
	"fmt"
	"strings"
	"text/template/parse"
)

// mainTree is the name of the tree that is no define block.
const mainTree = ""

// Joined is a template's text followed by the helpers'. Positions in a template and its lines count through it, so that the line after
// a template's last is the first of the helpers.
func Joined(text, helpers string) string {
	if helpers == "" {
		return text
	}
	return text + "\n" + helpers
}

// Lines is the number of a template's own lines: what is further down is in the helpers.
func Lines(text string) int { return 1 + strings.Count(text, "\n") }

// Parse parses a template and the helpers, without looking at what they call. The tree named "" is the template's; the others are
// define blocks. The error is an *Error.
func Parse(text string, o Options) (map[string]*parse.Tree, error) {
	trees, _, err := parseAll(text, o.withDefaults())
	return trees, err
}

// parseAll tells the helpers by their names, too.
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

// begins is where something begins that is not blank.
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

// blanks is a text with the lines of another, and nothing in them.
func blanks(text string) string {
	out := make([]byte, len(text))
	for i := range out {
		if out[i] = ' '; text[i] == '\n' {
			out[i] = '\n'
		}
	}
	return string(out)
}

// CheckHelpers reports what is wrong with helpers whoever uses them. The error is an *Error, or Errors.
func CheckHelpers(o Options) error {
	o.Items = true // which of them go over items is not known
	c, err := newCompiler("", o, true)
	if err != nil {
		return err
	}
	c.rewrite()
	_, err = c.done()
	return err
}
