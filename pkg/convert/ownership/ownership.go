// Package ownership converts the fields that managers own, as managedFields have them, from one version of a kind to
// another one.
package ownership

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/places"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Ownership converts sets of fields that managers own.
type Ownership struct {
	converter *convert.Converter
	types     managedfields.TypeConverter
}

// New prepares what the conversion needs to convert sets of fields.
func New(c *convert.Converter) (*Ownership, error) {
	versions := []*kinds.Version{c.Hub}
	for _, name := range c.Versions() {
		versions = append(versions, c.Spokes[name].Version)
	}
	types, err := kinds.TypeConverter(c.Kind, versions)
	if err != nil {
		return nil, err
	}
	return &Ownership{c, types}, nil
}

// Has reports whether sets of fields of a version can be converted.
func (o *Ownership) Has(version string) bool { return o.converter.Has(version) }

// Convert converts the fields that a manager owns in one version to the version of obj. They are those that another
// manager cannot change without changing one of set, in its version, and those made of set that change or vanish if the
// manager gives all of it up: what the API server would find as long as it converts. Fields that are preserved, or have
// a default, are not made of set.
func (o *Ownership) Convert(ctx context.Context, obj *unstructured.Unstructured, from string, set *fieldpath.Set,
) (_ *fieldpath.Set, err error) {
	defer convert.Recovered(&err)
	to := obj.GroupVersionKind().Version
	if err := errors.Join(o.converter.Knows(from), o.converter.Knows(to)); err != nil {
		return nil, err
	}
	live, err := o.types.ObjectToTyped(obj)
	if err != nil {
		return nil, err
	}
	old, err := o.convert(ctx, obj.Object, from)
	if err != nil {
		return nil, err
	}
	if reconciled, err := typed.ReconcileFieldSetWithSchema(set, old); err != nil {
		return nil, err
	} else if reconciled != nil {
		set = reconciled // the schema of the old version has changed since
	}
	w := &ownedWalk{old: old.AsValue().Unstructured(), live: obj.Object}
	if w.oldFields, err = old.ToFieldSet(); err != nil {
		return nil, err
	}
	if w.liveFields, err = live.ToFieldSet(); err != nil {
		return nil, err
	}
	w.liveMarks = marksOf(w.live, &w.count)
	if w.oldMarks, err = shadow(ctx, o.converter, runtimeCopy(w.liveMarks), w.old, to, from); err != nil {
		return nil, err
	}
	owned := w.owned(set)
	given, err := o.givenUp(ctx, old, values(set), to)
	if err != nil {
		return owned, nil // an object without these fields cannot be converted, so the API server would find nothing either
	}
	// What vanishes with a map that is left empty, or is preserved in an annotation, is not made of these fields.
	w.oldMarks = marksOf(w.old, &w.count)
	if w.liveMarks, err = shadow(ctx, o.converter, runtimeCopy(w.oldMarks), w.live, from, to); err != nil {
		return nil, err
	}
	return owned.Union(given.Intersection(w.liveFields).Intersection(w.owned(set))), nil
}

// values are the fields of a set without the items of lists that have keys: who gives up an item gives up what is in it
// as well, and need not own it.
func values(set *fieldpath.Set) *fieldpath.Set {
	left := fieldpath.NewSet()
	set.Iterate(func(path fieldpath.Path) {
		last, isKey := path[len(path)-1], false
		if len(path) > 1 && path[len(path)-2].Key != nil && last.FieldName != nil {
			isKey = slices.ContainsFunc(*path[len(path)-2].Key, func(key value.Field) bool {
				return key.Name == *last.FieldName
			})
		}
		if !isKey && !isKeyed(path) {
			left.Insert(path.Copy())
		}
	})
	return left
}

func (o *Ownership) convert(ctx context.Context, obj any, to string) (*typed.TypedValue, error) {
	fields, ok := obj.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
	if err := o.converter.Convert(ctx, u.Object, to); err != nil {
		return nil, err
	}
	o.converter.Version(to).Coerce(u.Object)
	return o.types.ObjectToTyped(u)
}

// givenUp are the fields that change or vanish without the fields of a set.
func (o *Ownership) givenUp(
	ctx context.Context, old *typed.TypedValue, set *fieldpath.Set, to string,
) (*fieldpath.Set, error) {
	with, err := o.convert(ctx, old.AsValue().Unstructured(), to)
	if err != nil {
		return nil, err
	}
	less := old.RemoveItems(set)
	without, err := o.convert(ctx, less.AsValue().Unstructured(), to)
	if err != nil {
		return nil, err
	}
	compared, err := with.Compare(without)
	if err != nil {
		return nil, err
	}
	return compared.Removed.Union(compared.Modified), nil
}

// marks stand for what a value was made of, by number: that of each value, and of each map.
type marks []int

// selfKey has the marks of a map, beside its members. No field has that name.
const selfKey = "\x00self"

// marksOf is an object with a mark in the place of each value. Lists and maps stay, except for empty lists.
func marksOf(v any, count *int) any {
	next := func() marks { *count++; return marks{*count} }
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{selfKey: next()}
		for key, item := range v {
			out[key] = marksOf(item, count)
		}
		return out
	case []any:
		if len(v) == 0 {
			return next()
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = marksOf(v[i], count)
		}
		return out
	}
	return next()
}

// runtimeCopy copies a marked object; marks never change.
func runtimeCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, item := range v {
			out[key] = runtimeCopy(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = runtimeCopy(v[i])
		}
		return out
	}
	return v
}

// below collects the marks of a value and of all that is in it.
func below(v any) (all marks) {
	switch v := v.(type) {
	case marks:
		return v
	case map[string]any:
		for _, item := range v {
			all = append(all, below(item)...)
		}
	case []any:
		for _, item := range v {
			all = append(all, below(item)...)
		}
	}
	return all
}

// read are the marks of what an expression reads of a marked object.
func read(program *rules.Program, obj map[string]any) marks {
	paths, whole := program.Reads("self")
	if whole {
		return below(obj)
	}
	all := marks{}
	for _, path := range paths {
		var at any = obj
		for _, key := range path {
			m, ok := at.(map[string]any)
			if !ok {
				break // an item of a list, or what was computed: all of it
			}
			at = m[key]
		}
		all = append(all, below(at)...)
	}
	return all
}

// shadow converts a marked object: each value gets the marks of what it is made of. converted is the object in the
// version to.
func shadow(ctx context.Context, c *convert.Converter, marked, converted any, from, to string) (any, error) {
	obj, _ := marked.(map[string]any)
	if from == to {
		return obj, nil
	}
	err := c.Trace(ctx, obj, from, to, func(program *rules.Program, obj map[string]any) any {
		return read(program, obj)
	})
	if err != nil {
		return nil, err
	}
	dropAbsent(obj, converted)
	return obj, nil
}

// dropAbsent removes fields from a marked object that the object does not have, such as those that its version does not
// declare.
func dropAbsent(marked, obj any) {
	switch marked := marked.(type) {
	case map[string]any:
		fields, _ := obj.(map[string]any)
		for key := range marked {
			if value, ok := fields[key]; ok {
				dropAbsent(marked[key], value)
			} else if key != selfKey {
				delete(marked, key)
			}
		}
	case []any:
		items, _ := obj.([]any)
		for i := range min(len(marked), len(items)) {
			dropAbsent(marked[i], items[i])
		}
	}
}

// ownedWalk finds the fields of an object that have a mark in common with a set of fields of an older version.
type ownedWalk struct {
	old, live            any // the object in both versions
	oldFields            *fieldpath.Set
	liveFields           *fieldpath.Set
	liveMarks, oldMarks  any // marks of the same values, in both versions
	count                int
	isOwned, isItemInOld []bool
}

func (w *ownedWalk) owned(set *fieldpath.Set) *fieldpath.Set {
	w.isOwned, w.isItemInOld = make([]bool, w.count+1), make([]bool, w.count+1)
	leaves := w.oldFields.Leaves()
	w.oldFields.Iterate(func(path fieldpath.Path) {
		if isKeyed(path) {
			w.note(w.isItemInOld, self(at(w.oldMarks, position(path, w.old))))
		}
	})
	set.Iterate(func(path fieldpath.Path) {
		where := position(path, w.old)
		value := at(w.oldMarks, where)
		if !leaves.Has(path) {
			value = self(value)
		}
		w.note(w.isOwned, value)
	})
	owned := fieldpath.NewSet()
	w.liveFields.Iterate(func(path fieldpath.Path) {
		where := position(path, w.live)
		value := at(w.liveMarks, where)
		if isKeyed(path) {
			if id := self(value).(marks); len(id) > 0 && w.isItemInOld[id[0]] {
				value = id
			}
		}
		if slices.ContainsFunc(below(value), func(id int) bool { return w.isOwned[id] }) {
			owned.Insert(path.Copy())
		}
		w.parents(path, owned)
	})
	return owned
}

// parents adds the maps that a field is in and that are owned themselves, as managers of updates own maps that they
// made.
func (w *ownedWalk) parents(path fieldpath.Path, owned *fieldpath.Set) {
	for n := len(path) - 1; n > 0; n-- {
		above := path[:n]
		if isKeyed(above) {
			continue
		}
		if id := self(at(w.liveMarks, position(above, w.live))).(marks); len(id) > 0 && w.isOwned[id[0]] {
			owned.Insert(above.Copy())
		}
	}
}

func (w *ownedWalk) note(list []bool, value any) {
	for _, id := range below(value) {
		list[id] = true
	}
}

// isKeyed reports whether a path leads to an item of a list that has keys.
func isKeyed(path fieldpath.Path) bool { return path[len(path)-1].Key != nil }

// self are the marks of a map, or of a value that took the place of one.
func self(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if own, ok := v[selfKey].(marks); ok {
			return own
		}
	case marks:
		return v
	}
	return marks{}
}

// position is where a path leads in an object: fields, and indexes of items. It ends with -1 where there is no such
// item.
func position(path fieldpath.Path, obj any) []any {
	var where []any
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			where = append(where, *element.FieldName)
			m, _ := obj.(map[string]any)
			obj = m[*element.FieldName]
			continue
		case element.Index != nil:
			where = append(where, *element.Index)
		default:
			list, _ := obj.([]any)
			where = append(where, slices.IndexFunc(list, func(item any) bool { return isItem(element, item) }))
		}
		list, _ := obj.([]any)
		i, _ := where[len(where)-1].(int)
		if obj = nil; i >= 0 && i < len(list) {
			obj = list[i]
		}
	}
	return where
}

func isItem(element fieldpath.PathElement, item any) bool {
	if element.Value != nil {
		return places.Equal((*element.Value).Unstructured(), item)
	}
	fields, ok := item.(map[string]any)
	if !ok || element.Key == nil {
		return false
	}
	for _, key := range *element.Key {
		if !places.Equal(key.Value.Unstructured(), fields[key.Name]) {
			return false
		}
	}
	return true
}

// at is what a marked object has at a position. What was computed has the marks of all that it was made of.
func at(v any, where []any) any {
	for _, step := range where {
		switch in := v.(type) {
		case marks:
			return in
		case map[string]any:
			key, ok := step.(string)
			if v = in[key]; !ok {
				v = nil
			}
		case []any:
			i, ok := step.(int)
			if !ok || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// Guess is for a set of fields of a version that nothing converts: the fields of it that obj has, and if it lacks any,
// all fields beside them that none of claimed has. So no conflict with a manager is lost, and none of its fields stays
// if it gives them up.
func (o *Ownership) Guess(
	obj *unstructured.Unstructured, set *fieldpath.Set, claimed []*fieldpath.Set,
) (*fieldpath.Set, error) {
	live, err := o.types.ObjectToTyped(obj)
	if err != nil {
		return nil, err
	}
	all, err := live.ToFieldSet()
	if err != nil {
		return nil, err
	}
	kept, lacks, leaves := fieldpath.NewSet(), map[string]bool{}, set.Leaves()
	set.Iterate(func(path fieldpath.Path) {
		if has(obj.Object, path) {
			kept.Insert(path.Copy())
		} else if leaves.Has(path) && path[0].FieldName != nil {
			lacks[*path[0].FieldName] = true
		}
	})
	all.Iterate(func(path fieldpath.Path) {
		isClaimed := func(s *fieldpath.Set) bool { return s.Has(path) }
		if path[0].FieldName != nil && *path[0].FieldName != "metadata" && lacks[*path[0].FieldName] &&
			!slices.ContainsFunc(claimed, isClaimed) {
			kept.Insert(path.Copy())
		}
	})
	return kept, nil
}

// has reports whether an object has what a path leads to.
func has(obj any, path fieldpath.Path) bool {
	where := position(path, obj)
	last := where[len(where)-1]
	switch in := at(obj, where[:len(where)-1]).(type) {
	case map[string]any:
		key, _ := last.(string)
		_, ok := in[key]
		return ok
	case []any:
		i, ok := last.(int)
		return ok && i >= 0 && i < len(in)
	}
	return false
}
