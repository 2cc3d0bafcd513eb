package render

import "strings"

// layoutText is text of a skeleton with placeholders that is not printed yet.
type layoutText string

// put records the value of a hole and prints its placeholder.
func (r *run) put(id int, base any) *nothing {
	s := &r.t.sites[id]
	v, err := r.read(s, base)
	if err != nil {
		return must(err)
	}
	if err := r.spend(holeBytes); err != nil {
		return must(s.at(err))
	}
	r.mark(id)
	r.buf = r.placeholder(r.buf, id, v, r.kindOf(s, v))
	return nil
}

// holeBytes is the memory for a printed hole: its record and its placeholder, in buffers that grow by copying.
const holeBytes = 160

// hole records the value of a hole and returns its placeholder, for the layout functions that follow in the pipeline. Plain
// text gets a placeholder for each of its lines.
func (r *run) hole(id int, base any) (layoutText, error) {
	s := &r.t.sites[id]
	v, err := r.read(s, base)
	if err != nil {
		return "", err
	}
	if s.mode == modePlain && !isNil(v) {
		return r.lines(id, v)
	}
	if err := r.spend(holeBytes); err != nil {
		return "", s.at(err)
	}
	return layoutText(r.placeholder(nil, id, v, r.kindOf(s, v))), nil
}

func (r *run) lines(id int, v any) (layoutText, error) {
	s := &r.t.sites[id]
	if isStructure(v) {
		return "", s.at(problemf("write `| toYaml` before it", "%s is %s, and only text can be indented", s.text, typeName(v)))
	}
	text, err := r.textOf(v)
	if err != nil {
		return "", s.at(err)
	}
	if err := r.spend(times(holeBytes, 1+strings.Count(text, "\n"))); err != nil {
		return "", s.at(err)
	}
	var out []byte
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			out = append(out, '\n')
		}
		kind := byte(kindValue)
		if i > 0 {
			kind = kindLine
		}
		out = r.placeholder(out, id, line, kind)
	}
	return layoutText(out), nil
}

// placeholder records v and appends its placeholder.
func (r *run) placeholder(b []byte, id int, v any, kind byte) []byte {
	r.recs = append(r.recs, record{site: id, value: v})
	return appendPlaceholder(b, kind, len(r.recs)-1)
}

// kindOf chooses the kind of placeholder of a hole. At the start of a line, toYaml prints the entries of a map or the items of
// a list.
func (r *run) kindOf(s *site, v any) byte {
	if s.mode != modeYAML || !s.newline && !r.atLineStart() {
		return kindValue
	}
	switch {
	case s.omit && isEmpty(v):
		return kindOmitted
	case isNil(v):
		return kindValue
	}
	switch typeName(v) {
	case "a map":
		return kindMap
	case "a list":
		return kindList
	}
	return kindScalar
}

// atLineStart reports whether the line that is being printed is blank so far.
func (r *run) atLineStart() bool {
	i := len(r.buf)
	for i > r.base && r.buf[i-1] == ' ' {
		i--
	}
	if i == r.base {
		return r.blank
	}
	return r.buf[i-1] == '\n'
}

// includeHoles returns the text of a template with its holes.
func (r *run) includeHoles(id int, name string, data any) (layoutText, error) {
	s := &r.t.sites[id]
	text, err := r.call(name, data, s.newline || r.atLineStart())
	return layoutText(text), err
}

func (r *run) indentLaidOut(n any, text layoutText) (layoutText, error) {
	out, err := r.indent(n, string(text))
	return layoutText(out), err
}

func (r *run) nindentLaidOut(n any, text layoutText) (layoutText, error) {
	out, err := r.nindent(n, string(text))
	return layoutText(out), err
}

func (r *run) trimLaidOut(text layoutText) layoutText {
	return layoutText(strings.TrimSpace(string(text)))
}

// partsCost takes the cost of splitting a text at n placeholders.
func (b *Budget) partsCost(n int) error { return b.spend(times(n, 200)) }

// emit prints laid out text.
func (r *run) emit(text layoutText) *nothing {
	must(r.textCost(times(bufferFactor, len(text))))
	if r.tracing {
		if parts := splitParts(string(text)); len(parts) > 0 && parts[0].record < len(r.recs) {
			r.mark(r.recs[parts[0].record].site)
		}
	}
	r.buf = append(r.buf, text...)
	return nil
}

// mark records, while an error is being located, that a hole prints here.
func (r *run) mark(id int) {
	if r.tracing {
		r.trace = append(r.trace, traced{offset: len(r.buf), pos: -1, site: id})
	}
}
