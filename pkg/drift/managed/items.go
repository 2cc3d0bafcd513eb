package managed

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Items finds the owned items of a list. fieldsV1 names an item by its keys (k:{"name":"app"}), its value (v:"app") or
// its index (i:0). The API server writes each name in one way only, so the name of an item is built and looked up:
// parsing the names would double the cost of a projection.
type Items struct {
	owned Fields
	// keys are the sets of key fields in the names, most fields first: there is only one, unless some keys are optional.
	keys [][]string
	// escaped are the names that need parsing, by their canonical text.
	escaped        map[string]Fields
	values, counts bool
	names          []string // the fields of keys, in one slice
	buf            []byte
	// number and digest are those of the owned names that are not found yet: a sum of hashes, so that the order does not
	// count.
	number int
	digest uint64
}

// nameSeed prevents forged names whose hashes collide in the sum.
var nameSeed = maphash.MakeSeed()

// maxKeySets limits the work for a forged entry. A list has one set of keys, some of which may be optional; this is
// enough for three optional keys.
const maxKeySets = 8

// maxKeys limits the key fields of a list: no kind has more than three.
const maxKeys = 8

// Items returns the items that f owns.
func (f Fields) Items() *Items {
	it := &Items{}
	it.read(f)
	return it
}

// read sets it to the items that f owns, and reuses its memory.
func (it *Items) read(f Fields) {
	it.owned, it.keys, it.names, it.escaped, it.values, it.counts = f, it.keys[:0], it.names[:0], nil, false, false
	it.number, it.digest = 0, 0
	for key, below := range f {
		if m, ok := below.(map[string]any); !ok || m == nil || key == ownDot {
			continue
		}
		it.number++
		it.digest += maphash.String(nameSeed, key)
		if len(key) < 2 || key[1] != ':' {
			continue
		}
		switch key[0] {
		case 'k':
			it.addKeys(key)
		case 'v':
			it.values = true
			if !simpleText(key) {
				it.addEscaped(key)
			}
		case 'i':
			it.counts = true
		}
	}
	if len(it.keys) > 1 {
		slices.SortFunc(it.keys, func(a, b []string) int {
			if len(a) != len(b) {
				return len(b) - len(a)
			}
			return slices.Compare(a, b)
		})
	}
}

// markFound records that the item last returned by of exists.
func (it *Items) markFound() {
	it.number--
	it.digest -= maphash.Bytes(nameSeed, it.buf)
}

// complete reports whether each owned name was found once. It may be false by mistake if names have escapes, never
// true.
func (it *Items) complete() bool { return it.number == 0 && it.digest == 0 }

// isEmpty reports whether f owns no items, so that it owns the list, if at all, as a whole.
func (it *Items) isEmpty() bool { return len(it.keys) == 0 && !it.values && !it.counts }

// AreKeyed reports whether items are named by their keys.
func (it *Items) AreKeyed() bool { return len(it.keys) > 0 }

// AreValues reports whether items are named by their values.
func (it *Items) AreValues() bool { return it.values }

// addKeys adds the key fields of a k: name.
func (it *Items) addKeys(key string) {
	if !simpleText(key) {
		it.addEscaped(key)
		return
	}
	for _, known := range it.keys {
		if sameKeys(key[2:], known) {
			return
		}
	}
	if len(it.keys) >= maxKeySets {
		return
	}
	var ok bool
	from := len(it.names)
	if it.names, ok = appendKeyNames(it.names, key[2:]); ok && len(it.names)-from > maxKeys {
		it.names = it.names[:from]
	} else if ok {
		it.keys = append(it.keys, it.names[from:len(it.names):len(it.names)])
	}
}

// addEscaped parses a name with escapes and stores it by its canonical text.
func (it *Items) addEscaped(key string) {
	if it.escaped == nil {
		it.escaped = map[string]Fields{}
	}
	owned, _ := it.owned.Below(key)
	element, err := smd.DeserializePathElement(key)
	if err != nil {
		it.escaped[key] = owned
		return
	}
	if element.Value != nil {
		it.escaped[string(appendScalar([]byte("v:"), (*element.Value).Unstructured()))] = owned
		return
	}
	if element.Key == nil {
		it.escaped[key] = owned
		return
	}
	names, item := []string{}, map[string]any{}
	for _, f := range *element.Key {
		names, item[f.Name] = append(names, f.Name), f.Value.Unstructured()
	}
	if name, ok := appendName(nil, item, names); ok {
		it.escaped[string(name)] = owned
		known := slices.ContainsFunc(it.keys, func(k []string) bool { return slices.Equal(k, names) })
		if !known && len(it.keys) < maxKeySets && len(names) <= maxKeys {
			it.keys = append(it.keys, names)
		}
	}
}

// Of returns what is owned of item i of the list.
func (it *Items) Of(item any, i int) (Fields, bool) {
	if m, ok := item.(map[string]any); ok {
		for _, names := range it.keys {
			if it.buf, ok = appendName(it.buf[:0], m, names); !ok {
				continue
			}
			if f, ok := it.lookup(); ok {
				return f, true
			}
		}
	} else if _, isList := item.([]any); it.values && !isList {
		it.buf = appendScalar(append(it.buf[:0], "v:"...), item)
		if f, ok := it.lookup(); ok {
			return f, true
		}
	}
	if it.counts {
		it.buf = strconv.AppendInt(append(it.buf[:0], "i:"...), int64(i), 10)
		return it.lookup()
	}
	return nil, false
}

// nth returns the index of the nth owned item, from 0, or -1 if there are not enough; if f owns no items it returns n.
func (it *Items) nth(list []any, n int) int {
	if it.isEmpty() {
		return n
	}
	for i, item := range list {
		if _, ok := it.Of(item, i); !ok {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return -1
}

func (it *Items) lookup() (Fields, bool) {
	if m, ok := it.owned[string(it.buf)].(map[string]any); ok && m != nil {
		return m, true
	}
	f, ok := it.escaped[string(it.buf)]
	return f, ok && f != nil
}

// Step returns the step of a path to an item: by its keys if it is owned by them, else by its index.
func (it *Items) Step(item any, i int, parent *fieldpath.Trail) *fieldpath.Trail {
	m, _ := item.(map[string]any)
	for _, names := range it.keys {
		keys := make(map[string]string, len(names))
		for _, n := range names {
			if v, ok := m[n]; ok {
				keys[n] = plainText(v)
			}
		}
		if len(keys) > 0 {
			return parent.Item(keys)
		}
	}
	return parent.Index(i)
}

// appendName writes the k: name of an item with the given sorted key fields. It returns false if the item lacks one.
func appendName(buf []byte, item map[string]any, names []string) ([]byte, bool) {
	buf = append(buf, "k:{"...)
	for i, n := range names {
		v, ok := item[n]
		if !ok {
			return buf, false
		}
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendText(buf, n)
		buf = append(buf, ':')
		buf = appendScalar(buf, v)
	}
	return append(buf, '}'), true
}

// appendScalar writes a value as JSON. Maps and lists, which cannot be keys, give a text that no name has.
func appendScalar(buf []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(buf, "null"...)
	case string:
		return appendText(buf, v)
	case bool:
		return strconv.AppendBool(buf, v)
	case int64:
		return strconv.AppendInt(buf, v, 10)
	case float64:
		if i, ok := canonical.Integer(v); ok {
			return strconv.AppendInt(buf, i, 10)
		}
		return appendJSON(buf, v)
	default:
		return append(buf, '?')
	}
}

func appendText(buf []byte, s string) []byte {
	if simpleText(s) && strings.IndexByte(s, '"') < 0 {
		return append(append(append(buf, '"'), s...), '"')
	}
	return appendJSON(buf, s)
}

func appendJSON(buf []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return append(buf, '?')
	}
	return append(buf, text...)
}

// simpleText reports whether s has only one JSON form: no escapes, and no characters that only some encoders escape.
func simpleText(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c >= utf8.RuneSelf-1, c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// nextKey cuts off the first key of a JSON object without escapes: {"a":1,"b":"x"} gives a and the rest {"b":"x"}.
func nextKey(s string) (name, rest string, ok bool) {
	if len(s) < 2 || (s[0] != '{' && s[0] != ',') || s[1] != '"' {
		return "", "", false
	}
	name, rest, ok = strings.Cut(s[2:], `":`)
	if !ok || rest == "" {
		return "", "", false
	}
	end := strings.IndexAny(rest, ",}")
	if rest[0] == '"' {
		end = strings.IndexByte(rest[1:], '"') + 2
	}
	if end < 1 || end >= len(rest) {
		return "", "", false
	}
	return name, rest[end:], true
}

// appendKeyNames appends the names of a JSON object's keys; it returns false if it cannot parse them.
func appendKeyNames(names []string, s string) ([]string, bool) {
	from := len(names)
	for s != "}" {
		name, rest, ok := nextKey(s)
		if !ok {
			return names[:from], false
		}
		names, s = append(names, name), rest
	}
	return names, len(names) > from
}

func sameKeys(s string, names []string) bool {
	for _, want := range names {
		name, rest, ok := nextKey(s)
		if !ok || name != want {
			return false
		}
		s = rest
	}
	return s == "}"
}

// plainText writes a key as in a selector: JSON without quotes.
func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(appendScalar(nil, v))
}
