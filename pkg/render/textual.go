package render

import "github.com/corollary-dev/corollary/pkg/render/skeleton"

// Text is a compiled template whose result is text, such as the value of a label. It is immutable and safe for concurrent use.
type Text struct {
	reads
	template *Template
}

// CompileText parses a template for a text. Errors are as in Compile; there is no YAML in it.
func CompileText(text string, o Options) (*Text, error) {
	c, err := compile(text, o, true)
	if err != nil {
		return nil, err
	}
	t, err := c.done()
	if err != nil {
		return nil, err
	}
	return &Text{reads: t.reads, template: t}, nil
}

// Execute returns the text for d. A hole prints what it would print inside a scalar: a missing value and a map or list are
// errors.
func (t *Text) Execute(d Data) (out string, err error) {
	r := t.template.runs.Get().(*run)
	defer r.end(&err)
	r.start(d)
	if err := r.execute(d, false); err != nil {
		return "", err
	}
	parts := skeleton.SplitParts(string(r.buf))
	if parts == nil {
		return string(r.buf), nil
	}
	if err := splitting(r.budget, len(r.recs)); err != nil {
		return "", t.template.executionError(err)
	}
	f := filler{Budget: r.budget, sites: t.template.sites, records: r.recs}
	text, err := f.join(parts)
	if err != nil {
		return "", t.template.executionError(err)
	}
	return text, nil
}

// Constant returns the text of a template without actions; ok is false if there is one.
func (t *Text) Constant() (text string, ok bool) {
	if !t.template.constant {
		return "", false
	}
	text, err := t.Execute(Data{})
	return text, err == nil
}
