package functions

import (
	"reflect"
	"slices"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// itemsOf returns the items of a list of any type.
func itemsOf(b *values.Budget, list any, name string) ([]any, error) {
	if l, ok := list.([]any); ok {
		return l, nil
	}
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, values.Problemf("", "%s takes a list, not %s", name, values.TypeName(list))
	}
	if err := b.Items(v.Len()+1, 24); err != nil {
		return nil, err
	}
	out := make([]any, v.Len())
	for i := range out {
		out[i] = v.Index(i).Interface()
	}
	return out, nil
}

func concat(b *values.Budget, lists ...any) ([]any, error) {
	all, n := make([][]any, len(lists)), 1
	for i, list := range lists {
		items, err := itemsOf(b, list, "concat")
		if err != nil {
			return nil, err
		}
		all[i], n = items, n+len(items)
	}
	if err := b.Items(n, 24); err != nil {
		return nil, err
	}
	return append([]any{}, slices.Concat(all...)...), nil
}

func appendItem(b *values.Budget, list, item any) ([]any, error) {
	return inserted(b, list, item, "append", false)
}

func prepend(b *values.Budget, list, item any) ([]any, error) {
	return inserted(b, list, item, "prepend", true)
}

// inserted returns a copy of a list with one more item.
func inserted(b *values.Budget, list, item any, name string, isFirst bool) ([]any, error) {
	items, err := itemsOf(b, list, name)
	if err != nil {
		return nil, err
	}
	if err := b.Items(len(items)+1, 24); err != nil {
		return nil, err
	}
	if isFirst {
		return slices.Concat([]any{item}, items), nil
	}
	return slices.Concat(items, []any{item}), nil
}

func has(b *values.Budget, needle, list any) (bool, error) {
	items, err := itemsOf(b, list, "has")
	if err != nil {
		return false, err
	}
	for _, item := range items {
		if isEqual, err := deepEqual(b, needle, item); err != nil || isEqual {
			return isEqual, err
		}
	}
	return false, nil
}

// uniq keeps the first of equal items.
func uniq(b *values.Budget, list any) ([]any, error) {
	return filtered(b, list, "uniq", map[any]bool{}, true)
}

// without removes the items that are equal to one of omitted.
func without(b *values.Budget, list any, omitted ...any) ([]any, error) {
	seen := make(map[any]bool, len(omitted))
	for _, item := range omitted {
		key, err := identity(b, item)
		if err != nil {
			return nil, err
		}
		seen[key] = true
	}
	return filtered(b, list, "without", seen, false)
}

// filtered keeps the items that are not in seen; if adding is true, it adds each kept item to seen.
func filtered(b *values.Budget, list any, name string, seen map[any]bool, adding bool) ([]any, error) {
	items, err := itemsOf(b, list, name)
	if err != nil {
		return nil, err
	}
	if err := b.Items(len(items), 200); err != nil {
		return nil, err
	}
	out := []any{}
	for _, item := range items {
		if err := b.Work(1); err != nil {
			return nil, err
		}
		key, err := identity(b, item)
		if err != nil {
			return nil, err
		}
		if !seen[key] {
			out = append(out, item)
		}
		if adding {
			seen[key] = true
		}
	}
	return out, nil
}

// structureKey identifies a map or list: its JSON.
type structureKey string

// identity returns a Go map key that is the same for equal values only.
func identity(b *values.Budget, v any) (any, error) {
	if s, ok := v.(string); ok {
		return s, b.Work(len(s) >> 12)
	}
	if values.IsStructure(v) {
		text, err := values.JSON(b, v, values.JSONRaw)
		return structureKey(text), err
	}
	return values.Copy(b, v)
}

// slice is sprig's, but the slice of an empty list is an empty list, not null. The library would print a list that is
// an index into its error.
func slice(list any, indices ...any) (any, error) {
	for _, i := range indices {
		if values.IsStructure(i) {
			return nil, values.Problemf("", "%s is not a number", values.TypeName(i))
		}
	}
	r := reflect.ValueOf(list)
	if (r.Kind() == reflect.Slice || r.Kind() == reflect.Array) && r.Len() == 0 {
		return []any{}, nil
	}
	return sprigFunctions["mustSlice"].(func(any, ...any) (any, error))(list, indices...)
}
