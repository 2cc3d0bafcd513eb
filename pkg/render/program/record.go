package program

import (
	"strings"

	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// layoutText is text of a skeleton with placeholders that is not printed yet.
type layoutText string

// put records the value of a hole and prints its placeholder.
func (r *run) put(id int, base any) *nothing {
	s := &r.t.Sites[id]
	v, err := r.read(s, base)
	if err != nil {
		return must(err)
	}
	if err := r.budget.Spend(holeBytes); err != nil {
		return must(s.at(err))
	}
	r.Mark(s.Line, false)
	r.Buf = r.Placeholder(r.Buf, id, v, r.kindOf(s, v))
	return nil
}

// holeBytes is the memory for a printed hole: its record and its placeholder, in buffers that grow by copying.
const holeBytes = 160

// hole records the value of a hole and returns its placeholder, for the layout functions that follow in the pipeline.
// Plain text gets a placeholder for each of its lines.
func (r *run) hole(id int, base any) (layoutText, error) {
	s := &r.t.Sites[id]
	v, err := r.read(s, base)
	if err != nil {
		return "", err
	}
	if s.Mode == ModePlain && !values.IsNil(v) {
		return r.lines(id, v)
	}
	if err := r.budget.Spend(holeBytes); err != nil {
		return "", s.at(err)
	}
	return layoutText(r.Placeholder(nil, id, v, r.kindOf(s, v))), nil
}

func (r *run) lines(id int, v any) (layoutText, error) {
	s := &r.t.Sites[id]
	if values.IsStructure(v) {
		return "", s.at(values.Problemf("write `| toYaml` before it", "%s is %s, and only text can be indented", s.Text, values.TypeName(v)))
	}
	text, err := values.Text(r.budget, v)
	if err != nil {
		return "", s.at(err)
	}
	if err := r.budget.Spend(values.Times(holeBytes, 1+strings.Count(text, "\n"))); err != nil {
		return "", s.at(err)
	}
	var out []byte
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			out = append(out, '\n')
		}
		kind := byte(skeleton.KindValue)
		if i > 0 {
			kind = skeleton.KindLine
		}
		out = r.Placeholder(out, id, line, kind)
	}
	return layoutText(out), nil
}

// kindOf chooses the kind of placeholder of a hole. At the start of a line, toYaml prints the entries of a map or the
// items of a list.
func (r *run) kindOf(s *Site, v any) byte {
	if s.Mode != ModeYAML || !s.NewLine && !r.AtLineStart() {
		return skeleton.KindValue
	}
	switch {
	case s.Omit && values.IsEmpty(v):
		return skeleton.KindOmitted
	case values.IsNil(v):
		return skeleton.KindValue
	}
	switch values.TypeName(v) {
	case "a map":
		return skeleton.KindMap
	case "a list":
		return skeleton.KindList
	}
	return skeleton.KindScalar
}

// includeHoles returns the text of a template with its holes.
func (r *run) includeHoles(id int, name string, data any) (layoutText, error) {
	s := &r.t.Sites[id]
	text, err := r.call(name, data, s.NewLine || r.AtLineStart())
	return layoutText(text), err
}

func (r *run) indent(n any, text layoutText) (layoutText, error) {
	out, err := functions.Indent(r.budget, n, string(text))
	return layoutText(out), err
}

func (r *run) nindent(n any, text layoutText) (layoutText, error) {
	out, err := functions.Nindent(r.budget, n, string(text))
	return layoutText(out), err
}

func trim(text layoutText) layoutText { return layoutText(strings.TrimSpace(string(text))) }

// emit prints laid out text.
func (r *run) emit(text layoutText) *nothing {
	must(r.budget.Text(values.Times(values.BufferFactor, len(text))))
	if r.Tracing {
		if parts := skeleton.SplitParts(string(text)); len(parts) > 0 && parts[0].Record < len(r.Records) {
			r.Mark(r.t.Sites[r.Records[parts[0].Record].Site].Line, false)
		}
	}
	r.Buf = append(r.Buf, text...)
	return nil
}
