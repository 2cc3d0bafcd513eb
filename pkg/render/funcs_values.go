package render

import (
	"encoding/base32"
	"encoding/base64"
	"reflect"

	"github.com/Masterminds/semver/v3"
	"github.com/Masterminds/sprig/v3"
)

// ownFunctions replace functions of sprig whose result is not sorted, which change their argument, or which replace zero by a
// default; and add some.
var ownFunctions = map[string]any{
	"default":  defaultTo,
	"coalesce": coalesce,
	"required": required,
	"fail":     fail,

	"slice":     slice,
	"mustSlice": slice,
	"dig":       dig,

	"b64dec": decoded(base64.StdEncoding.DecodeString, "base64"),
	"b32dec": decoded(base32.StdEncoding.DecodeString, "base32"),

	"semver": semverParts,
}

// decoded returns a decoder that fails on bad input. sprig's own prints the error into the document.
func decoded(decode func(string) ([]byte, error), name string) func(string) (string, error) {
	return func(text string) (string, error) {
		b, err := decode(text)
		if err != nil {
			return "", problemf("", "this is no %s: %v", name, err)
		}
		return string(b), nil
	}
}

// defaultTo returns value, or d if value is missing, null, "", [] or {}. Zero and false are values: sprig's function would turn
// `replicas: 0` into 1.
func defaultTo(d any, value ...any) any {
	if len(value) == 0 || isEmpty(value[0]) {
		return d
	}
	return value[0]
}

// coalesce returns the first value that is not empty, as for default.
func coalesce(values ...any) any {
	for _, v := range values {
		if !isEmpty(v) {
			return v
		}
	}
	return nil
}

func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, problemf("", "%v", message)
	}
	return value, nil
}

func fail(message string) (string, error) {
	return "", problemf("", "%v", message)
}

// slice is sprig's, but the slice of an empty list is an empty list, not null.
func slice(list any, indices ...any) (any, error) {
	r := reflect.ValueOf(list)
	if (r.Kind() == reflect.Slice || r.Kind() == reflect.Array) && r.Len() == 0 {
		return []any{}, nil
	}
	return sprig.TxtFuncMap()["mustSlice"].(func(any, ...any) (any, error))(list, indices...)
}

// dig reads nested fields: `dig "a" "b" DEFAULT MAP`. If a field is null or missing, it returns the default.
func dig(args ...any) (any, error) {
	if len(args) < 3 {
		return nil, problemf("", "dig needs at least one key, a default and a map")
	}
	value := args[len(args)-1]
	for _, arg := range args[:len(args)-2] {
		key, ok := arg.(string)
		if !ok {
			return nil, problemf("", "dig needs keys that are strings, not %s", typeName(arg))
		}
		next, ok := field(value, key)
		if !ok {
			return nil, problemf("", "%s has no field %q", typeName(value), key)
		}
		if next == nil {
			return args[len(args)-2], nil
		}
		value = next
	}
	return value, nil
}

// semverParts returns the parts of a version as a map, because templates can only read fields of maps.
func semverParts(text string) (map[string]any, error) {
	v, err := semver.NewVersion(text)
	if err != nil {
		return nil, problemf("", "%q is not a semantic version: %v", text, err)
	}
	return map[string]any{
		"Major": int64(v.Major()), "Minor": int64(v.Minor()), "Patch": int64(v.Patch()),
		"Prerelease": v.Prerelease(), "Metadata": v.Metadata(), "Original": v.Original(),
	}, nil
}
