package fieldpath

import (
	"fmt"
	"slices"
	"strconv"
)

// AccessError says at which part of a path Set stopped.
type AccessError struct {
	Path    Path   // the whole path
	At      Path   // the part that exists
	Problem string // what is there instead
}

// Error returns "setting PATH: AT problem".
func (e *AccessError) Error() string {
	return fmt.Sprintf("setting %s: %s %s", e.Path, e.At, e.Problem)
}

// Get returns the value at p in obj, which has JSON types (map[string]any, []any and scalars). A null value is returned
// as (nil, true). The value is not copied.
func Get(obj any, p Path) (any, bool) {
	for _, s := range p {
		next, ok := s.enter(obj)
		if !ok {
			return nil, false
		}
		obj = next
	}
	return obj, true
}

func (s Step) enter(obj any) (any, bool) {
	if s.Kind == FieldStep {
		m, ok := obj.(map[string]any)
		if !ok {
			return nil, false
		}
		v, ok := m[s.Field]
		return v, ok
	}
	list, ok := obj.([]any)
	if !ok {
		return nil, false
	}
	if i := s.Find(list); i >= 0 {
		return list[i], true
	}
	return nil, false
}

// Find returns the item's index in list, or -1 if no item matches.
func (s Step) Find(list []any) int {
	if s.Kind == IndexStep {
		if s.Index < 0 || s.Index >= len(list) {
			return -1
		}
		return s.Index
	}
	for i, item := range list {
		if m, ok := item.(map[string]any); ok && s.selects(m) {
			return i
		}
	}
	return -1
}

func (s Step) selects(item map[string]any) bool {
	for k, want := range s.Selector {
		have, ok := item[k]
		if !ok || scalarText(have) != want {
			return false
		}
	}
	return len(s.Selector) > 0
}

// scalarText returns a list key as JSON text without quotes: keys of map lists may be numbers (containerPort) and
// booleans. Maps and lists are not valid keys; their text should equal no selector.
func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// Set sets the value at p in obj, in place. It creates maps that are missing or null on the way. It returns an
// *AccessError if a step meets a value of another type or a list item that does not exist: items are never added,
// because their position is unknown.
func Set(obj map[string]any, p Path, v any) error {
	if len(p) == 0 {
		return &AccessError{Path: p, At: p, Problem: "is the whole object, which cannot be set"}
	}
	var cur any = obj
	for i, s := range p[:len(p)-1] {
		next, ok := s.enter(cur)
		if (!ok || next == nil) && s.Kind == FieldStep {
			if m, isMap := cur.(map[string]any); isMap && m != nil && onlyFields(p[i+1:]) {
				next, ok = map[string]any{}, true
				m[s.Field] = next
			}
		}
		if !ok {
			return refuse(p, i, cur)
		}
		cur = next
	}
	return p[len(p)-1].put(p, cur, v)
}

func onlyFields(p Path) bool {
	return !slices.ContainsFunc(p, func(s Step) bool { return s.Kind != FieldStep })
}

func (s Step) put(p Path, parent, v any) error {
	switch parent := parent.(type) {
	case map[string]any:
		if s.Kind == FieldStep && parent != nil {
			parent[s.Field] = v
			return nil
		}
	case []any:
		if s.Kind == FieldStep {
			break
		}
		if i := s.Find(parent); i >= 0 {
			parent[i] = v
			return nil
		}
	}
	return refuse(p, len(p)-1, parent)
}

// refuse returns the error for step i of p, which cannot enter cur.
func refuse(p Path, i int, cur any) error {
	e := &AccessError{Path: p, At: p[:i]}
	list, isList := cur.([]any)
	m, isMap := cur.(map[string]any)
	switch {
	case isMap && m == nil:
		e.Problem = "is a nil map, which cannot be written to"
	case isMap && p[i].Kind == FieldStep:
		e.Problem = fmt.Sprintf("has no %s, and a list on the way is never created", p[i])
	case isList && p[i].Kind != FieldStep:
		e.Problem = fmt.Sprintf("has no item %s (it has %d items)", p[i], len(list))
	default:
		want := "a map"
		if p[i].Kind != FieldStep {
			want = "a list"
		}
		e.Problem = fmt.Sprintf("is %s, not %s", typeName(cur), want)
	}
	return e
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}

// Remove removes the value at p from obj, in place, and reports whether there was one. To remove a list item it sets a
// new list in the parent; the old list is unchanged. Parents that become empty stay, because an empty map can have a
// meaning.
func Remove(obj map[string]any, p Path) bool {
	if len(p) == 0 {
		return false
	}
	_, ok := remove(obj, p)
	return ok
}

// remove returns v without p: the same map, or a shorter list.
func remove(v any, p Path) (any, bool) {
	child, ok := p[0].enter(v)
	if !ok {
		return v, false
	}
	last := len(p) == 1
	if !last {
		if child, ok = remove(child, p[1:]); !ok {
			return v, false
		}
	}
	switch parent := v.(type) {
	case map[string]any:
		if last {
			delete(parent, p[0].Field)
		} else {
			parent[p[0].Field] = child
		}
	case []any:
		i := p[0].Find(parent)
		if last {
			return append(append(make([]any, 0, len(parent)-1), parent[:i]...), parent[i+1:]...), true
		}
		if i >= 0 {
			parent[i] = child
		}
	}
	return v, true
}
