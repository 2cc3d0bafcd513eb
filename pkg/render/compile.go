package render

import (
	"fmt"
	"sort"
	"sync"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Template is a compiled template. It is immutable and safe for concurrent use.
type Template struct {
	reads
	options   Options
	lines     int                    // of the template, without the helpers
	trees     map[string]*parse.Tree // by template name; rewritten, read-only
	functions []string               // the functions that the trees call, without those bound to sites
	siteCalls []siteCall
	sites     []site
	position  *parsing.Position
	holes     []Hole
	fields    []Field
	textPos   map[*byte]parse.Pos // position of each text node's text in the template
	constant  bool                // only text
	cache     *skeleton.Cache
	runs      sync.Pool
}

// Compile parses a template for a document. It returns an *Error, or Errors for several, with everything that is known without
// an upstream: unknown functions, functions whose result is not always the same, YAML that is invalid on every path.
func Compile(text string, o Options) (*Template, error) {
	c, err := compile(text, o, false)
	if err != nil {
		return nil, err
	}
	if !c.unprobed {
		c.probe()
	}
	return c.done()
}

// siteCall is a function added by the rewrite that is bound to a site.
type siteCall struct {
	name, function string
	site           int
}

// compiler is the state of one compilation.
type compiler struct {
	*Template
	asText  bool // the result is text, not a document
	errs    Errors
	used    map[string]bool
	actions map[*parse.ActionNode]*action
	helpers map[string]bool // the trees that are helpers

	current   string              // the template that is being rewritten
	printing  map[string][]string // the templates that a template prints with their holes
	unprobed  bool                // its text may contain something that looks like a placeholder
	printsAny bool                // some template prints one whose name is computed
}

// action is what the probes know about an action that prints.
type action struct {
	site    int
	stages  []*parse.CommandNode
	include string // the template that is printed, if its name is constant
}

func newCompiler(text string, o Options, asText bool) (*compiler, error) {
	o = o.withDefaults()
	c := &compiler{
		Template: &Template{options: o, lines: parsing.Lines(text), position: parsing.NewPosition(parsing.Joined(text, o.Helpers)),
			cache: skeleton.NewCache(o.Limits.CacheBytes), textPos: map[*byte]parse.Pos{}},
		asText: asText, used: map[string]bool{}, actions: map[*parse.ActionNode]*action{}, printing: map[string][]string{},
	}
	var err error
	c.trees, c.helpers, err = o.trees(text)
	return c, err
}

// Parse parses a template and the helpers, without checking the functions that they call. The tree named "" is the template;
// the others are define blocks. It returns an *Error.
func Parse(text string, o Options) (map[string]*parse.Tree, error) {
	trees, _, err := o.withDefaults().trees(text)
	return trees, err
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

func compile(text string, o Options, asText bool) (*compiler, error) {
	c, err := newCompiler(text, o, asText)
	if err != nil {
		return nil, err
	}
	c.reads = c.analyze()
	c.constant = isConstant(c.trees[parsing.Main])
	c.rewrite()
	c.functions = values.SortedKeys(c.used)
	c.runs.New = func() any { return c.newRun() }
	return c, nil
}

// rewrite rewrites all parse trees.
func (c *compiler) rewrite() {
	for _, tree := range values.SortedKeys(c.trees) {
		c.tree(c.trees[tree])
	}
}

// done sorts the errors. It returns the template only if there are none.
func (c *compiler) done() (*Template, error) {
	for _, e := range c.errs {
		e.Lines = c.lines
	}
	switch len(c.errs) {
	case 0:
		return c.Template, nil
	case 1:
		return nil, c.errs[0]
	}
	sort.SliceStable(c.errs, func(i, j int) bool {
		a, b := c.errs[i], c.errs[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	return nil, c.errs
}

func (c *compiler) errorf(pos parse.Pos, fix, format string, args ...any) {
	line, column := c.position.At(pos)
	c.errs = append(c.errs, &Error{Line: line, Column: column, Problem: fmt.Sprintf(format, args...), Fix: fix})
}

// isConstant reports whether a tree contains only text.
func isConstant(t *parse.Tree) bool {
	if t.Root == nil {
		return true
	}
	for _, n := range t.Root.Nodes {
		if n.Type() != parse.NodeText {
			return false
		}
	}
	return true
}

// prints records that the current template prints another one, with its holes.
func (c *compiler) prints(name string) {
	c.printing[c.current] = append(c.printing[c.current], name)
}

// newSite adds a site; it returns its number.
func (c *compiler) newSite(pos parse.Pos, text string) (int, *site) {
	s := site{text: text, tree: c.current}
	s.line, s.column = c.position.At(pos)
	c.sites = append(c.sites, s)
	return len(c.sites) - 1, &c.sites[len(c.sites)-1]
}
