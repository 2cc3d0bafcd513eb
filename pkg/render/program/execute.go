package program

import (
	"errors"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Execute renders the document for d. It returns a *parsing.Error with a line of the template, for example for a value
// that is not set, a document that is not a mapping, a duplicate key, or an exceeded limit. The document shares no
// memory with d. Integers become int64; a float64 stays one.
func (t *Template) Execute(d Data) (doc map[string]any, err error) {
	r := t.runs.Get().(*run)
	defer r.end(&err)
	r.start(d)
	if err := r.execute(d, false); err != nil {
		return nil, err
	}
	doc, err = r.document()
	var s *skeleton.Error
	if errors.As(err, &s) {
		return nil, r.locate(d, s)
	}
	if err != nil {
		return nil, t.executionError(err)
	}
	return doc, nil
}

// ExecuteText renders a template for a text. A hole prints what it would print inside a scalar: a missing value and a
// map or list are errors.
func (t *Template) ExecuteText(d Data) (text string, err error) {
	r := t.runs.Get().(*run)
	defer r.end(&err)
	r.start(d)
	if err := r.execute(d, false); err != nil {
		return "", err
	}
	text = string(r.Buf)
	if parts := skeleton.SplitParts(text); parts != nil {
		if text, err = r.joined(parts, len(r.Records)); err != nil {
			return "", t.executionError(err)
		}
	}
	return text, nil
}

// Constant returns the text of a template without actions; ok is false if there is one.
func (t *Template) Constant() (text string, ok bool) {
	if root := t.Trees[parsing.Main].Root; root != nil {
		for _, n := range root.Nodes {
			if n.Type() != parse.NodeText {
				return "", false
			}
		}
	}
	text, err := t.ExecuteText(Data{})
	return text, err == nil
}

// joined returns the text of parts with their holes filled; n is the number of holes.
func (r *run) joined(parts []skeleton.Part, n int) (string, error) {
	if err := r.budget.Spend(values.Times(n, 200)); err != nil {
		return "", err
	}
	f := r.filler()
	return f.join(parts)
}

func (r *run) filler() filler { return filler{Budget: r.budget, sites: r.t.Sites, records: r.Records} }

// document parses the skeleton that was printed, unless it is in the cache, and fills it.
func (r *run) document() (map[string]any, error) {
	tree := r.t.cache.Get(r.Buf)
	if tree == nil {
		var err error
		if tree, err = skeleton.Parse(r.Buf, r.budget); err != nil {
			return nil, err
		}
		r.t.cache.Put(r.Buf, tree)
	}
	f := r.filler()
	f.Place(true)
	value, _, err := f.fill(tree.Root)
	if err != nil {
		return nil, err
	}
	doc, ok := value.(map[string]any)
	if !ok {
		return nil, &skeleton.Error{Record: -1, Line: 1, Problem: "the template renders no mapping",
			Fix: "the document must be one mapping, such as `spec: …`"}
	}
	return doc, nil
}

// locate translates an error of a skeleton to the template. It executes the template again with the rest of the budget
// and records the source of each piece, so that only failing renderings pay for this.
func (r *run) locate(d Data, s *skeleton.Error) error {
	out := &parsing.Error{Problem: s.Problem, Fix: s.Fix, Kind: s.WithoutValues()}
	if s.Record >= 0 && s.Record < len(r.Records) {
		return r.t.Sites[r.Records[s.Record].Site].ErrorAt(s)
	}
	if err := r.execute(d, true); err != nil {
		return out // the budget for finding the line is used up
	}
	out.Line = r.LineOf(s.Line)
	return out
}

// executionError adds the position to an error of text/template. It finds the innermost call that failed.
func (t *Template) executionError(err error) error {
	var known *parsing.Error
	if errors.As(err, &known) {
		return known
	}
	out := &parsing.Error{Problem: err.Error()}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		var e template.ExecError
		if !errors.As(inner, &e) {
			break
		}
		inner = e.Err
		out.Problem = inner.Error()
	}
	if m := parsing.Prefix.FindStringSubmatchIndex(out.Problem); m != nil {
		out.Line, _ = strconv.Atoi(out.Problem[m[2]:m[3]])
		if m[4] >= 0 {
			out.Column, _ = strconv.Atoi(out.Problem[m[4]:m[5]])
			out.Column++
		}
		out.Problem = out.Problem[m[1]:]
	}
	if _, after, ok := strings.Cut(out.Problem, ">: "); ok && strings.HasPrefix(out.Problem, "executing ") {
		out.Problem = after
	}
	var p *values.Problem
	out.Action = t.ActionAt(out.Line, out.Column)
	if errors.As(err, &p) {
		out.Problem, out.Fix, out.Kind, out.Limit = p.Text, p.Fix, p.Kind, p.Limit
	} else if out.Action != "" {
		out.Problem = out.Action + ": " + out.Problem
	}
	return out
}
