package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
)

// writtenMap is a map of the author's, gathered from all paths that print any of its entries.
type writtenMap struct {
	joined   *writtenMap // where it turned out to be the same as another
	line     int
	at       string
	schema   *spec.Schema
	supplied map[string]bool
	open     bool // a hole may supply any key
}

func (m *writtenMap) top() *writtenMap {
	for m.joined != nil {
		m = m.joined
	}
	return m
}

// written gathers a map. Maps that share an entry are one map, printed on several paths.
func (d *Documents) written(s *skeleton.Node, schema *spec.Schema, at string) {
	var m *writtenMap
	if d.ownsFields && !strings.HasSuffix(at, "[]") {
		schema = requiring(schema, nil)
	}
	for _, e := range s.Entries {
		id := site{d.Line(e.Line), at + step(e.Key)}
		if have := d.maps[id]; have != nil && m == nil {
			m = have.top()
		} else if have != nil && have.top() != m {
			m.join(have.top())
		} else if m == nil {
			m = &writtenMap{line: d.Line(s.Line), at: at, schema: schema, supplied: map[string]bool{}}
		}
		d.maps[id] = m
		m.open = m.open || e.Splice >= 0 || len(e.Holes) > 0
		if e.Splice < 0 && (e.Value.Kind != skeleton.ConstNode || e.Value.Value != nil) {
			m.supplied[e.Key] = true
		}
	}
	if m != nil && schema == nil {
		m.schema = nil // on this path nothing is known of its place
	}
}

func (m *writtenMap) join(other *writtenMap) {
	other.joined = m
	m.open = m.open || other.open
	m.line = min(m.line, other.line)
	for key := range other.supplied {
		m.supplied[key] = true
	}
	if other.schema == nil {
		m.schema = nil
	}
}

// requiring is the schema of a map in an object of others: they set the required fields, except those that say which
// item it is.
func requiring(schema *spec.Schema, names []string) *spec.Schema {
	if schema = kinds.PlainSchema(schema); schema == nil || len(schema.Required) == 0 {
		return schema
	}
	less := *schema
	less.Required = slices.DeleteFunc(slices.Clone(schema.Required), func(name string) bool {
		return !slices.Contains(names, name)
	})
	return &less
}

// missing finds the fields that a schema requires and no path supplies. The API server holds custom resources to that;
// in built-in kinds it takes some of them for empty.
func (d *Documents) missing() (all []Finding) {
	for _, m := range d.maps {
		m = m.top()
		if m.open || m.schema == nil {
			continue
		}
		for _, name := range m.schema.Required {
			if m.supplied[name] || m.schema.Properties[name].Default != nil || m.at == "" && slices.Contains(OfEveryKind, name) {
				continue
			}
			all = append(all, Finding{Line: m.line, Problem: m.at + step(name) +
				" is missing: the schema requires it", Fix: "add it",
				Unsure: kinds.IsBuiltin(d.kind.GVK.GroupKind())})
		}
	}
	return all
}

// mapKeys are the fields that say which item of a list it is.
func mapKeys(list *spec.Schema) []string {
	if list == nil {
		return nil
	}
	if kind, _ := list.Extensions.GetString("x-kubernetes-list-type"); kind != "map" {
		return nil
	}
	keys, _ := list.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	return keys
}

// items looks for items of a list that cannot be combined: equal ones of a set, and those with equal keys.
func (d *Documents) items(s *skeleton.Node, schema *spec.Schema, at string) {
	if schema == nil {
		return
	}
	keys := mapKeys(schema)
	if kind, _ := schema.Extensions.GetString("x-kubernetes-list-type"); kind != "set" && kind != "map" {
		return
	}
	first, found := map[string]int{}, map[site]*Finding{}
	for _, item := range s.Items {
		id, line, ok := d.identity(item, kinds.ItemSchema(schema), keys)
		if !ok {
			continue
		}
		// of several on one line, it is not known which one a path leaves out
		here := site{line, fmt.Sprintf("item %s %s", at, id)}
		if other := first[id]; other > 0 {
			found[here] = &Finding{Problem: fmt.Sprintf("%s has two items with %s", at, id), Fix: "leave one out", Other: other}
		} else {
			first[id], found[here] = line, nil
		}
	}
	for here, problem := range found {
		d.count(here.line, here.what, problem)
	}
}

// identity is what an item has and the others of its list have not, and its line; false if a hole has a part in it.
func (d *Documents) identity(item *skeleton.Node, schema *spec.Schema, keys []string) (id string, line int, ok bool) {
	if keys == nil {
		return fmt.Sprintf("the value %v", item.Value), d.Line(item.Line),
			item.Kind == skeleton.ConstNode && item.Value != nil
	}
	if item.Kind != skeleton.MapNode || schema == nil {
		return "", 0, false
	}
	for _, key := range keys {
		value := schema.Properties[key].Default
		for _, e := range item.Entries {
			switch {
			case e.Splice >= 0 || len(e.Holes) > 0:
				return "", 0, false
			case e.Key == key && e.Value.Kind != skeleton.ConstNode:
				return "", 0, false
			case e.Key == key && e.Value.Value != nil:
				value = e.Value.Value
				line = max(line, d.Line(e.Line))
			}
		}
		if value == nil {
			return "", 0, false
		}
		if id != "" {
			id += " and "
		}
		id += fmt.Sprintf("the %s %v", key, value)
	}
	return id, line, line > 0
}

// mostBranches is how many paths tell that two items are never there together.
const mostBranches = 100

// isAtomicList reports whether the API server takes a list as one value: it has one manager.
func isAtomicList(schema *spec.Schema) bool {
	if schema == nil || !schema.Type.Contains("array") {
		return false
	}
	kind, _ := schema.Extensions.GetString("x-kubernetes-list-type")
	return kind != "map" && kind != "set"
}
