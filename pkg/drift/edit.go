package drift

import (
	"maps"
	"slices"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Without returns obj without what stands at the given paths. A map or list that becomes empty by it goes too: to apply
// `spec: {}` in place of nothing would own all of spec, and say something else. An index counts obj's own items. obj is
// not changed; what the paths do not touch is shared with it, and obj itself is returned where they touch nothing.
func Without(obj map[string]any, paths []fieldpath.Path) map[string]any {
	for _, p := range paths {
		if _, ok := fieldpath.Get(obj, p); !ok || len(p) == 0 {
			continue
		}
		rest, ok := without(obj, p)
		if !ok {
			return map[string]any{}
		}
		obj, _ = rest.(map[string]any)
	}
	return obj
}

// without returns v without what stands at p, where something does; false if nothing is left.
func without(v any, p fieldpath.Path) (any, bool) {
	child, _ := fieldpath.Get(v, p[:1])
	keep := false
	if len(p) > 1 {
		child, keep = without(child, p[1:])
	}
	switch parent := v.(type) {
	case map[string]any:
		out := maps.Clone(parent)
		if keep {
			out[p[0].Field] = child
		} else {
			delete(out, p[0].Field)
		}
		return out, len(out) > 0
	case []any:
		i := findItem(parent, p[0])
		out := slices.Clone(parent)
		if keep {
			out[i] = child
		} else {
			out = slices.Delete(out, i, i+1)
		}
		return out, len(out) > 0
	default:
		return v, true
	}
}

// with returns obj with value at p, copying what it changes. Maps on the way are made; an item of a list that is not
// there is not, and then obj is returned as it is.
func with(obj map[string]any, p fieldpath.Path, value any) map[string]any {
	if out, ok := put(obj, p, value).(map[string]any); ok {
		return out
	}
	return obj
}

func put(v any, p fieldpath.Path, value any) any {
	if len(p) == 0 {
		return value
	}
	if p[0].Kind == fieldpath.FieldStep {
		m, ok := v.(map[string]any)
		if !ok && v != nil {
			return v
		}
		out := make(map[string]any, len(m)+1)
		maps.Copy(out, m)
		if below := put(m[p[0].Field], p[1:], value); below != nil {
			out[p[0].Field] = below
		}
		return out
	}
	list, _ := v.([]any)
	i := findItem(list, p[0])
	if i < 0 {
		return v
	}
	out := slices.Clone(list)
	out[i] = put(list[i], p[1:], value)
	return out
}
