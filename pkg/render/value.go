package render

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
)

// copyValue returns a deep copy of v in JSON types: nil, bool, int64, float64, string, []any, map[string]any. Numbers keep
// their type: an int stays an integer, a float64 a float64.
func (b *Budget) copyValue(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string, int64:
		return v, b.placed(v)
	case int:
		return int64(v), b.placed(v)
	case float64:
		if err := checkFloat(v); err != nil {
			return nil, err
		}
		return v, b.placed(v)
	case map[string]any:
		return b.copyMap(v)
	case []any:
		return b.copyList(v)
	case json.Number:
		return number(v)
	}
	return b.copyReflected(reflect.ValueOf(v))
}

// mapBytes returns the memory for a map with n entries.
func mapBytes(n int) int {
	switch {
	case n == 0:
		return 48
	case n <= 8:
		return 48 + 320
	}
	return plus(48, times(80, n))
}

func (b *Budget) copyMap(m map[string]any) (any, error) {
	if err := b.placeMap(len(m)); err != nil {
		return nil, err
	}
	if err := b.nest(); err != nil {
		return nil, err
	}
	defer b.leave()
	out := make(map[string]any, len(m))
	for key, value := range m {
		c, err := b.copyValue(value)
		if err != nil {
			return nil, err
		}
		if err := b.moreText(len(key)); err != nil {
			return nil, err
		}
		out[key] = c
	}
	return out, nil
}

func (b *Budget) copyList(l []any) (any, error) {
	if err := b.placeList(len(l)); err != nil {
		return nil, err
	}
	if err := b.nest(); err != nil {
		return nil, err
	}
	defer b.leave()
	out := make([]any, len(l))
	for i, value := range l {
		c, err := b.copyValue(value)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// copyReflected copies results of functions that are not JSON types: []string, map[string]string, small integers.
func (b *Budget) copyReflected(v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.String:
		return v.String(), b.placed(v.String())
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if v.Uint() > math.MaxInt64 {
			return float64(v.Uint()), nil
		}
		return int64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), checkFloat(v.Float())
	case reflect.Slice, reflect.Array:
		if err := b.spend(times(40, v.Len())); err != nil {
			return nil, err
		}
		items := make([]any, v.Len())
		for i := range items {
			items[i] = v.Index(i).Interface()
		}
		return b.copyList(items)
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			if err := b.spend(plus(mapBytes(v.Len()), times(32, v.Len()))); err != nil {
				return nil, err
			}
			entries := make(map[string]any, v.Len())
			for it := v.MapRange(); it.Next(); {
				entries[it.Key().String()] = it.Value().Interface()
			}
			return b.copyMap(entries)
		}
	case reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
	}
	return nil, problemf("", "a Go value of type %s cannot be used in a document", v.Type())
}

func checkFloat(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return problemf("", "the number %v cannot be used in a document", f)
	}
	return nil
}

// number converts an integer to int64 if it fits, as the API server's decoder does.
func number(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, problemf("", "the number %v is out of range", n)
	}
	return f, nil
}

// isNil reports whether a value is missing. A nil map or slice is not: Go functions return it for empty.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch v.(type) {
	case string, bool, int64, float64, map[string]any, []any:
		return false
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// isEmpty reports whether `default`, `coalesce` and `omitempty` treat a value as missing: null, "", [] and {}. Zero and false
// are values: `replicas: 0` must not become 1.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case bool, int, int64, float64:
		return false
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String, reflect.Map, reflect.Slice, reflect.Array:
		return r.Len() == 0
	case reflect.Pointer:
		return r.IsNil()
	}
	return false
}

// typeName returns the YAML name of a value's type.
func typeName(v any) string {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return "null"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Map:
		return "a map"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return "a number"
	}
	return fmt.Sprintf("a %T", v)
}

// isStructure reports whether v is a map or list, of any Go type.
func isStructure(v any) bool {
	switch v.(type) {
	case nil, string, bool, int, int64, float64:
		return false
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return true
	}
	return false
}

// field reads one field of a map. A missing map has no fields, so that `.spec.tls.enabled` of an upstream without .spec.tls is
// missing, not an error.
func field(base any, name string) (value any, ok bool) {
	switch m := base.(type) {
	case nil:
		return nil, true
	case map[string]any:
		return m[name], true
	}
	r := reflect.ValueOf(base)
	if r.Kind() != reflect.Map || r.Type().Key().Kind() != reflect.String {
		return nil, false
	}
	v := r.MapIndex(reflect.ValueOf(name).Convert(r.Type().Key()))
	if !v.IsValid() {
		return nil, true
	}
	return v.Interface(), true
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
