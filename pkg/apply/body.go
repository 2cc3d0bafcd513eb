package apply

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// maxKey limits the length of a map key in an apply. The API server parses an apply as YAML, where a key ends within
// 1024 characters, including its quotes and escapes.
const maxKey = 1000

// EncodeError is a value that a request cannot carry unchanged. Nothing was sent.
type EncodeError struct {
	Path    fieldpath.Path
	Problem string
}

// Error returns "encoding PATH: problem".
func (e *EncodeError) Error() string { return fmt.Sprintf("encoding %s: %s", e.Path, e.Problem) }

// document returns obj as it is sent: for t, with the given uid and resourceVersion (none if ""), and without
// managedFields, which only the API server may write. obj is not changed.
func document(t Target, obj map[string]any, uid types.UID, resourceVersion string) map[string]any {
	out := maps.Clone(obj)
	if out == nil {
		out = map[string]any{}
	}
	meta, _ := obj["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]any{}
	}
	out["metadata"] = meta
	delete(meta, "managedFields")
	setOrDelete(meta, "name", t.Name)
	setOrDelete(meta, "namespace", t.Namespace)
	setOrDelete(meta, "uid", string(uid))
	setOrDelete(meta, "resourceVersion", resourceVersion)
	return out
}

func setOrDelete(m map[string]any, key, value string) {
	if value == "" {
		delete(m, key)
		return
	}
	m[key] = value
}

// encoding writes what encoding/json would, in half of the time. Names are those of Go maps: none occurs twice.
var encoding = json.JoinOptions(json.Deterministic(true), json.FormatNilSliceAsNull(true),
	json.FormatNilMapAsNull(true),
	jsontext.AllowDuplicateNames(true))

// encode writes v as JSON: keys are sorted, so the same value always gives the same bytes; integers are exact. What the
// API server would read differently is escaped or, if that is not possible, an *EncodeError.
func encode(v any) ([]byte, error) {
	if e := check(v); e != nil {
		return nil, e
	}
	b, err := json.Marshal(v, encoding)
	if err != nil {
		return nil, &EncodeError{Problem: err.Error()}
	}
	return escape(b), nil
}

// check finds the first value that JSON, or YAML parsed from it, cannot carry.
func check(v any) *EncodeError {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return &EncodeError{Problem: "the text is not valid UTF-8, which JSON cannot carry; encode it with base64"}
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return &EncodeError{Problem: fmt.Sprintf("%v is not a JSON number", v)}
		}
	case map[string]any:
		first, found := "", (*EncodeError)(nil) // sorted, so that the same document gives the same error
		for k, item := range v {
			if e := checkKey(k, item); e != nil && (found == nil || k < first) {
				first, found = k, e
			}
		}
		if found != nil {
			return found.under(fieldpath.Step{Kind: fieldpath.FieldStep, Field: first})
		}
	case []any:
		for i, item := range v {
			if e := check(item); e != nil {
				return e.under(fieldpath.Step{Kind: fieldpath.IndexStep, Index: i})
			}
		}
	}
	return nil
}

func checkKey(k string, item any) *EncodeError {
	if len(k) > maxKey {
		return &EncodeError{Problem: fmt.Sprintf("the key has %d bytes; the API server reads at most %d", len(k), maxKey)}
	}
	if !utf8.ValidString(k) {
		return &EncodeError{Problem: "the key is not valid UTF-8"}
	}
	return check(item)
}

func (e *EncodeError) under(s fieldpath.Step) *EncodeError {
	e.Path = append(fieldpath.Path{s}, e.Path...)
	return e
}

// escape writes characters that JSON allows unescaped and YAML does not as \u…: the API server would refuse a whole
// apply because of one DEL, and read U+0085 (a line break in YAML) as a space. They can only be in strings, so no
// parsing is needed.
func escape(b []byte) []byte {
	if !bytes.ContainsFunc(b, unprintable) {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if unprintable(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// unprintable reports whether r is not printable in YAML, is one of its line breaks or its byte order mark. JSON
// encoders escape characters below U+0020.
func unprintable(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
