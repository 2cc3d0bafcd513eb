package program

import (
	"strconv"
	"strings"

	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// filler fills a parsed skeleton with the recorded values.
type filler struct {
	*values.Budget
	sites   []Site
	records []skeleton.Record
}

// fill returns the value of a node. omitted is true if the value consists of omitempty holes without a value.
func (f *filler) fill(n *skeleton.Node) (value any, omitted bool, err error) {
	if n.Kind == skeleton.ConstNode || n.Kind == skeleton.TextNode {
		if err := f.Placed(n.Value); err != nil {
			return nil, false, err
		}
	}
	switch n.Kind {
	case skeleton.ConstNode:
		return n.Value, false, nil
	case skeleton.HoleNode:
		return f.fillWhole(n.Record)
	case skeleton.TextNode:
		return f.text(n.Parts)
	case skeleton.ListNode:
		return f.list(n)
	default:
		return f.mapping(n)
	}
}

// fillWhole fills a hole that is a whole plain scalar: the value keeps its type.
func (f *filler) fillWhole(record int) (any, bool, error) {
	r := f.records[record]
	s := &f.sites[r.Site]
	switch {
	case s.Omit && values.IsEmpty(r.Value):
		return nil, true, nil
	case values.IsNil(r.Value):
		return nil, false, s.missing()
	case s.InText:
		text, err := f.holeText(skeleton.Part{Record: record}, true)
		if err == nil {
			err = s.at(f.Placed(text))
		}
		return text, false, err
	case s.Mode == ModeQuote || s.Mode == ModeSingleQuote:
		text, err := values.Text(f.Budget, r.Value)
		if err == nil {
			err = f.Placed(text)
		}
		return text, false, s.at(err)
	}
	value, err := values.Copy(f.Budget, r.Value)
	if err == nil && value == nil {
		err = s.missing()
	}
	return value, false, s.at(err)
}

// text fills a scalar that is text: quoted, in a block, or with other text around its holes.
func (f *filler) text(parts []skeleton.Part) (any, bool, error) {
	if skeleton.WholeHole(parts) {
		r := f.records[parts[0].Record]
		s := &f.sites[r.Site]
		if s.Omit && values.IsEmpty(r.Value) {
			return nil, true, nil
		}
		text, err := f.holeText(parts[0], true)
		if err == nil {
			err = s.at(f.MoreText(len(text)))
		}
		return text, false, err
	}
	text, err := f.join(parts)
	if err == nil {
		err = f.MoreText(len(text))
	}
	return text, false, err
}

// join takes the cost and then makes the text.
func (f *filler) join(parts []skeleton.Part) (string, error) {
	if err := f.Spend(values.Times(32, len(parts))); err != nil {
		return "", err
	}
	texts := make([]string, 0, 2*len(parts))
	for _, p := range parts {
		if err := f.Budget.Text(len(p.Text)); err != nil {
			return "", err
		}
		if texts = append(texts, p.Text); p.Record < 0 {
			continue
		}
		text, err := f.holeText(p, false)
		if err != nil {
			return "", err
		}
		if err := f.Budget.Text(len(text)); err != nil {
			return "", f.sites[f.records[p.Record].Site].at(err)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ""), nil
}

// holeText returns the text that a hole prints inside a scalar, as in Helm.
func (f *filler) holeText(p skeleton.Part, whole bool) (string, error) {
	r := f.records[p.Record]
	s := &f.sites[r.Site]
	if s.Omit && !whole {
		return "", s.at(values.Problemf("use the hole alone, or write `| default \"\"`", "omitempty must be the whole value, item or key"))
	}
	if values.IsNil(r.Value) {
		return "", s.missing()
	}
	text, err := f.modeText(s.Mode, r.Value)
	if err != nil {
		return "", s.at(err)
	}
	if p.Indent != "" && (s.Mode == ModeYAML || s.Mode == ModeJSONPretty) {
		if err := f.Budget.Text(values.Plus(len(text), values.Times(strings.Count(text, "\n"), len(p.Indent)))); err != nil {
			return "", s.at(err)
		}
		text = strings.ReplaceAll(text, "\n", "\n"+p.Indent)
	}
	return text, nil
}

// modeText formats a value as the end of its hole requires. Copies that it makes do not count as part of the document.
func (f *filler) modeText(m Mode, v any) (string, error) {
	before := f.Place(false)
	text, err := f.printed(m, v)
	f.Place(before)
	return text, err
}

func (f *filler) printed(m Mode, v any) (string, error) {
	switch m {
	case ModeYAML:
		return values.YAML(f.Budget, v)
	case ModeJSON:
		return values.JSON(f.Budget, v, values.JSONEscaped)
	case ModeJSONRaw:
		return values.JSON(f.Budget, v, values.JSONRaw)
	case ModeJSONPretty:
		return values.JSON(f.Budget, v, values.JSONPretty)
	}
	text, err := values.Text(f.Budget, v)
	switch {
	case err != nil:
		return "", err
	case m == ModeQuote:
		return values.Quoted(f.Budget, text)
	case m == ModeSingleQuote:
		return "'" + text + "'", f.Budget.Text(len(text))
	}
	return text, nil
}

func (f *filler) list(n *skeleton.Node) (any, bool, error) {
	if err := f.PlaceList(len(n.Items)); err != nil {
		return nil, false, err
	}
	out := make([]any, 0, len(n.Items))
	omitted := len(n.Items) > 0
	for _, item := range n.Items {
		if item.Kind == skeleton.SpliceNode {
			s, spliced, err := f.spliced(item.Record)
			if err != nil {
				return nil, false, err
			}
			items, _ := spliced.([]any)
			if err := f.Spend(values.Times(values.BufferFactor*16, len(items))); err != nil {
				return nil, false, s.at(err)
			}
			out = append(out, items...)
			omitted = omitted && len(items) == 0 && s.Omit
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

func (f *filler) mapping(n *skeleton.Node) (any, bool, error) {
	if err := f.PlaceMap(len(n.Entries)); err != nil {
		return nil, false, err
	}
	out := make(map[string]any, len(n.Entries))
	gone := len(n.Entries) > 0 // all entries are omitted splices
	for i := range n.Entries {
		e := &n.Entries[i]
		if e.Splice >= 0 {
			if err := f.spliceMap(out, e.Splice); err != nil {
				return nil, false, err
			}
			gone = gone && len(out) == 0 && f.sites[f.records[e.Splice].Site].Omit
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
		value, omitted, err := f.fill(e.Value)
		if err != nil {
			return nil, false, err
		}
		if omitted {
			continue
		}
		if n.Checked {
			if _, taken := out[key]; taken {
				return nil, false, f.duplicateKey(e, key)
			}
		}
		out[key] = value
	}
	return out, gone, nil
}

func (f *filler) key(e *skeleton.Entry) (key string, omitted bool, err error) {
	if e.Holes == nil {
		return e.Key, false, f.MoreText(len(e.Key))
	}
	value, omitted, err := f.text(e.Holes)
	if err != nil || omitted {
		return "", omitted, err
	}
	return value.(string), false, nil
}

// spliced returns the map or list whose entries or items a hole prints.
func (f *filler) spliced(record int) (*Site, any, error) {
	r := f.records[record]
	s := &f.sites[r.Site]
	if s.InText && !values.IsEmpty(r.Value) {
		return s, nil, s.at(values.Problemf("put the hole on its own lines",
			"%s is inside of text on another path through the template, so it gives only text", s.Text))
	}
	value, err := values.Copy(f.Budget, r.Value)
	return s, value, s.at(err)
}

// spliceMap adds the entries of a map to their siblings.
func (f *filler) spliceMap(out map[string]any, record int) error {
	s, copied, err := f.spliced(record)
	if err != nil {
		return err
	}
	m, _ := copied.(map[string]any)
	if err := f.Sort(len(m), values.Times(len(m), 100)); err != nil {
		return s.at(err)
	}
	for _, key := range values.SortedKeys(m) {
		if _, taken := out[key]; taken {
			return s.at(values.Problemf("leave it out of one of the two",
				"%s gives the key %q, which already exists", s.Text, key))
		}
		out[key] = m[key]
	}
	return nil
}

// duplicateKey returns the error at the hole in the key, or else at the splice that set the key before.
func (f *filler) duplicateKey(e *skeleton.Entry, key string) error {
	for _, p := range e.Holes {
		if p.Record >= 0 {
			s := &f.sites[f.records[p.Record].Site]
			return s.at(values.Problemf("leave one of the two out", "%s gives the key %q, which already exists", s.Text, key))
		}
	}
	return &skeleton.Error{Line: e.Value.Line, Record: -1, Problem: "the key " + strconv.Quote(key) +
		" is given twice, once by a hole",
		Kind: "a key is given twice, once by a hole", Fix: "leave one of the two out"}
}
