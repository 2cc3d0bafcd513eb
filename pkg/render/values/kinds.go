package values

import (
	"fmt"
	"reflect"
	"sort"
)

// IsNil reports whether a value is missing. A nil map or slice is not: Go functions return it for empty.
func IsNil(v any) bool {
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

// IsEmpty reports whether `default`, `coalesce` and `omitempty` treat a value as missing: null, "", [] and {}. Zero and
// false are values: `replicas: 0` must not become 1.
func IsEmpty(v any) bool {
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

// TypeName returns the YAML name of a value's type.
func TypeName(v any) string {
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

// IsStructure reports whether v is a map or list, of any Go type.
func IsStructure(v any) bool {
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

// Field reads one field of a map. A missing map has no fields, so that `.spec.tls.enabled` of an upstream without
// .spec.tls is missing, not an error.
func Field(base any, name string) (value any, ok bool) {
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

// SortedKeys returns the keys of a map in order.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
