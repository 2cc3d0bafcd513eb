package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"
)

// dict makes a map of keys and values.
func (r *run) dict(args ...any) (map[string]any, error) {
	if err := r.spend(mapBytes(len(args) / 2)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(args)/2)
	for i := 0; i < len(args); i += 2 {
		key, err := r.textOf(args[i])
		if err != nil {
			return nil, err
		}
		out[key] = ""
		if i+1 < len(args) {
			out[key] = args[i+1]
		}
	}
	return out, nil
}

// keysCost takes the cost of sorting the keys of maps.
func (r *run) keysCost(maps ...map[string]any) error {
	n, length := 0, 0
	for _, m := range maps {
		if err := r.work(len(m) / 32); err != nil {
			return err
		}
		n += len(m)
		for key := range m {
			length += len(key)
		}
	}
	return r.sortCost(2*n, length)
}

// keys returns the sorted keys of all maps: Go's order is random.
func (r *run) keys(maps ...map[string]any) ([]string, error) {
	if err := r.keysCost(maps...); err != nil {
		return nil, err
	}
	out := []string{}
	for _, m := range maps {
		out = append(out, sortedKeys(m)...)
	}
	sort.Strings(out)
	return out, nil
}

// mapValues returns the values of a map in the order of its keys.
func (r *run) mapValues(m map[string]any) ([]any, error) {
	if err := r.keysCost(m); err != nil {
		return nil, err
	}
	out := []any{}
	for _, key := range sortedKeys(m) {
		out = append(out, m[key])
	}
	return out, nil
}

// sortAlpha sorts a copy; sprig sorts a list of strings in place.
func (r *run) sortAlpha(list any) ([]string, error) {
	if isStructure(list) && typeName(list) == "a map" {
		return nil, problemf("", "sortAlpha takes a list, not a map")
	}
	texts, err := r.toStrings(list)
	if err != nil {
		return nil, err
	}
	length := 0
	for _, text := range texts {
		length = plus(length, len(text))
	}
	if err := r.sortCost(len(texts), length); err != nil {
		return nil, err
	}
	sort.Strings(texts)
	return texts, nil
}

func (r *run) deepEqual(a, b any) (bool, error) { return r.equal(a, b) }

// equal compares values recursively. Integers of all types are comparable, so that the 80 of a template equals the 80 of an
// upstream.
func (r *run) equal(a, b any) (bool, error) {
	if err := r.work(1); err != nil {
		return false, err
	}
	if err := r.nest(); err != nil {
		return false, err
	}
	defer r.leave()
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return a == b, r.work(len(a) >> 12)
		}
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return r.equalMaps(a, b)
		}
	case []any:
		if b, ok := b.([]any); ok {
			return r.equalLists(a, b)
		}
	}
	// Convert results of functions, and numbers, to the types of an upstream.
	if isStructure(a) != isStructure(b) {
		return false, nil
	}
	ca, err := r.copyValue(a)
	if err != nil {
		return false, err
	}
	cb, err := r.copyValue(b)
	return err == nil && reflect.DeepEqual(ca, cb), err
}

func (r *run) equalMaps(a, b map[string]any) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok {
			return false, nil
		}
		if equal, err := r.equal(value, other); err != nil || !equal {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalLists(a, b []any) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if equal, err := r.equal(a[i], b[i]); err != nil || !equal {
			return false, err
		}
	}
	return true, nil
}

func (r *run) has(needle, list any) (bool, error) {
	items, err := r.items(list, "has")
	if err != nil {
		return false, err
	}
	for _, item := range items {
		if equal, err := r.equal(needle, item); err != nil || equal {
			return equal, err
		}
	}
	return false, nil
}

// uniq keeps the first of equal items.
func (r *run) uniq(list any) ([]any, error) {
	return r.filtered(list, "uniq", map[any]bool{}, true)
}

// without removes the items that are equal to one of omitted.
func (r *run) without(list any, omitted ...any) ([]any, error) {
	seen := make(map[any]bool, len(omitted))
	for _, item := range omitted {
		key, err := r.identity(item)
		if err != nil {
			return nil, err
		}
		seen[key] = true
	}
	return r.filtered(list, "without", seen, false)
}

// filtered keeps the items that are not in seen; if adding is true, it adds each kept item to seen.
func (r *run) filtered(list any, name string, seen map[any]bool, adding bool) ([]any, error) {
	items, err := r.items(list, name)
	if err != nil {
		return nil, err
	}
	if err := r.spend(times(200, len(items))); err != nil {
		return nil, err
	}
	out := []any{}
	for _, item := range items {
		if err := r.work(1); err != nil {
			return nil, err
		}
		key, err := r.identity(item)
		if err != nil {
			return nil, err
		}
		if !seen[key] {
			out = append(out, item)
		}
		if adding {
			seen[key] = true
		}
	}
	return out, nil
}

// structureKey identifies a map or list: its JSON.
type structureKey string

// identity returns a Go map key that is the same for equal values only.
func (r *run) identity(v any) (any, error) {
	if s, ok := v.(string); ok {
		return s, r.work(len(s) >> 12)
	}
	if isStructure(v) {
		text, err := r.jsonText(v, jsonRaw)
		return structureKey(text), err
	}
	return r.copyValue(v)
}

// chunk splits a list into lists of n items.
func (r *run) chunk(n, list any) ([]any, error) {
	length, err := count(n)
	if err != nil {
		return nil, err
	}
	if length < 1 {
		return nil, problemf("", "a list cannot be cut into pieces of %d items", length)
	}
	items, err := r.items(list, "chunk")
	if err != nil {
		return nil, err
	}
	pieces := len(items)/length + 1
	if err := r.spend(times(pieces, 48)); err != nil {
		return nil, err
	}
	out := []any{}
	for len(items) > 0 {
		next := min(length, len(items))
		out = append(out, items[:next:next])
		items = items[next:]
	}
	return out, nil
}

// jsonValueBytes is the memory for a value that is parsed from JSON.
const jsonValueBytes = 130

// fromJSON parses JSON. Integers stay integers, and invalid JSON is an error; sprig returns nothing.
func (r *run) fromJSON(text string) (any, error) {
	values := 1
	for _, mark := range []string{",", ":", "[", "{"} {
		values += strings.Count(text, mark)
	}
	if err := r.textCost(plus(2*len(text), times(values, jsonValueBytes))); err != nil {
		return nil, err
	}
	if err := r.work(values / 2); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil, problemf("", "reading JSON: %v", short(fmt.Sprint(err)))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, problemf("", "reading JSON: text follows the value")
	}
	return r.copyValue(out)
}

// eq compares scalars as text/template does, but does not print a map or list into its error.
func (r *run) eq(a any, others ...any) (bool, error) {
	for _, other := range others {
		if equal, err := r.same(a, other); err != nil || equal {
			return equal, err
		}
	}
	return false, nil
}

func (r *run) ne(a, b any) (bool, error) {
	equal, err := r.same(a, b)
	return !equal, err
}

func (r *run) same(a, b any) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok {
			return s == t, r.work(len(s) >> 12)
		}
	}
	for _, v := range []any{a, b} {
		if isStructure(v) {
			return false, problemf("write `deepEqual`", "eq compares scalars, not %s", typeName(v))
		}
	}
	equal, ok := sameScalar(reflect.ValueOf(a), reflect.ValueOf(b))
	if !ok {
		return false, problemf("", "incompatible types for comparison: %s and %s", typeName(a), typeName(b))
	}
	return equal, nil
}

// sameScalar compares two values; ok is false if their types cannot be compared.
func sameScalar(a, b reflect.Value) (equal, ok bool) {
	switch {
	case a.CanInt() && b.CanInt():
		return a.Int() == b.Int(), true
	case a.CanUint() && b.CanUint():
		return a.Uint() == b.Uint(), true
	case a.CanInt() && b.CanUint():
		return a.Int() >= 0 && uint64(a.Int()) == b.Uint(), true
	case a.CanUint() && b.CanInt():
		return sameScalar(b, a)
	case a.CanFloat() && b.CanFloat():
		return a.Float() == b.Float(), true
	case a.Kind() == reflect.String && b.Kind() == reflect.String:
		return a.String() == b.String(), true
	case a.Kind() == reflect.Bool && b.Kind() == reflect.Bool:
		return a.Bool() == b.Bool(), true
	}
	return false, false
}
