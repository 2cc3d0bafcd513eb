package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// jsonName returns the key of a struct field in YAML.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// fieldNamed returns the field of struct type t that has the key.
func fieldNamed(t reflect.Type, key string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if key != "" && jsonName(f) == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// shortField returns the field that is set if a file has a text in the place of struct type t, if there is one.
func shortField(t reflect.Type) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("short") == "true" {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// fieldNames returns the keys of struct type t in the order in which they are declared.
func fieldNames(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		if name := jsonName(f); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// celFields are the keys whose values are CEL expressions.
var celFields = func() map[string]bool {
	out := map[string]bool{}
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for _, f := range reflect.VisibleFields(t) {
				if f.Tag.Get("holds") == "cel" {
					out[jsonName(f)] = true
				}
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[Operator]())
	return out
}()

// suggest says which candidate was probably meant; where none is near it lists them all, and meant is empty.
func suggest(got string, candidates []string, list string) (fix, meant string) {
	meant = spelling.Closest(got, candidates)
	switch {
	case meant != "":
		return "did you mean " + meant + "?", meant
	case len(candidates) == 0:
		return "remove it", ""
	default:
		return list + " " + strings.Join(candidates, ", "), ""
	}
}

func fixForUnknown(got string, candidates []string, list string) string {
	fix, _ := suggest(got, candidates, list)
	return fix
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
