package canonical_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/canonical"
)

func TestForm(t *testing.T) {
	for name, test := range map[string]struct {
		reason   string
		in, want map[string]any
	}{
		"nulls in maps": {
			reason: "a null is not part of the desired object, at any depth, in maps within lists too",
			in:     map[string]any{"a": nil, "b": map[string]any{"c": nil}, "l": []any{map[string]any{"d": nil, "e": "f"}}},
			want:   map[string]any{"b": map[string]any{}, "l": []any{map[string]any{"e": "f"}}},
		},
		"nulls in lists": {
			reason: "leaving an item out would move those after it",
			in:     map[string]any{"l": []any{"a", nil, "b"}},
			want:   map[string]any{"l": []any{"a", nil, "b"}},
		},
		"nil maps and lists": {
			reason: "JSON writes them as null",
			in:     map[string]any{"m": map[string]any(nil), "l": []any(nil)},
			want:   map[string]any{},
		},
		"empties stay": {
			reason: "an empty map, list or string means something",
			in:     map[string]any{"m": map[string]any{}, "l": []any{}, "s": "", "z": int64(0), "f": false},
			want:   map[string]any{"m": map[string]any{}, "l": []any{}, "s": "", "z": int64(0), "f": false},
		},
		"integral floats": {
			reason: "1.0 and 1 are one number in JSON; JSON keeps no negative zero through an integer",
			in: map[string]any{"one": 1.0, "negativeZero": math.Copysign(0, -1), "half": 0.5, "limit": -9223372036854775808.0,
				"beyond": 9223372036854775808.0, "huge": 1e300},
			want: map[string]any{"one": int64(1), "negativeZero": int64(0), "half": 0.5, "limit": int64(math.MinInt64),
				"beyond": 9223372036854775808.0, "huge": 1e300},
		},
		"integers of all types": {
			reason: "template functions return any of them",
			in: map[string]any{"a": 1, "b": int8(2), "c": int16(3), "d": int32(4), "e": uint8(5), "f": uint16(6), "g": uint32(7), "h": uint(8),
				"i": uint64(9), "j": float32(10)},
			want: map[string]any{"a": int64(1), "b": int64(2), "c": int64(3), "d": int64(4), "e": int64(5), "f": int64(6), "g": int64(7),
				"h": int64(8), "i": int64(9), "j": int64(10)},
		},
		"numbers as text": {
			reason: "2^53+1 stays itself, as does an exact power of two beyond int64",
			in: map[string]any{"a": json.Number("9007199254740993"), "b": json.Number("1.50"), "c": json.Number("1e3"), "d": json.Number("-0"),
				"e": json.Number("18446744073709551616")},
			want: map[string]any{"a": int64(9007199254740993), "b": 1.5, "c": int64(1000), "d": int64(0), "e": 18446744073709551616.0},
		},
		"secret": {
			reason: "stringData goes into data and wins, as the API server has it; any text is stringData",
			in: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "b2xk", "keep": "a2VlcA=="},
				"stringData": map[string]any{"a": "new", "bytes": "\x00ä\n", "empty": "", "none": nil}},
			want: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "bmV3", "keep": "a2VlcA==", "bytes": "AMOkCg==",
				"empty": ""}},
		},
		"secret without text": {
			reason: "an empty stringData makes no data",
			in:     map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{}},
			want:   map[string]any{"apiVersion": "v1", "kind": "Secret"},
		},
		"secret with empty data": {
			reason: "an empty data that was asked for stays",
			in:     map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{}, "stringData": map[string]any{}},
			want:   map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{}},
		},
		"no secret": {
			reason: "another group's Secret may have a stringData of its own",
			in:     map[string]any{"apiVersion": "vault.example.com/v1", "kind": "Secret", "stringData": map[string]any{"a": "b"}},
			want:   map[string]any{"apiVersion": "vault.example.com/v1", "kind": "Secret", "stringData": map[string]any{"a": "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := deepCopy(test.in)
			got := form(t, test.in)
			must.Same(t, test.want, got, test.reason)
			if f, ok := got["negativeZero"].(float64); ok && math.Signbit(f) {
				t.Errorf("%s: -0.0 is left", test.reason)
			}
			must.Same[any](t, before, test.in, "the input was changed")
			must.Same(t, got, form(t, got), "canonical of canonical")
		})
	}
}

// deepCopy copies maps and lists and keeps every other value as it is.
func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := map[string]any{}
		for k := range v {
			out[k] = deepCopy(v[k])
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = deepCopy(v[i])
		}
		return out
	default:
		return v
	}
}

func form(t *testing.T, obj map[string]any) map[string]any {
	t.Helper()
	out := must.Get(canonical.Form(obj)).In(t)
	return out
}

func TestFormErrors(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		in     map[string]any
		want   string
	}{
		"not a number": {
			reason: "JSON has no NaN",
			in:     map[string]any{"spec": map[string]any{"a.b/c": []any{1.0, math.NaN()}}},
			want:   ".spec['a.b/c'][1]: NaN is not a JSON number: give a finite number",
		},
		"infinite": {
			reason: "JSON has no infinity",
			in:     map[string]any{"x": math.Inf(-1)},
			want:   ".x: -Inf is not a JSON number: give a finite number",
		},
		"integer too large": {
			reason: "the API server would round it to a float",
			in:     map[string]any{"x": json.Number("18446744073709551615")},
			want:   ".x: the integer 18446744073709551615 has more than 64 bits and would be rounded: quote it to make it a string",
		},
		"unsigned too large": {
			reason: "as above, from a template function",
			in:     map[string]any{"x": uint64(math.MaxUint64)},
			want:   ".x: the integer 18446744073709551615 has more than 64 bits and would be rounded: quote it to make it a string",
		},
		"number out of range": {
			reason: "no float64 has it",
			in:     map[string]any{"x": json.Number("1e400")},
			want:   `.x: "1e400" is not a number that can be stored: give a number, or quote it to make it a string`,
		},
		"no JSON": {
			reason: "a Go value that no decoder gives",
			in:     map[string]any{"x": []string{"a"}},
			want:   ".x: a []string is not a JSON value: give a map, list, string, number or boolean",
		},
		"stringData of numbers": {
			reason: "the API server refuses it; the value is not shown",
			in:     map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"port": 8080}},
			want:   ".stringData.port: int64 is not a string: quote it",
		},
		"several": {
			reason: "the first one, whichever a map gives first",
			in:     map[string]any{"c": math.NaN(), "a": map[string]any{"d": math.NaN(), "b": math.NaN()}, "e": math.NaN(), "f": math.NaN()},
			want:   ".a.b: NaN is not a JSON number: give a finite number",
		},
		"several in stringData": {
			reason: "the first one",
			in:     map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"b": 1, "d": 1, "a": 1, "c": 1}},
			want:   ".stringData.a: int64 is not a string: quote it",
		},
		"stringData is no map": {
			reason: "the API server refuses it",
			in:     map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": "x"},
			want:   ".stringData: it is not a map: give a map of strings",
		},
		"data is no map": {
			reason: "the API server refuses it",
			in:     map[string]any{"apiVersion": "v1", "kind": "Secret", "data": "x", "stringData": map[string]any{"a": "b"}},
			want:   ".data: it is not a map: give a map of base64 strings",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := canonical.Form(test.in)
			var bad *canonical.ValueError
			if !errors.As(err, &bad) {
				t.Fatalf("%s: got %v, want a ValueError", test.reason, err)
			}
			if err.Error() != test.want {
				t.Errorf("%s:\ngot  %s\nwant %s", test.reason, err, test.want)
			}
		})
	}
}
