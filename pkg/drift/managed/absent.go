package managed

import (
	"maps"
	"strconv"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Missing returns what f has and obj has not, as the part of fieldsV1 that leads to the missing places, without the
// paths of leftOut.
func (f Fields) Missing(obj map[string]any, leftOut []fieldpath.Path) Fields {
	if f.IsLeaf() {
		return nil
	}
	out := f.absent(obj)
	for _, p := range leftOut {
		out = out.without(obj, f.Resolve(obj, p))
	}
	return out
}

// absent is Missing for one place. If the place itself is owned as well as fields below it (the dot), that does not
// count.
func (f Fields) absent(live any) Fields {
	if f.IsLeaf() {
		return nil
	}
	out := Fields{}
	list, isList := live.([]any)
	if isList {
		f.absentItems(list, out)
	}
	m, _ := live.(map[string]any)
	for key := range f {
		below, ok := f.Below(key)
		if !ok || key == ownDot || isList && isItem(key) {
			continue
		}
		name, isField := CutField(key)
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

// absentItems adds to out the owned items of a list that are missing. If several items have one name, which the API
// server accepts in stored objects, it counts those after the first.
func (f Fields) absentItems(list []any, out Fields) {
	it, found := f.Items(), map[string]int{}
	for i, item := range list {
		below, ok := it.Of(item, i)
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
		if below, ok := f.Below(key); ok && isItem(key) && found[key] == 0 && (key[0] == 'i' || simpleText(key)) {
			out[noItem+key] = map[string]any(below)
		}
	}
}

// isItem reports whether a key of fieldsV1 names a list item.
func isItem(key string) bool {
	return len(key) > 1 && key[1] == ':' && (key[0] == 'k' || key[0] == 'v' || key[0] == 'i')
}

// put sets what is below a key, unless that is nothing.
func (f Fields) put(key string, below Fields) {
	if len(below) > 0 {
		f[key] = map[string]any(below)
	}
}

// without returns f without p and without places that then own nothing. live is the value at f. f is not changed.
func (f Fields) without(live any, p fieldpath.Path) Fields {
	if len(p) == 0 {
		return nil
	}
	key, value := keyOf(f, live, p[0])
	below, ok := f.Below(key)
	if !ok {
		return f
	}
	out := maps.Clone(f)
	delete(out, key)
	out.put(key, below.without(value, p[1:]))
	return out
}

// keyOf returns the key in f for a step, and the live value there; of a list it finds only items that exist.
func keyOf(f Fields, live any, step fieldpath.Step) (string, any) {
	if step.Kind == fieldpath.FieldStep {
		m, _ := live.(map[string]any)
		return "f:" + step.Field, m[step.Field]
	}
	list, _ := live.([]any)
	i := step.Find(list)
	if i < 0 {
		return "", nil
	}
	it := f.Items()
	if _, ok := it.Of(list[i], i); !ok {
		return "", nil
	}
	return string(it.buf), list[i]
}
