package render

import (
	"cmp"
	"fmt"
	"slices"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/holes"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/render/reads"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Template is a compiled template, with what it reads. It is immutable and safe for concurrent use.
type Template struct {
	reads.Reads
	*program.Template
	// Holes are in the order of the template, to show where structure can enter. A text has none.
	Holes []holes.Hole
	// Fields are those near the root of the document, outside lists, that are known without an upstream. A field with
	// several possible values is listed once for each.
	Fields []holes.Field
}

// Compile parses a template for a document. It returns a *parsing.Error, or parsing.Errors for several, with everything
// that is known without an upstream: unknown functions, functions whose result is not always the same, YAML that is
// invalid on every path.
func Compile(text string, o Options) (*Template, error) {
	c, err := compile(text, o, false)
	if err != nil {
		return nil, err
	}
	var found holes.Found
	if !c.unprobed {
		found = holes.Find(&c.Source)
		if found.Invalid != nil && len(c.errs) == 0 {
			c.errs = append(c.errs, found.Invalid)
		}
		c.errs = append(c.errs, found.Quoted...)
		for _, d := range found.Documents {
			if o.Probed != nil {
				o.Probed(d)
			}
		}
	}
	return c.done(found)
}

// CompileText parses a template for a text, such as the value of a label. Errors are as in Compile; there is no YAML in
// it.
func CompileText(text string, o Options) (*Template, error) {
	c, err := compile(text, o, true)
	if err != nil {
		return nil, err
	}
	return c.done(holes.Found{})
}

// CheckHelpers checks helpers without a template. It returns a *parsing.Error, or parsing.Errors.
func CheckHelpers(o Options) error {
	o.Items = true // some may be used with forEach
	c, err := newCompiler("", o, true)
	if err != nil {
		return err
	}
	c.rewrite()
	return c.problems()
}

// compiler is the state of one compilation.
type compiler struct {
	holes.Source
	reads    reads.Reads
	items    bool // `item` can be used
	asText   bool // the result is text, not a document
	errs     parsing.Errors
	used     map[string]bool
	helpers  map[string]bool // the trees that are helpers
	current  string          // the template that is being rewritten
	unprobed bool            // its text may contain something that looks like a placeholder
}

func newCompiler(text string, o Options, asText bool) (*compiler, error) {
	d := o.Delimiters.WithDefaults()
	c := &compiler{items: o.Items, asText: asText, used: map[string]bool{}, Source: holes.Source{
		Template: program.New(text, o.Helpers, d),
		Actions:  map[*parse.ActionNode]*holes.Action{}, Printing: map[string][]string{},
	}}
	var err error
	c.Trees, c.helpers, err = parsing.Trees(text, o.Helpers, d)
	return c, err
}

func compile(text string, o Options, asText bool) (*compiler, error) {
	c, err := newCompiler(text, o, asText)
	if err != nil {
		return nil, err
	}
	c.reads = reads.Of(c.Trees, c.helpers, o.Lists)
	c.rewrite()
	c.Functions = values.SortedKeys(c.used)
	return c, nil
}

// done returns the template, if there are no errors.
func (c *compiler) done(found holes.Found) (*Template, error) {
	if err := c.problems(); err != nil {
		return nil, err
	}
	return &Template{Reads: c.reads, Template: c.Template, Holes: found.Holes, Fields: found.Fields}, nil
}

// problems returns the sorted errors.
func (c *compiler) problems() error {
	for _, e := range c.errs {
		e.Lines = c.Lines
	}
	switch len(c.errs) {
	case 0:
		return nil
	case 1:
		return c.errs[0]
	}
	slices.SortStableFunc(c.errs, func(a, b *parsing.Error) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return c.errs
}

func (c *compiler) errorf(pos parse.Pos, fix, format string, args ...any) {
	line, column := c.At(pos)
	c.errs = append(c.errs, &parsing.Error{Line: line, Column: column, Problem: fmt.Sprintf(format, args...), Fix: fix})
}
