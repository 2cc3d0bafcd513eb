package render

import (
	"strconv"
	"strings"
)

// record is what one hole printed in one execution.
type record struct {
	site  int // the hole, as an index of Template.sites
	value any
}

// filler puts the recorded values into a parsed skeleton.
type filler struct {
	*budget
	sites   []site
	records []record
}

// fill builds the value of a node. omitted is true where omitempty holes with nothing to say are the whole value.
func (f *filler) fill(n *node) (value any, omitted bool, err error) {
	if err := f.spend(16); err != nil {
		return nil, false, err
	}
	switch n.kind {
	case constNode:
		return n.value, false, nil
	case holeNode:
		return f.whole(n.record)
	case textNode:
		return f.text(n.parts)
	case listNode:
		return f.list(n)
	default:
		return f.mapping(n)
	}
}

// whole fills a hole that is a whole plain scalar: the value with its type.
func (f *filler) whole(record int) (any, bool, error) {
	r := f.records[record]
	s := &f.sites[r.site]
	switch {
	case s.omit && isEmpty(r.value):
		return nil, true, nil
	case isNil(r.value):
		return nil, false, s.missing()
	case s.mode == modeQuote || s.mode == modeSingleQuote:
		text, err := f.textOf(r.value)
		return text, false, s.at(err)
	}
	value, err := f.copyValue(r.value)
	if err == nil && value == nil {
		err = s.missing()
	}
	return value, false, s.at(err)
}

// text fills a scalar that is text: quoted, in a block, or with other text around its holes.
func (f *filler) text(parts []part) (any, bool, error) {
	if wholeHole(parts) {
		r := f.records[parts[0].record]
		s := &f.sites[r.site]
		if s.omit && isEmpty(r.value) {
			return nil, true, nil
		}
		text, err := f.holeText(parts[0], true)
		return text, false, err
	}
	text, err := f.join(parts)
	return text, false, err
}

func (f *filler) join(parts []part) (string, error) {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.text)
		if p.record < 0 {
			continue
		}
		text, err := f.holeText(p, false)
		if err != nil {
			return "", err
		}
		if err := f.spend(len(text)); err != nil {
			return "", f.sites[f.records[p.record].site].at(err)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// holeText gives the text that a hole prints inside a scalar: what Helm would print there.
func (f *filler) holeText(p part, whole bool) (string, error) {
	r := f.records[p.record]
	s := &f.sites[r.site]
	if s.omit && !whole {
		return "", s.at(problemf("let the hole stand alone, or write `| default \"\"`", "omitempty must be the whole value, item or key"))
	}
	if isNil(r.value) {
		return "", s.missing()
	}
	text, err := f.modeText(s.mode, r.value)
	if err != nil {
		return "", s.at(err)
	}
	if p.indent != "" && (s.mode == modeYAML || s.mode == modeJSONPretty) {
		text = strings.ReplaceAll(text, "\n", "\n"+p.indent)
	}
	return text, nil
}

func (f *filler) modeText(m mode, v any) (string, error) {
	switch m {
	case modeYAML:
		return f.yamlText(v)
	case modeJSON:
		return f.jsonText(v, jsonEscaped)
	case modeJSONRaw:
		return f.jsonText(v, jsonRaw)
	case modeJSONPretty:
		return f.jsonText(v, jsonPretty)
	}
	text, err := f.textOf(v)
	switch m {
	case modeQuote:
		return strconv.Quote(text), err
	case modeSingleQuote:
		return "'" + text + "'", err
	}
	return text, err
}

func (f *filler) list(n *node) (any, bool, error) {
	out := make([]any, 0, len(n.items))
	omitted := len(n.items) > 0
	for _, item := range n.items {
		if item.kind == spliceNode {
			r := f.records[item.record]
			spliced, err := f.copyValue(r.value)
			if err != nil {
				return nil, false, f.sites[r.site].at(err)
			}
			items, _ := spliced.([]any)
			out = append(out, items...)
			omitted = omitted && len(items) == 0 && f.sites[r.site].omit
			continue
		}
		omitted = false
		value, gone, err := f.fill(item)
		if err != nil {
			return nil, false, err
		}
		if !gone {
			out = append(out, value)
		}
	}
	return out, omitted, nil
}

func (f *filler) mapping(n *node) (any, bool, error) {
	out := make(map[string]any, len(n.entries))
	gone := len(n.entries) > 0 // nothing but splices with omitempty and nothing to say
	for i := range n.entries {
		e := &n.entries[i]
		if e.splice >= 0 {
			if err := f.splice(out, e.splice); err != nil {
				return nil, false, err
			}
			gone = gone && len(out) == 0 && f.sites[f.records[e.splice].site].omit
			continue
		}
		gone = false
		key, omitted, err := f.key(e)
		if err != nil {
			return nil, false, err
		}
		if omitted {
			continue
		}
		value, omitted, err := f.fill(e.value)
		if err != nil {
			return nil, false, err
		}
		if omitted {
			continue
		}
		if n.checked {
			if _, taken := out[key]; taken {
				return nil, false, f.twice(e, key)
			}
		}
		out[key] = value
	}
	return out, gone, nil
}

func (f *filler) key(e *entry) (key string, omitted bool, err error) {
	if e.holes == nil {
		return e.key, false, nil
	}
	value, omitted, err := f.text(e.holes)
	if err != nil || omitted {
		return "", omitted, err
	}
	return value.(string), false, nil
}

// splice puts the entries of a map among their siblings.
func (f *filler) splice(out map[string]any, record int) error {
	r := f.records[record]
	s := &f.sites[r.site]
	copied, err := f.copyValue(r.value)
	if err != nil {
		return s.at(err)
	}
	m, _ := copied.(map[string]any)
	for _, key := range sortedKeys(m) {
		if _, taken := out[key]; taken {
			return s.at(problemf("leave it out of one of the two", "%s gives the key %q, which is there already", s.text, key))
		}
		out[key] = m[key]
	}
	return nil
}

// twice blames the hole in the key, or else the splice that gave the key before.
func (f *filler) twice(e *entry, key string) error {
	for _, p := range e.holes {
		if p.record >= 0 {
			s := &f.sites[f.records[p.record].site]
			return s.at(problemf("leave one of the two out", "%s gives the key %q, which is there already", s.text, key))
		}
	}
	return &skeletonError{line: e.value.line, record: -1, problem: "the key " + strconv.Quote(key) + " is given twice, once by a hole", mend: "leave one of the two out"}
}
