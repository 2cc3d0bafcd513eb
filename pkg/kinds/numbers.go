package kinds

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// kube-apiserver cuts a number that a built-in kind's field cannot hold down to what it can, without a word: by
// server-side apply, 4294967297 replicas become 1. So such a number is refused before.

// CheckNumbers returns an error for a number in a canonical document that its field cannot hold.
func CheckNumbers(doc map[string]any, schema *spec.Schema) error {
	if !mayOverflow(doc) {
		return nil
	}
	return numbersFit(doc, schema, "")
}

func numbersFit(v any, schema *spec.Schema, at string) error {
	if schema = PlainSchema(schema); schema == nil {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below, step := ValueSchema(schema), "[*]" // a key that an author chose may be a value of a Secret
			if property, ok := schema.Properties[key]; ok {
				below, step = &property, fieldpath.New(key).String()
			}
			if err := numbersFit(v[key], below, at+step); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			if err := numbersFit(item, ItemSchema(schema), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	default:
		if limits := Overflows(v, schema); limits != "" {
			return redact.Errorf("%s is %v, and the field holds %s: give a number that it holds", at, v, limits)
		}
	}
	return nil
}

// mayOverflow reports whether a value holds a number that some integer cannot hold. Few do, and only those are looked
// up in the schema.
func mayOverflow(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			if mayOverflow(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, mayOverflow)
	case int64:
		return v != int64(int32(v))
	case float64:
		return true
	}
	return false
}

// Overflows says what an integer field holds where a number is not among it; "" where it is.
func Overflows(v any, schema *spec.Schema) string {
	if !slices.Equal(TypesOf(schema), []string{"integer"}) {
		return ""
	}
	switch v := v.(type) {
	case float64: // a whole one is an int64 if that can hold it
		if v == math.Trunc(v) {
			return "no number that large"
		}
		return "whole numbers"
	case int64:
		if schema.Format == "int32" && v != int64(int32(v)) {
			return fmt.Sprintf("whole numbers from %d to %d", math.MinInt32, math.MaxInt32)
		}
	}
	return ""
}
