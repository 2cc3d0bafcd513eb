//go:build controlplane

package drift_test

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// edit is a change of one place of an object by another client. run returns the changed object.
type edit struct {
	name string
	run  func(o *edited) (*unstructured.Unstructured, error)
}

// change changes an object in memory; it returns false if there is nothing to change.
type change func(obj map[string]any) bool

// edits returns what others can do to the place, with its desired and its live value.
func edits(at place, want, have any) []edit {
	var out []edit
	for name, c := range changes(at, want, have) {
		out = append(out, edit{name + ", by an update", updated(c, "other")}, edit{name + ", by an update under our name", updated(c, manager)},
			edit{name + ", and our entry forged back", forged(c)}, edit{name + ", and back", changeAndRevert(c, at)},
			edit{name + ", and our apply without the place by somebody else", afterOurApply(c, at)})
	}
	for _, value := range append(alternatives(at, want, have), want) {
		out = append(out, edit{"apply " + short(value), applied(at, value)}, edit{"apply the same and then " + short(value),
			applied(at, want, value)})
	}
	out = append(out, edit{"wipe managedFields", updated(func(obj map[string]any) bool {
		obj["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{}}
		return true
	}, "other")}, edit{"forge our entry to own nothing of it", disowned(at)})
	slices.SortFunc(out, func(a, b edit) int { return compareTexts(a.name, b.name) })
	return out
}

// alternatives returns other values for a place.
func alternatives(at place, want, have any) []any {
	empty, full := at.of.values()
	var out []any
	for _, value := range slices.Concat(empty, full, []any{nil, at.of.other(runtime.DeepCopyJSONValue(want))}) {
		if !reflect.DeepEqual(value, want) && !reflect.DeepEqual(value, have) {
			out = append(out, value)
		}
	}
	return out
}

// changes returns the single edits of a place, by name.
func changes(at place, want, have any) map[string]change {
	out := map[string]change{"remove": func(obj map[string]any) bool { return removeIn(obj, at.path) }}
	for _, value := range alternatives(at, want, have) {
		out["set "+short(value)] = func(obj map[string]any) bool { return setIn(obj, at.path, value) }
	}
	switch have := have.(type) {
	case map[string]any:
		out["add a key"] = onMap(at.path, func(m map[string]any) { m["added"] = at.element(m) })
		out["add a null"] = onMap(at.path, func(m map[string]any) { m["added"] = nil })
		for _, key := range sortedKeys(have)[:min(1, len(have))] {
			out["remove a key"] = onMap(at.path, func(m map[string]any) { delete(m, key) })
		}
	case []any:
		added := at.element(have)
		out["append"] = onList(at.path, func(l []any) []any { return append(l, added) })
		out["prepend"] = onList(at.path, func(l []any) []any { return append([]any{added}, l...) })
		if len(have) > 0 {
			out["remove the first"] = onList(at.path, func(l []any) []any { return l[1:] })
			out["replace the last"] = onList(at.path, func(l []any) []any { return append(l[:len(l)-1], added) })
			out["repeat the first"] = onList(at.path, func(l []any) []any { return append(l, l[0]) })
		}
		if len(have) > 1 {
			out["reverse"] = onList(at.path, func(l []any) []any { slices.Reverse(l); return l })
		}
	}
	return out
}

// element returns one more value for the map or list at a place.
func (p place) element(in any) any {
	node := p.of.node["items"]
	if _, ok := in.(map[string]any); ok {
		node = p.of.node["additionalProperties"]
	}
	of, _ := p.of.to(node)
	if list, ok := in.([]any); ok && len(list) > 0 {
		return of.other(runtime.DeepCopyJSONValue(list[len(list)-1]))
	}
	return of.minimal(nil)
}

// updated returns an edit that makes the change by a PUT with the managedFields that were read.
func updated(c change, manager string) func(*edited) (*unstructured.Unstructured, error) {
	return func(o *edited) (*unstructured.Unstructured, error) { return o.update(o.live, c, manager) }
}

// forged returns an edit that makes the change and then restores our entry in another request.
func forged(c change) func(*edited) (*unstructured.Unstructured, error) {
	return func(o *edited) (*unstructured.Unstructured, error) {
		u, err := o.update(o.live, c, "other")
		if err != nil {
			return nil, err
		}
		return o.update(u, func(obj map[string]any) bool {
			obj["metadata"].(map[string]any)["managedFields"] = o.live.DeepCopy().Object["metadata"].(map[string]any)["managedFields"]
			return true
		}, "other")
	}
}

// changeAndRevert returns an edit that makes the change and then restores the value of the place.
func changeAndRevert(c change, at place) func(*edited) (*unstructured.Unstructured, error) {
	return func(o *edited) (*unstructured.Unstructured, error) {
		u, err := o.update(o.live, c, "other")
		if err != nil {
			return nil, err
		}
		return o.update(u, func(obj map[string]any) bool {
			if value, ok := valueIn(o.live.Object, at.path); ok {
				return setIn(obj, at.path, value)
			}
			removeIn(obj, at.path)
			return true
		}, "other")
	}
}

// afterOurApply returns an edit that applies everything but the place as a second writer with our name, and then makes
// the change.
func afterOurApply(c change, at place) func(*edited) (*unstructured.Unstructured, error) {
	return func(o *edited) (*unstructured.Unstructured, error) {
		less := runtime.DeepCopyJSON(o.desired)
		removeIn(less, at.path)
		u, err := o.apply(manager, less)
		if err != nil {
			return nil, err
		}
		return o.update(u, c, "other")
	}
}

// applied returns an edit in which another manager applies the place with each of the values.
func applied(at place, values ...any) func(*edited) (*unstructured.Unstructured, error) {
	return func(o *edited) (u *unstructured.Unstructured, err error) {
		for _, value := range values {
			doc := runtime.DeepCopyJSON(o.seed)
			delete(doc, "metadata")
			setIn(doc, []any{"metadata", "name"}, o.live.GetName())
			if !setIn(doc, at.path, value) {
				return nil, errNothingToDo
			}
			if u, err = o.apply("other", doc); err != nil {
				return nil, err
			}
		}
		return u, nil
	}
}

// disowned returns an edit that removes the place from our entry, and then changes it in another request.
func disowned(at place) func(*edited) (*unstructured.Unstructured, error) {
	return func(o *edited) (*unstructured.Unstructured, error) {
		u, err := o.update(o.live, func(obj map[string]any) bool {
			for _, e := range obj["metadata"].(map[string]any)["managedFields"].([]any) {
				if e := e.(map[string]any); e["manager"] == manager {
					return disown(e["fieldsV1"].(map[string]any), at.path)
				}
			}
			return false
		}, "other")
		if err != nil {
			return nil, err
		}
		return u, nil
	}
}

// disown removes a place from fieldsV1. It supports only lists with one item.
func disown(owned map[string]any, path []any) bool {
	var key string
	switch step := path[0].(type) {
	case string:
		key = "f:" + step
	default:
		for k := range owned {
			if k != "." {
				key = k
			}
		}
	}
	below, ok := owned[key].(map[string]any)
	if !ok {
		return false
	}
	if len(path) == 1 {
		delete(owned, key)
		return true
	}
	return disown(below, path[1:])
}

func onMap(path []any, f func(map[string]any)) change {
	return func(obj map[string]any) bool {
		v, _ := valueIn(obj, path)
		m, ok := v.(map[string]any)
		if ok {
			f(m)
		}
		return ok
	}
}

func onList(path []any, f func([]any) []any) change {
	return func(obj map[string]any) bool {
		v, _ := valueIn(obj, path)
		list, ok := v.([]any)
		return ok && setIn(obj, path, f(list))
	}
}

func valueIn(at any, path []any) (any, bool) {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := at.(map[string]any)
			next, ok := m[step]
			if !ok {
				return nil, false
			}
			at = next
		case int:
			list, _ := at.([]any)
			if step >= len(list) {
				return nil, false
			}
			at = list[step]
		}
	}
	return at, true
}

// setIn sets the value of a place. It creates missing maps, but not items.
func setIn(at any, path []any, value any) bool {
	switch step := path[0].(type) {
	case string:
		m, ok := at.(map[string]any)
		if !ok {
			return false
		}
		if len(path) == 1 {
			m[step] = runtime.DeepCopyJSONValue(value)
			return true
		}
		if _, isField := path[1].(string); isField && m[step] == nil {
			m[step] = map[string]any{}
		}
		return setIn(m[step], path[1:], value)
	case int:
		list, _ := at.([]any)
		if step >= len(list) {
			return false
		}
		if len(path) == 1 {
			list[step] = runtime.DeepCopyJSONValue(value)
			return true
		}
		return setIn(list[step], path[1:], value)
	}
	return false
}

func removeIn(obj map[string]any, path []any) bool {
	parent, ok := valueIn(obj, path[:len(path)-1])
	if !ok {
		return false
	}
	if name, isField := path[len(path)-1].(string); isField {
		m, _ := parent.(map[string]any)
		_, ok := m[name]
		delete(m, name)
		return ok
	}
	list, _ := parent.([]any)
	i := path[len(path)-1].(int)
	return i < len(list) && len(path) > 1 && setIn(obj, path[:len(path)-1], append(slices.Clone(list[:i]), list[i+1:]...))
}
