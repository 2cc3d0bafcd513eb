package render

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// Execute renders the document for d. The error is an *Error whose line is in the author's template; among others:
// a value that is not set, a document that is no mapping, two documents, a key given twice, and a limit passed.
// The document shares nothing with d. Integers in it are int64; a float64 of d stays one.
func (t *Template) Execute(d Data) (doc map[string]any, err error) {
	r := t.runs.Get().(*run)
	defer r.end(&err)
	r.start(d)
	if err := r.execute(d, false); err != nil {
		return nil, err
	}
	doc, err = t.document(r)
	var s *skeletonError
	if errors.As(err, &s) {
		return nil, t.locate(r, d, s)
	}
	if err != nil {
		return nil, t.executionError(err)
	}
	return doc, nil
}

// document parses the skeleton that was printed, unless it is known already, and fills it.
func (t *Template) document(r *run) (map[string]any, error) {
	tree := t.cache.get(r.buf)
	if tree == nil {
		var err error
		if tree, err = parseSkeleton(r.buf, r.Budget); err != nil {
			return nil, err
		}
		t.cache.put(r.buf, tree)
	}
	f := filler{Budget: r.Budget, sites: t.sites, records: r.recs}
	f.placing = true
	value, _, err := f.fill(tree.root)
	if err != nil {
		return nil, err
	}
	doc, ok := value.(map[string]any)
	if !ok {
		return nil, &skeletonError{record: -1, line: 1, problem: "the template renders no mapping",
			fix: "the document must be one mapping, such as `spec: …`"}
	}
	return doc, nil
}

// locate translates an error of a skeleton to the template. A skeleton is printed once more for it, with what is left
// of the budget, noting where each of its pieces comes from: the way that works does not pay for the way that fails.
func (t *Template) locate(r *run, d Data, s *skeletonError) error {
	out := &Error{Problem: s.problem, Fix: s.fix, kind: s.withoutValues()}
	if s.record >= 0 && s.record < len(r.recs) {
		return s.at(&t.sites[r.recs[s.record].site])
	}
	if err := r.execute(d, true); err != nil {
		return out // there is a limit to what is spent on the line
	}
	out.Line = t.place(r.buf, r.trace, s.line)
	return out
}

// at puts the error at the hole that is to blame.
func (e *skeletonError) at(s *site) *Error {
	out := &Error{Line: s.line, Column: s.column, Problem: e.problem, Fix: e.fix, action: s.action(), kind: e.withoutValues()}
	if e.named {
		out.Problem, out.kind = s.text+" "+e.problem, s.text+" "+out.kind
	}
	return out
}

// place gives the template's line that printed a line of a skeleton.
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
		found, _ = t.position.at(piece.pos)
		text := skeleton[min(piece.offset, offset):offset]
		found += bytes.Count(text, []byte("\n"))
	}
	return found
}

// executionError gives an error of text/template a place. It finds the innermost call that failed.
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
	if m := parsePrefix.FindStringSubmatchIndex(out.Problem); m != nil {
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
	var p *problem
	out.action = t.actionAt(out.Line, out.Column)
	if errors.As(err, &p) {
		out.Problem, out.Fix, out.kind, out.Limit = p.text, p.fix, p.kind, p.limit
	} else if out.action != "" {
		out.Problem = out.action + ": " + out.Problem
	}
	return out
}

// actionAt gives the source of the action that a place is in, on one line, "" where the place is not known.
func (t *Template) actionAt(line, column int) string {
	if line < 1 || column < 1 || line > len(t.position.starts) {
		return ""
	}
	at := min(t.position.starts[line-1]+column-1, len(t.position.text))
	return strings.Join(strings.Fields(t.position.action(parse.Pos(at), t.options.Left, t.options.Right)), " ")
}
