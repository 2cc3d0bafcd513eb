// Package docdiff compares two documents field by field, for people: the items of lists by their names, values of
// Secrets masked.
package docdiff

import (
	"fmt"
	"maps"
	"slices"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// Field is one field in which two documents differ. A value that one of them does not have is nil there.
type Field struct {
	Path          fieldpath.Path
	Before, After any
	// Writer is the field manager that wrote Before last, where that is known.
	Writer string
	// words are all that is shown of the path where the document can hold values of a Secret.
	words redact.Words
}

// Shown is the path as far as it may be shown.
func (d Field) Shown() string { return d.words.Path(d.Path.String()) }

// Op is add, remove or replace.
func (d Field) Op() string {
	switch {
	case d.Before == nil:
		return "add"
	case d.After == nil:
		return "remove"
	}
	return "replace"
}

// Documents returns the fields in which two documents differ, in the order of their paths: a map or list that one of
// them does not have is one difference. What no author writes is left out: status and the serverKept of the API server.
// Where words are given, as for a Secret, the values are masked; that they differ is reported. Either may be nil.
func Documents(before, after map[string]any, words redact.Words) []Field {
	d := &documentDiff{}
	a, b := authored(before), authored(after)
	d.maps(nil, a, b)
	maskDiffs(d.found, words)
	return d.found
}

// serverKept is the metadata that the API server keeps.
var serverKept = []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp",
	"generateName", "generation",
	"managedFields", "resourceVersion",
	"selfLink", "uid"}

// authored is a document less what no author writes.
func authored(doc map[string]any) map[string]any {
	out := maps.Clone(doc)
	delete(out, "status")
	if meta, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		for _, key := range serverKept {
			delete(meta, key)
		}
		out["metadata"] = meta
	}
	return out
}

type documentDiff struct{ found []Field }

func (d *documentDiff) values(at fieldpath.Path, before, after any) {
	if canonical.Digest(before) == canonical.Digest(after) {
		return
	}
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			d.maps(at, b, a)
			return
		}
	case []any:
		if a, ok := after.([]any); ok {
			d.lists(at, b, a)
			return
		}
	}
	d.found = append(d.found, Field{Path: slices.Clone(at), Before: before, After: after})
}

func (d *documentDiff) maps(at fieldpath.Path, before, after map[string]any) {
	keys := maps.Clone(before)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		d.values(at.Child(key), before[key], after[key])
	}
}

// lists compares item by item where the items have a name of some sort, else by their positions.
func (d *documentDiff) lists(at fieldpath.Path, before, after []any) {
	keys := itemKeys(before, after)
	if keys == nil {
		d.positions(at, before, after)
		return
	}
	had, n := map[string]any{}, len(d.found)
	for _, item := range before {
		had[itemName(item, keys)] = item
	}
	has := map[string]bool{}
	for _, item := range after {
		name := itemName(item, keys)
		has[name] = true
		d.values(itemPath(at, item, keys), had[name], item)
	}
	for _, item := range before {
		if !has[itemName(item, keys)] {
			d.values(itemPath(at, item, keys), item, nil)
		}
	}
	if len(d.found) == n { // the items are the same, their order is not
		d.found = append(d.found, Field{Path: slices.Clone(at), Before: before, After: after})
	}
}

// positions compares the items between those that are equal at both ends, one by one if they are as many, or if there
// are only new ones or only removed ones; else as a whole.
func (d *documentDiff) positions(at fieldpath.Path, before, after []any) {
	same := func(i, j int) bool { return canonical.Digest(before[i]) == canonical.Digest(after[j]) }
	first, b, a := 0, len(before), len(after)
	for first < min(b, a) && same(first, first) {
		first++
	}
	for first < min(b, a) && same(b-1, a-1) {
		b, a = b-1, a-1
	}
	if len(before) == 0 || len(after) == 0 || b != a && first < min(b, a) {
		d.found = append(d.found, Field{Path: slices.Clone(at), Before: before, After: after})
		return
	}
	for i := first; i < max(b, a); i++ {
		path := append(slices.Clip(slices.Clone(at)), fieldpath.Step{Kind: fieldpath.IndexStep, Index: i})
		switch {
		case i >= b:
			d.values(path, nil, after[i])
		case i >= a:
			d.values(path, before[i], nil)
		default:
			d.values(path, before[i], after[i])
		}
	}
}

// knownKeys name the items of lists in Kubernetes' own kinds, and of most others.
var knownKeys = [][]string{
	{"name"}, {"containerPort", "protocol"}, {"containerPort"}, {"port", "protocol"}, {"port"},
	{"mountPath"}, {"devicePath"}, {"type"},
	{"key"}, {"ip"},
	{"uid"}, {"topologyKey", "whenUnsatisfiable"}, {"host"}, {"path"},
}

// itemKeys finds the keys that tell the items of both lists apart; nil if there are none.
func itemKeys(lists ...[]any) []string {
	i := slices.IndexFunc(knownKeys, func(keys []string) bool {
		for _, list := range lists {
			seen := map[string]bool{}
			for _, item := range list {
				m, ok := item.(map[string]any)
				if !ok || slices.ContainsFunc(keys, func(k string) bool { return !namesItem(m[k]) }) || seen[itemName(item, keys)] {
					return false
				}
				seen[itemName(item, keys)] = true
			}
		}
		return true
	})
	if i < 0 {
		return nil
	}
	return knownKeys[i]
}

// namesItem reports whether a value can be part of an item's name.
func namesItem(v any) bool {
	switch v.(type) {
	case nil, map[string]any, []any:
		return false
	}
	return true
}

func itemName(item any, keys []string) string {
	m, _ := item.(map[string]any)
	name := ""
	for _, k := range keys {
		name += fmt.Sprint(m[k]) + "\x00"
	}
	return name
}

func itemPath(at fieldpath.Path, item any, keys []string) fieldpath.Path {
	m, _ := item.(map[string]any)
	selector := make(map[string]string, len(keys))
	for _, k := range keys {
		selector[k] = fmt.Sprint(m[k])
	}
	return append(slices.Clip(slices.Clone(at)), fieldpath.Step{Kind: fieldpath.SelectorStep, Selector: selector})
}
