// Package places compares objects of two versions, and names the places where they differ: fields of maps, and items of
// lists by their keys.
package places

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Place is a path in an object: strings are fields, maps[string]any the keys of a list's item.
type Place []any

// Key is the place as text.
func (p Place) Key() string {
	text, _ := json.Marshal(p) // strings and maps of them
	return string(text)
}

// IsValid reports whether every step is a field or keys: places come from annotations that anybody may have written. No
// step leads out of what a conversion may change, nor into the status: to write that takes another right.
func (p Place) IsValid() bool {
	if len(p) == 0 || slices.Contains([]any{"apiVersion", "kind", "status"}, p[0]) {
		return false
	}
	if p[0] == "metadata" && (len(p) < 2 || p[1] != "labels" && p[1] != "annotations") {
		return false
	}
	for _, step := range p {
		switch step.(type) {
		case string, map[string]any:
		default:
			return false
		}
	}
	return true
}

// parent returns the map or list that the last step is in; nil where it is missing.
func (p Place) parent(obj any, items Items) any {
	for _, step := range p[:len(p)-1] {
		switch at := obj.(type) {
		case map[string]any:
			obj = member(at, step)
		case []any:
			obj = nil
			if i := items.find(at, step); i >= 0 {
				obj = at[i]
			}
		default:
			return nil
		}
	}
	return obj
}

func member(obj, step any) any {
	at, _ := obj.(map[string]any)
	key, _ := step.(string)
	return at[key]
}

// Items finds the items of lists by their keys, each list once for all places that lead into it: an annotation may name
// thousands of items of a list of thousands. It is right as long as the keys of items stay as they are.
type Items map[*any]*listIndex

type listIndex struct {
	names  []string // of the keys
	byKeys map[string]int
}

// find is the position of a list's item by its keys; -1 for none. A list has one set of keys: places that name others
// lead nowhere.
func (x Items) find(list []any, step any) int {
	keys, ok := step.(map[string]any)
	if !ok || len(list) == 0 {
		return -1
	}
	names := slices.Sorted(maps.Keys(keys))
	index := x[&list[0]]
	if index == nil {
		index = &listIndex{names: names, byKeys: map[string]int{}}
		for i, item := range list {
			if fields, ok := item.(map[string]any); ok {
				if text := index.text(fields); index.byKeys[text] == 0 {
					index.byKeys[text] = i + 1
				}
			}
		}
		x[&list[0]] = index
	}
	if !slices.Equal(names, index.names) {
		return -1
	}
	return index.byKeys[index.text(keys)] - 1
}

// text is equal for keys that are equal: JSON writes 1.0 as 1.
func (x *listIndex) text(fields map[string]any) string {
	values := make([]any, len(x.names))
	for i, name := range x.names {
		values[i] = fields[name]
	}
	text, _ := json.Marshal(values) // values of JSON: cannot fail
	return string(text)
}

// IsIn reports whether a place is at or below a path of fields; the items of lists do not count.
func (p Place) IsIn(path fieldpath.Path) bool {
	fields := slices.DeleteFunc(slices.Clone(p), func(step any) bool { _, isField := step.(string); return !isField })
	for i, step := range path {
		if i >= len(fields) || fields[i] != step.Field {
			return false
		}
	}
	return true
}

// Get is the value there; not ok if there is none.
func (p Place) Get(obj any, items Items) (value any, ok bool) {
	last := p[len(p)-1]
	switch at := p.parent(obj, items).(type) {
	case map[string]any:
		if key, isField := last.(string); isField {
			value, ok = at[key]
		}
	case []any:
		if i := items.find(at, last); i >= 0 {
			return at[i], true
		}
	}
	return value, ok
}

// Set sets a field of a map that is there; what it was in is gone otherwise.
func (p Place) Set(obj, value any, items Items) {
	if at, ok := p.parent(obj, items).(map[string]any); ok && at != nil {
		if key, ok := p[len(p)-1].(string); ok {
			at[key] = value
		}
	}
}

// Remove takes the field out; items of lists stay.
func (p Place) Remove(obj any, items Items) {
	if at, ok := p.parent(obj, items).(map[string]any); ok {
		if key, ok := p[len(p)-1].(string); ok {
			delete(at, key)
		}
	}
}

func (p Place) child(step any) Place { return append(slices.Clip(slices.Clone(p)), step) }

// Equal compares values as JSON does, in which 1 and 1.0 are one number.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case int64:
		if f, ok := b.(float64); ok {
			return int64(f) == a && float64(int64(f)) == f
		}
	case float64:
		if _, ok := b.(int64); ok {
			return Equal(b, a)
		}
	case map[string]any:
		m, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, m, Equal)
	case []any:
		l, ok := b.([]any)
		return ok && slices.EqualFunc(a, l, Equal)
	}
	return reflect.DeepEqual(a, b)
}

// Differences lists the fields in which two objects differ, as far down as the schema says what is one thing.
func Differences(before, back map[string]any, s *structuralschema.Structural) []Difference {
	d := differ{}
	for _, key := range slices.Sorted(maps.Keys(union(before, back))) {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			for _, name := range []string{"annotations", "labels"} {
				d.compare(Place{key, name}, member(before[key], name), member(back[key], name), nil)
			}
		default:
			property := s.Properties[key]
			d.field(Place{key}, before, back, key, &property)
		}
	}
	return d.found
}

type differ struct{ found []Difference }

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

// field compares a field that may be absent from either.
func (d *differ) field(at Place, before, back map[string]any, key string, s *structuralschema.Structural) {
	is, hasIs := before[key]
	was, hasWas := back[key]
	if hasIs && hasWas {
		d.compare(at, is, was, s)
		return
	}
	d.found = append(d.found, Difference{Path: at, Is: is, Was: was, IsAbsent: !hasIs, WasAbsent: !hasWas})
}

func (d *differ) compare(at Place, is, was any, s *structuralschema.Structural) {
	if Equal(is, was) {
		return
	}
	switch is := is.(type) {
	case map[string]any:
		if back, ok := was.(map[string]any); ok {
			for _, key := range slices.Sorted(maps.Keys(union(is, back))) {
				d.field(at.child(key), is, back, key, kinds.Member(s, key))
			}
			return
		}
	case []any:
		if back, ok := was.([]any); ok && d.items(at, is, back, s) {
			return
		}
	}
	d.found = append(d.found, Difference{Path: at, Is: is, Was: was})
}

// items compares the items of a list that have keys, if both lists have the same ones in the same order.
func (d *differ) items(at Place, is, back []any, s *structuralschema.Structural) bool {
	if s == nil || s.XListType == nil || *s.XListType != "map" || len(is) != len(back) {
		return false
	}
	keys := make([]map[string]any, len(is))
	for i := range is {
		a, isMap := is[i].(map[string]any)
		b, isMapToo := back[i].(map[string]any)
		keys[i] = map[string]any{}
		for _, key := range s.XListMapKeys {
			if !isMap || !isMapToo || !Equal(a[key], b[key]) {
				return false
			}
			keys[i][key] = a[key]
		}
	}
	for i := range is {
		d.compare(at.child(keys[i]), is[i], back[i], s.Items)
	}
	return true
}

// Field is the place without the keys of items: .spec.workers.image.
func (p Place) Field() string {
	return slices.DeleteFunc(slices.Clone(p), func(step any) bool {
		_, isField := step.(string)
		return !isField
	}).String()
}

// String is the place as people write it: .spec.workers[name=a].image.
func (p Place) String() string {
	path := make(fieldpath.Path, 0, len(p))
	for _, step := range p {
		switch step := step.(type) {
		case string:
			path = append(path, fieldpath.Step{Kind: fieldpath.FieldStep, Field: step})
		case map[string]any:
			keys := map[string]string{}
			for key, value := range step {
				keys[key] = fmt.Sprint(value)
			}
			path = append(path, fieldpath.Step{Kind: fieldpath.SelectorStep, Selector: keys})
		}
	}
	return path.String()
}

// Difference is a field as it was before the conversion, and as it would be after the way back.
type Difference struct {
	Path Place `json:"path"`
	Is   any   `json:"is,omitempty"` // absent where the field was
	Was  any   `json:"back,omitempty"`
	// IsAbsent and WasAbsent tell an absent field from null.
	IsAbsent  bool `json:"absent,omitempty"`
	WasAbsent bool `json:"backAbsent,omitempty"`
}
