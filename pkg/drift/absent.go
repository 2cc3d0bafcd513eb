package drift

import (
	"maps"
	"strconv"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// absent returns what owned has that obj has not, as the part of fieldsV1 that leads there: nothing of what is there whole.
// Initial fields are left out.
func (v *View) absent(obj map[string]any, owned fields) fields {
	if owned.leaf() {
		return nil
	}
	out := owned.absent(obj)
	for _, p := range v.Initial {
		out = out.without(obj, owned.resolve(obj, p))
	}
	return out
}

// absent is View.absent below one place. That the place itself is owned beside what is below it (the dot) does not count.
func (f fields) absent(live any) fields {
	if f.leaf() {
		return nil
	}
	out := fields{}
	list, isList := live.([]any)
	if isList {
		f.absentItems(list, out)
	}
	m, _ := live.(map[string]any)
	for key := range f {
		below, ok := f.below(key)
		if !ok || key == ownDot || isList && isItem(key) {
			continue
		}
		name, isField := cutField(key)
		value, there := m[name]
		if !isField || !there {
			out[key] = map[string]any(below)
			continue
		}
		out.put(key, below.absent(value))
	}
	return out
}

// noItem stands before the name of an item that is not there, and not before one of whose parts something is not there.
const noItem = "-"

// absentItems puts into out what is owned of a list's items and not there. Where several items have one name, which the API
// server takes in what it has stored before, those after the first are counted.
func (f fields) absentItems(list []any, out fields) {
	it, found := f.items(), map[string]int{}
	for i, item := range list {
		below, ok := it.of(item, i)
		if !ok {
			continue
		}
		name := string(it.buf)
		rest := below.absent(item)
		if found[name]++; found[name] > 1 {
			out.put(strconv.Itoa(found[name])+name, rest)
			continue
		}
		out.put(name, rest)
	}
	for name, below := range it.odd {
		if found[name] == 0 {
			out[noItem+name] = map[string]any(below)
		}
	}
	for key := range f {
		if below, ok := f.below(key); ok && isItem(key) && found[key] == 0 && (key[0] == 'i' || simpleText(key)) {
			out[noItem+key] = map[string]any(below)
		}
	}
}

// isItem reports whether a key of fieldsV1 names an item of a list.
func isItem(key string) bool {
	return len(key) > 1 && key[1] == ':' && (key[0] == 'k' || key[0] == 'v' || key[0] == 'i')
}

// put sets what is below a key, where there is anything.
func (f fields) put(key string, below fields) {
	if len(below) > 0 {
		f[key] = map[string]any(below)
	}
}

// without returns f without what is at p, nor a place that owns nothing more then. live is the value beside f. f is not
// changed.
func (f fields) without(live any, p fieldpath.Path) fields {
	if len(p) == 0 {
		return nil
	}
	key, value := keyOf(f, live, p[0])
	below, ok := f.below(key)
	if !ok {
		return f
	}
	out := maps.Clone(f)
	delete(out, key)
	out.put(key, below.without(value, p[1:]))
	return out
}

// keyOf returns the key that f has for a step and the live value there; of a list only items that are there are found.
func keyOf(f fields, live any, step fieldpath.Step) (string, any) {
	if step.Kind == fieldpath.FieldStep {
		m, _ := live.(map[string]any)
		return "f:" + step.Field, m[step.Field]
	}
	list, _ := live.([]any)
	i := findItem(list, step)
	if i < 0 {
		return "", nil
	}
	it := f.items()
	if _, ok := it.of(list[i], i); !ok {
		return "", nil
	}
	return string(it.buf), list[i]
}
