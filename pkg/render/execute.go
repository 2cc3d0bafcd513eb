package render

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Execute renders the document for d. It returns an *Error with a line of the template, for example for a value that is not
// set, a document that is not a mapping, a duplicate key, or an exceeded limit. The document shares no memory with d. Integers
// become int64; a float64 stays one.
func (t *Template) Execute(d Data) (doc map[string]any, err error) {
	r := t.runs.Get().(*run)
	defer r.end(&err)
	r.start(d)
	if err := r.execute(d, false); err != nil {
		return nil, err
	}
	doc, err = t.document(r)
	var s *skeleton.Error
	if errors.As(err, &s) {
		return nil, t.locate(r, d, s)
	}
	if err != nil {
		return nil, t.executionError(err)
	}
	return doc, nil
}

// document parses the skeleton that was printed, unless it is in the cache, and fills it.
func (t *Template) document(r *run) (map[string]any, error) {
	tree := t.cache.Get(r.buf)
	if tree == nil {
		var err error
		if tree, err = skeleton.Parse(r.buf, r.budget); err != nil {
			return nil, err
		}
		t.cache.Put(r.buf, tree)
	}
	f := filler{Budget: r.budget, sites: t.sites, records: r.recs}
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

// locate translates an error of a skeleton to the template. It executes the template again with the rest of the budget and
// records the source of each piece, so that only failing renderings pay for this.
func (t *Template) locate(r *run, d Data, s *skeleton.Error) error {
	out := &Error{Problem: s.Problem, Fix: s.Fix, Kind: s.WithoutValues()}
	if s.Record >= 0 && s.Record < len(r.recs) {
		return t.sites[r.recs[s.Record].site].errorAt(s)
	}
	if err := r.execute(d, true); err != nil {
		return out // the budget for finding the line is used up
	}
	out.Line = t.place(r.buf, r.trace, s.Line)
	return out
}

// errorAt returns an error of the skeleton at the hole that caused it.
func (s *site) errorAt(e *skeleton.Error) *Error {
	out := &Error{Line: s.line, Column: s.column, Problem: e.Problem, Fix: e.Fix, Action: s.action(), Kind: e.WithoutValues()}
	if e.Named {
		out.Problem, out.Kind = s.text+" "+e.Problem, s.text+" "+out.Kind
	}
	return out
}

// place returns the line of the template that printed a line of a skeleton.
func (t *Template) place(skeleton []byte, trace []traced, line int) int {
	offset := 0
	for ; line > 1; line-- {
		next := bytes.IndexByte(skeleton[offset:], '\n')
		if next < 0 {
			break
		}
		offset += next + 1
	}
	for offset < len(skeleton) && skeleton[offset] == ' ' {
		offset++
	}
	found := 0
	for _, piece := range trace {
		if piece.offset > offset && found > 0 {
			break
		}
		if piece.site >= 0 {
			found = t.sites[piece.site].line
			continue
		}
		found, _ = t.position.At(piece.pos)
		text := skeleton[min(piece.offset, offset):offset]
		found += bytes.Count(text, []byte("\n"))
	}
	return found
}

// executionError adds the position to an error of text/template. It finds the innermost call that failed.
func (t *Template) executionError(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	out := &Error{Problem: err.Error()}
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
	out.Action = t.actionAt(out.Line, out.Column)
	if errors.As(err, &p) {
		out.Problem, out.Fix, out.Kind, out.Limit = p.Text, p.Fix, p.Kind, p.Limit
	} else if out.Action != "" {
		out.Problem = out.Action + ": " + out.Problem
	}
	return out
}

// actionAt returns the source of the action at a position, on one line, or "" if the position is unknown.
func (t *Template) actionAt(line, column int) string {
	if line < 1 || column < 1 || line > len(t.position.Starts) {
		return ""
	}
	at := min(t.position.Starts[line-1]+column-1, len(t.position.Text))
	return strings.Join(strings.Fields(t.position.Action(parse.Pos(at), t.options.Left, t.options.Right)), " ")
}
