package fieldpath

import (
	"maps"
	"slices"
)

// Without returns obj without the given paths. A map or list that becomes empty is removed too: applying `spec: {}`
// would own all of spec. An index counts the items of obj itself. obj is not changed; the result shares memory with it,
// and is obj if the paths match nothing.
func Without(obj map[string]any, paths []Path) map[string]any {
	for _, p := range paths {
		if _, ok := Get(obj, p); !ok || len(p) == 0 {
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

// without returns v without p; false if nothing is left.
func without(v any, p Path) (any, bool) {
	child, _ := p[0].enter(v)
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
		i := p[0].Find(parent)
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

// With returns obj with value at p, and copies what it changes. It creates missing maps, and the item if p ends with
// one that has keys; if another list item is missing, it returns obj unchanged. An item may lack keys that have
// defaults.
func With(obj map[string]any, p Path, value any) map[string]any {
	if out, ok := put(obj, p, value).(map[string]any); ok {
		return out
	}
	return obj
}

func put(v any, p Path, value any) any {
	if len(p) == 0 {
		return value
	}
	if p[0].Kind == FieldStep {
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
	i := p[0].Find(list)
	if i < 0 {
		i = findWithout(list, p[0])
	}
	if i < 0 {
		if len(p) == 1 && p[0].Kind == SelectorStep {
			return append(slices.Clone(list), value)
		}
		return v
	}
	out := slices.Clone(list)
	out[i] = put(list[i], p[1:], value)
	return out
}

// findWithout returns the index of the first item that has some of the keys of a step, and no other value of the rest;
// -1 for none.
func findWithout(list []any, step Step) int {
	return slices.IndexFunc(list, func(item any) bool {
		m, _ := item.(map[string]any)
		some := false
		for key, value := range step.Selector {
			has, ok := m[key]
			if ok && scalarText(has) != value {
				return false
			}
			some = some || ok
		}
		return some
	})
}
