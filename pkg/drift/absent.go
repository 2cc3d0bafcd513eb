package drift

import (
	"maps"
	"strconv"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// absent returns what owned has and obj has not, as the part of fieldsV1 that leads to the missing places. It leaves out
// fields that are not part of P.
func (v *View) absent(obj map[string]any, owned fields) fields {
	if owned.isLeaf() {
		return nil
	}
	out := owned.absent(obj)
	for _, p := range v.leftOut() {
		out = out.without(obj, owned.resolve(obj, p))
	}
	return out
}

// absent is View.absent for one place. If the place itself is owned as well as fields below it (the dot), that does not count.
func (f fields) absent(live any) fields {
	if f.isLeaf() {
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

// noItem precedes the name of an item that is missing, but not of an item in which something is missing.
const noItem = "-"

// absentItems adds to out the owned items of a list that are missing. If several items have one name, which the API server
// accepts in stored objects, it counts those after the first.
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
	for name, below := range it.escaped {
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

// isItem reports whether a key of fieldsV1 names a list item.
func isItem(key string) bool {
	return len(key) > 1 && key[1] == ':' && (key[0] == 'k' || key[0] == 'v' || key[0] == 'i')
}

// put sets what is below a key, unless that is nothing.
func (f fields) put(key string, below fields) {
	if len(below) > 0 {
		f[key] = map[string]any(below)
	}
}

// without returns f without p and without places that then own nothing. live is the value at f. f is not changed.
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

// keyOf returns the key in f for a step, and the live value there; of a list it finds only items that exist.
func keyOf(f fields, live any, step fieldpath.Step) (string, any) {
	if step.Kind == fieldpath.FieldStep {
		m, _ := live.(map[string]any)
		return "f:" + step.Field, m[step.Field]
	}
	list, _ := live.([]any)
	i := step.Find(list)
	if i < 0 {
		return "", nil
	}
	it := f.items()
	if _, ok := it.of(list[i], i); !ok {
		return "", nil
	}
	return string(it.buf), list[i]
}
