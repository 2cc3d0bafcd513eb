package render

import (
	"strconv"
	"strings"
)

// record is the value of one hole in one execution.
type record struct {
	site  int // the hole, as an index of Template.sites
	value any
}

// filler fills a parsed skeleton with the recorded values.
type filler struct {
	*Budget
	sites   []site
	records []record
}

// fill returns the value of a node. omitted is true if the value consists of omitempty holes without a value.
func (f *filler) fill(n *node) (value any, omitted bool, err error) {
	if n.kind == constNode || n.kind == textNode {
		if err := f.placed(n.value); err != nil {
			return nil, false, err
		}
	}
	switch n.kind {
	case constNode:
		return n.value, false, nil
	case holeNode:
		return f.fillWhole(n.record)
	case textNode:
		return f.text(n.parts)
	case listNode:
		return f.list(n)
	default:
		return f.mapping(n)
	}
}

// fillWhole fills a hole that is a whole plain scalar: the value keeps its type.
func (f *filler) fillWhole(record int) (any, bool, error) {
	r := f.records[record]
	s := &f.sites[r.site]
	switch {
	case s.omit && isEmpty(r.value):
		return nil, true, nil
	case isNil(r.value):
		return nil, false, s.missing()
	case s.inText:
		text, err := f.holeText(part{record: record}, true)
		if err == nil {
			err = s.at(f.placed(text))
		}
		return text, false, err
	case s.mode == modeQuote || s.mode == modeSingleQuote:
		text, err := f.textOf(r.value)
		if err == nil {
			err = f.placed(text)
		}
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
		if err == nil {
			err = s.at(f.moreText(len(text)))
		}
		return text, false, err
	}
	text, err := f.join(parts)
	if err == nil {
		err = f.moreText(len(text))
	}
	return text, false, err
}

// join takes the cost and then makes the text.
func (f *filler) join(parts []part) (string, error) {
	if err := f.spend(times(32, len(parts))); err != nil {
		return "", err
	}
	texts := make([]string, 0, 2*len(parts))
	for _, p := range parts {
		if err := f.textCost(len(p.text)); err != nil {
			return "", err
		}
		if texts = append(texts, p.text); p.record < 0 {
			continue
		}
		text, err := f.holeText(p, false)
		if err != nil {
			return "", err
		}
		if err := f.textCost(len(text)); err != nil {
			return "", f.sites[f.records[p.record].site].at(err)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ""), nil
}

// holeText returns the text that a hole prints inside a scalar, as in Helm.
func (f *filler) holeText(p part, whole bool) (string, error) {
	r := f.records[p.record]
	s := &f.sites[r.site]
	if s.omit && !whole {
		return "", s.at(problemf("use the hole alone, or write `| default \"\"`", "omitempty must be the whole value, item or key"))
	}
	if isNil(r.value) {
		return "", s.missing()
	}
	text, err := f.modeText(s.mode, r.value)
	if err != nil {
		return "", s.at(err)
	}
	if p.indent != "" && (s.mode == modeYAML || s.mode == modeJSONPretty) {
		if err := f.textCost(plus(len(text), times(strings.Count(text, "\n"), len(p.indent)))); err != nil {
			return "", s.at(err)
		}
		text = strings.ReplaceAll(text, "\n", "\n"+p.indent)
	}
	return text, nil
}

// modeText formats a value as the end of its hole requires. Copies that it makes do not count as part of the document.
func (f *filler) modeText(m mode, v any) (string, error) {
	placing := f.placing
	f.placing = false
	text, err := f.printed(m, v)
	f.placing = placing
	return text, err
}

func (f *filler) printed(m mode, v any) (string, error) {
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
	switch {
	case err != nil:
		return "", err
	case m == modeQuote:
		return f.quoted(text)
	case m == modeSingleQuote:
		return "'" + text + "'", f.textCost(len(text))
	}
	return text, nil
}

func (f *filler) list(n *node) (any, bool, error) {
	if err := f.placeList(len(n.items)); err != nil {
		return nil, false, err
	}
	out := make([]any, 0, len(n.items))
	omitted := len(n.items) > 0
	for _, item := range n.items {
		if item.kind == spliceNode {
			s, spliced, err := f.spliced(item.record)
			if err != nil {
				return nil, false, err
			}
			items, _ := spliced.([]any)
			if err := f.spend(times(bufferFactor*16, len(items))); err != nil {
				return nil, false, s.at(err)
			}
			out = append(out, items...)
			omitted = omitted && len(items) == 0 && s.omit
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
	if err := f.placeMap(len(n.entries)); err != nil {
		return nil, false, err
	}
	out := make(map[string]any, len(n.entries))
	gone := len(n.entries) > 0 // all entries are omitted splices
	for i := range n.entries {
		e := &n.entries[i]
		if e.splice >= 0 {
			if err := f.spliceMap(out, e.splice); err != nil {
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
				return nil, false, f.duplicateKey(e, key)
			}
		}
		out[key] = value
	}
	return out, gone, nil
}

func (f *filler) key(e *entry) (key string, omitted bool, err error) {
	if e.holes == nil {
		return e.key, false, f.moreText(len(e.key))
	}
	value, omitted, err := f.text(e.holes)
	if err != nil || omitted {
		return "", omitted, err
	}
	return value.(string), false, nil
}

// spliced returns the map or list whose entries or items a hole prints.
func (f *filler) spliced(record int) (*site, any, error) {
	r := f.records[record]
	s := &f.sites[r.site]
	if s.inText && !isEmpty(r.value) {
		return s, nil, s.at(problemf("put the hole on its own lines",
			"%s is inside of text on another path through the template, so it gives only text", s.text))
	}
	value, err := f.copyValue(r.value)
	return s, value, s.at(err)
}

// spliceMap adds the entries of a map to their siblings.
func (f *filler) spliceMap(out map[string]any, record int) error {
	s, copied, err := f.spliced(record)
	if err != nil {
		return err
	}
	m, _ := copied.(map[string]any)
	if err := f.sortCost(len(m), times(len(m), 100)); err != nil {
		return s.at(err)
	}
	for _, key := range sortedKeys(m) {
		if _, taken := out[key]; taken {
			return s.at(problemf("leave it out of one of the two", "%s gives the key %q, which already exists", s.text, key))
		}
		out[key] = m[key]
	}
	return nil
}

// duplicateKey returns the error at the hole in the key, or else at the splice that set the key before.
func (f *filler) duplicateKey(e *entry, key string) error {
	for _, p := range e.holes {
		if p.record >= 0 {
			s := &f.sites[f.records[p.record].site]
			return s.at(problemf("leave one of the two out", "%s gives the key %q, which already exists", s.text, key))
		}
	}
	return &skeletonError{line: e.value.line, record: -1, problem: "the key " + strconv.Quote(key) + " is given twice, once by a hole",
		kind: "a key is given twice, once by a hole", fix: "leave one of the two out"}
}
