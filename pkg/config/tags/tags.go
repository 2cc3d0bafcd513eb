package tags

import (
	"reflect"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
)

// Enum returns the values that a struct's field may have, by its type or its tag enum; nil if it may have any.
func Enum(f reflect.StructField) []string {
	if values, ok := config.EnumTypes[f.Type]; ok {
		return values
	}
	if tag := f.Tag.Get("enum"); tag != "" {
		return strings.Split(tag, ",")
	}
	return nil
}

// Name returns the key of a struct field in YAML.
func Name(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Named returns the field of struct type t that has the key.
func Named(t reflect.Type, key string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if key != "" && Name(f) == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// Short returns the field that is set if a file has a text in the place of struct type t, if there is one.
func Short(t reflect.Type) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("short") == "true" {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// Names returns the keys of struct type t in the order in which they are declared.
func Names(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		if name := Name(f); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// CEL are the keys whose values are CEL expressions.
var CEL = func() map[string]bool {
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
					out[Name(f)] = true
				}
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[config.Operator]())
	return out
}()
