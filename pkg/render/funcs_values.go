package render

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sort"

	"github.com/Masterminds/semver/v3"
	"github.com/Masterminds/sprig/v3"
)

// ownFunctions replace or complete sprig's, where a result must be sorted, must be a copy, or must not turn a zero
// into a default.
var ownFunctions = map[string]any{
	"default":  defaultTo,
	"coalesce": coalesce,
	"required": required,
	"fail":     fail,

	"keys":      keys,
	"values":    values,
	"sortAlpha": sortAlpha,
	"slice":     slice,
	"mustSlice": slice,
	"has":       has,
	"mustHas":   has,
	"deepEqual": func(a, b any) bool { return reflect.DeepEqual(likeUpstream(a), likeUpstream(b)) },
	"dig":       dig,

	"b64dec": decoded(base64.StdEncoding.DecodeString, "base64"),
	"b32dec": decoded(base32.StdEncoding.DecodeString, "base32"),

	"fromJson":     fromJSON,
	"mustFromJson": fromJSON,
	"semver":       semverParts,
}

// decoded gives what a text stands for. sprig's own would put the words of the error into the document.
func decoded(decode func(string) ([]byte, error), name string) func(string) (string, error) {
	return func(text string) (string, error) {
		b, err := decode(text)
		if err != nil {
			return "", problemf("", "this is no %s: %v", name, err)
		}
		return string(b), nil
	}
}

// defaultTo gives value, or d where value is missing, null, "", [] or {}. Zero and false are values: sprig's own
// would turn `replicas: 0` into 1.
func defaultTo(d any, value ...any) any {
	if len(value) == 0 || isEmpty(value[0]) {
		return d
	}
	return value[0]
}

// coalesce gives the first value that is there, in the sense of default.
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
		return nil, problemf("", "%s", message)
	}
	return value, nil
}

func fail(message string) (string, error) {
	return "", problemf("", "%s", message)
}

// keys gives the keys of all maps, sorted: Go's order changes from call to call.
func keys(maps ...map[string]any) []string {
	out := []string{}
	for _, m := range maps {
		out = append(out, sortedKeys(m)...)
	}
	sort.Strings(out)
	return out
}

// values gives a map's values in the order of its keys.
func values(m map[string]any) []any {
	out := []any{}
	for _, key := range sortedKeys(m) {
		out = append(out, m[key])
	}
	return out
}

// sortAlpha sorts a copy; sprig sorts a list of strings in place.
func sortAlpha(list any) ([]string, error) {
	r := reflect.ValueOf(list)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return []string{fmt.Sprint(list)}, nil
	}
	var b budget
	out := make([]string, 0, r.Len())
	for i := range r.Len() {
		item := r.Index(i).Interface()
		if item == nil {
			continue
		}
		text, err := b.textOf(item)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	sort.Strings(out)
	return out, nil
}

// slice is sprig's, but the slice of an empty list is an empty list rather than null.
func slice(list any, indices ...any) (any, error) {
	r := reflect.ValueOf(list)
	if (r.Kind() == reflect.Slice || r.Kind() == reflect.Array) && r.Len() == 0 {
		return []any{}, nil
	}
	return sprig.TxtFuncMap()["mustSlice"].(func(any, ...any) (any, error))(list, indices...)
}

// likeUpstream gives integers one type, so that the 80 of a template equals the 80 of an upstream.
func likeUpstream(v any) any {
	b := budget{left: 16 << 20}
	c, err := b.copyValue(v)
	if err != nil {
		return v
	}
	return c
}

func has(needle, list any) (bool, error) {
	items, ok := likeUpstream(list).([]any)
	if !ok {
		return false, problemf("", "has looks into a list, not %s", typeName(list))
	}
	needle = likeUpstream(needle)
	for _, item := range items {
		if reflect.DeepEqual(needle, item) {
			return true, nil
		}
	}
	return false, nil
}

// dig reads nested fields: `dig "a" "b" DEFAULT MAP`. A null or missing step gives the default.
func dig(args ...any) (any, error) {
	if len(args) < 3 {
		return nil, problemf("", "dig needs at least one key, a default and a map")
	}
	value := args[len(args)-1]
	for _, arg := range args[:len(args)-2] {
		key, ok := arg.(string)
		if !ok {
			return nil, problemf("", "dig wants keys that are strings, not %s", typeName(arg))
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

// fromJSON reads JSON. Integers stay integers, and what is no JSON is an error, where sprig gives nothing.
func fromJSON(text string) (any, error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil, problemf("", "reading JSON: %v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, problemf("", "reading JSON: text follows the value")
	}
	b := budget{left: 16 << 20}
	return b.copyValue(out)
}

// semverParts gives a version's parts as a map, since templates read fields of maps only.
func semverParts(text string) (map[string]any, error) {
	v, err := semver.NewVersion(text)
	if err != nil {
		return nil, problemf("", "%q is no semantic version: %v", text, err)
	}
	return map[string]any{
		"Major": int64(v.Major()), "Minor": int64(v.Minor()), "Patch": int64(v.Patch()),
		"Prerelease": v.Prerelease(), "Metadata": v.Metadata(), "Original": v.Original(),
	}, nil
}
