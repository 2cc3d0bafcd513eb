package canonical

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// ValueError is a value without a canonical form: the API server would refuse it or store something else.
type ValueError struct {
	Path    fieldpath.Path // its path
	Problem string         // what is wrong with it
	Fix     string         // what to write instead
}

// Error returns "PATH: problem: how to fix it".
func (e *ValueError) Error() string { return e.Path.String() + ": " + e.Problem + ": " + e.Fix }

// Form returns a deep copy of obj in canonical form, which is hashed and applied. obj has JSON types, Go's other
// integer types or json.Number. Form(Form(x)) equals Form(x), and obj is not changed. The error is a *ValueError.
//
//   - A null value in a map is removed: built-in kinds have none, and the API server refuses it in an apply.
//     FormWithNulls keeps it, for kinds in which null can be a value. A null item of a list stays: removing it would
//     move the items after it, and the API server decides whether the kind accepts it.
//   - A number becomes int64 if that is exact, else float64: 1.0 is 1, -0.0 is 0, and 2^53+1 stays itself. An integer
//     that is neither an int64 nor exact as float64, NaN and the infinities are errors: the API server would store
//     another number or none.
//   - The stringData of a v1 Secret is moved into data, base64-encoded, and overwrites it, as in the API server. Under
//     server-side apply stringData would be owned instead of data: a removed key would stay, and a changed one go
//     unnoticed.
//
// Nothing else changes: empty maps, lists and strings have a meaning.
func Form(obj map[string]any) (map[string]any, error) {
	out, err := FormWithNulls(obj)
	if err == nil {
		DropNulls(out)
	}
	return out, err
}

// DropNulls removes null values from maps, in place.
func DropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, value := range v {
			if value == nil {
				delete(v, k)
				continue
			}
			DropNulls(value)
		}
	case []any:
		for _, item := range v {
			DropNulls(item)
		}
	}
}

// FormWithNulls is Form that keeps null values.
func FormWithNulls(obj map[string]any) (map[string]any, error) {
	out, err := canonicalMap(obj, nil)
	if err != nil {
		return nil, err
	}
	if isSecret(out) {
		if err := mergeStringData(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func canonicalMap(m map[string]any, at *fieldpath.Trail) (map[string]any, error) {
	out := make(map[string]any, len(m))
	first, problem := "", error(nil) // sorted, so that the same document gives the same error
	for k, v := range m {
		c, err := canonicalValue(v, at.Field(k))
		if err != nil && (problem == nil || k < first) {
			first, problem = k, err
		}
		out[k] = c
	}
	if problem != nil {
		return nil, problem
	}
	return out, nil
}

func canonicalValue(v any, at *fieldpath.Trail) (any, error) {
	switch v := v.(type) {
	case nil, string, bool, int64:
		return v, nil
	case map[string]any:
		if v == nil {
			return nil, nil
		}
		return canonicalMap(v, at)
	case []any:
		if v == nil {
			return nil, nil
		}
		out := make([]any, len(v))
		for i, item := range v {
			c, err := canonicalValue(item, at.Index(i))
			if err != nil {
				return nil, err
			}
			out[i] = c
		}
		return out, nil
	default:
		return canonicalNumber(v, at)
	}
}

func canonicalNumber(v any, at *fieldpath.Trail) (any, error) {
	switch v := v.(type) {
	case float64:
		return canonicalFloat(v, at)
	case float32:
		return canonicalFloat(float64(v), at)
	case int:
		return int64(v), nil
	case int8:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint8:
		return int64(v), nil
	case uint16:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint:
		return canonicalText(strconv.FormatUint(uint64(v), 10), at)
	case uint64:
		return canonicalText(strconv.FormatUint(v, 10), at)
	case json.Number:
		return canonicalText(v.String(), at)
	default:
		return nil, &ValueError{Path: at.Path(), Problem: fmt.Sprintf("a %T is not a JSON value", v),
			Fix: "give a map, list, string, number or boolean"}
	}
}

func canonicalFloat(f float64, at *fieldpath.Trail) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, &ValueError{Path: at.Path(), Problem: fmt.Sprintf("%v is not a JSON number", f),
			Fix: "give a finite number"}
	}
	if i, ok := Integer(f); ok {
		return i, nil
	}
	return f, nil
}

// canonicalText converts a number in JSON text.
func canonicalText(s string, at *fieldpath.Trail) (any, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, &ValueError{Path: at.Path(), Problem: fmt.Sprintf("%q is not a number that can be stored", s),
			Fix: "give a number, or quote it to make it a string"}
	}
	if isDigits(s) && strconv.FormatFloat(f, 'f', 0, 64) != s {
		return nil, &ValueError{Path: at.Path(),
			Problem: fmt.Sprintf("the integer %s has more than 64 bits and would be rounded", s),
			Fix:     "quote it to make it a string"}
	}
	return canonicalFloat(f, at)
}

func isDigits(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (i > 0 || s[i] != '-') {
			return false
		}
	}
	return s != ""
}

// Integer returns f as int64 if that is the same number. The upper bound is exclusive: 2^63 is a float64 and not an
// int64.
func Integer(f float64) (int64, bool) {
	if f != math.Trunc(f) || f < math.MinInt64 || f >= math.MaxInt64 {
		return 0, false
	}
	return int64(f), true
}

func isSecret(obj map[string]any) bool { return obj["apiVersion"] == "v1" && obj["kind"] == "Secret" }

// mergeStringData moves stringData into data, in place.
func mergeStringData(secret map[string]any) error {
	given := secret["stringData"]
	if given == nil {
		return nil
	}
	texts, ok := given.(map[string]any)
	if !ok {
		return &ValueError{Path: fieldpath.New("stringData"), Problem: "it is not a map", Fix: "give a map of strings"}
	}
	data, ok := secret["data"].(map[string]any)
	if !ok && secret["data"] != nil {
		return &ValueError{Path: fieldpath.New("data"), Problem: "it is not a map", Fix: "give a map of base64 strings"}
	}
	if data == nil {
		data = make(map[string]any, len(texts))
	}
	for _, k := range slices.Sorted(maps.Keys(texts)) {
		if texts[k] == nil {
			continue
		}
		text, ok := texts[k].(string)
		if !ok {
			return &ValueError{Path: fieldpath.New("stringData", k),
				Problem: fmt.Sprintf("%T is not a string", texts[k]), Fix: "quote it"}
		}
		data[k] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(secret, "stringData")
	if len(data) > 0 || secret["data"] != nil {
		secret["data"] = data
	}
	return nil
}
