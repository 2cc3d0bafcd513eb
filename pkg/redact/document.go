package redact

import "slices"

// Masked replaces a value in a document that must not be shown.
const Masked = "(masked)"

// plainMetadata are the metadata fields that never contain values. Annotations are not among them: kubectl copies whole
// objects there.
var plainMetadata = []string{"name", "namespace", "uid", "generation", "creationTimestamp",
	"deletionTimestamp", "ownerReferences",
	"finalizers"}

// HoldsValues reports whether the field at a path, in a Secret or an object rendered from one, can be or contain a
// value. The status cannot: the object's own controller writes it.
func HoldsValues(path []string) bool {
	switch {
	case len(path) == 0:
		return true
	case path[0] == "metadata":
		return len(path) == 1 || !slices.Contains(plainMetadata, path[1])
	}
	return !slices.Contains([]string{"apiVersion", "kind", "type", "immutable", "status"}, path[0])
}

// Document returns a copy of a document with the possible values of a Secret masked, and keys that may be values too.
// If w is nil, nothing is masked.
func (w Words) Document(doc map[string]any) map[string]any {
	if w == nil || doc == nil {
		return doc
	}
	return w.Value(doc, nil).(map[string]any)
}

// Value masks the value at a path as Document does.
func (w Words) Value(v any, path []string) any {
	if len(path) > 0 && path[0] != "metadata" && !HoldsValues(path) || len(path) > 1 && !HoldsValues(path) {
		return v
	}
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[w.key(key)] = w.Value(value, append(path[:len(path):len(path)], key))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = w.Value(item, append(path[:len(path):len(path)], ""))
		}
		return out
	}
	return Masked
}

func (w Words) key(key string) string {
	if w[key] || w.Path(key) == key {
		return key
	}
	return Hidden
}

// Pair masks two documents that are compared. Where they differ, the masked values differ too.
func (w Words) Pair(want, have any) (any, any) {
	if a, ok := want.(map[string]any); ok {
		if b, ok := have.(map[string]any); ok {
			return w.pairs(a, b)
		}
	}
	if a, ok := want.([]any); ok {
		if b, ok := have.([]any); ok && len(a) == len(b) {
			before, after := make([]any, len(a)), make([]any, len(b))
			for i := range a {
				before[i], after[i] = w.Pair(a[i], b[i])
			}
			return before, after
		}
	}
	a, b := w.Value(want, []string{""}), w.Value(have, []string{""})
	if a == Masked && b == Masked && want != have {
		return Masked, "(masked, differs)"
	}
	return a, b
}

func (w Words) pairs(want, have map[string]any) (map[string]any, map[string]any) {
	a, b := map[string]any{}, map[string]any{}
	for key, value := range want {
		other, both := have[key]
		masked, otherMasked := w.Pair(value, other)
		if a[w.key(key)] = masked; both {
			b[w.key(key)] = otherMasked
		}
	}
	for key, value := range have {
		if _, both := want[key]; !both {
			_, b[w.key(key)] = w.Pair(nil, value)
		}
	}
	return a, b
}
