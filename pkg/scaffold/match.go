package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// match makes holes of the manifests' values that are called like a field of the kind's spec and of its type, where
// there is one place that fits and no hole was asked for. The notes are about the fields for which there is none or
// several.
func (u *Upstream) match(manifests []*source, holes []*hole) (more []*hole, notes []string) {
	if u.known == nil {
		return nil, nil
	}
	for _, field := range leaves(schemaAt(u.known.Schema, fieldpath.New("spec")), nil) {
		if slices.ContainsFunc(holes, func(h *hole) bool { return slices.Equal(h.field, field) }) {
			continue
		}
		s := schemaAt(u.known.Schema, fieldpath.New(append([]string{"spec"}, field...)...))
		var fit []*hole
		for _, m := range manifests {
			for _, p := range placesOf(m.value, nil, field[len(field)-1]) {
				value, _ := fieldpath.Get(m.value, p)
				taken := slices.ContainsFunc(holes, func(h *hole) bool { return h.source == m && h.path.Overlaps(p) })
				if !taken && takes(s, value) {
					fit = append(fit, &hole{source: m, path: p, field: field, value: value})
				}
			}
		}
		name := strings.Join(field, ".")
		switch len(fit) {
		case 1:
			more, holes = append(more, fit...), append(holes, fit...)
		case 0:
			notes = append(notes, fmt.Sprintf("field %s of %s goes nowhere yet: add --hole PATH=%s", name, u.kind.Kind, name))
		default:
			var places []string
			for _, h := range fit {
				places = append(places, h.source.downstream+":"+h.path.String()+"="+name)
			}
			notes = append(notes, fmt.Sprintf("field %s of %s fits several places: add --hole with one or more of %s", name,
				u.kind.Kind,
				strings.Join(places, ", ")))
		}
	}
	return more, notes
}

// suggest names holes that most would want, for manifests in which there are none.
func suggest(manifests []*source) string {
	var list []string
	for _, key := range []string{"replicas", "image", "host"} {
		for _, s := range manifests {
			if found := placesOf(s.value, nil, key); len(found) > 0 {
				list = append(list, fmt.Sprintf("--hole '%s:%s=%s'", s.downstream, found[0], key))
				break
			}
		}
	}
	if len(list) == 0 {
		return "--hole PATH=FIELD"
	}
	return strings.Join(list, " ")
}

// leaves are the fields below a schema that have no declared fields of their own, sorted.
func leaves(s *spec.Schema, at []string) [][]string {
	if s == nil {
		return nil
	}
	if len(s.Properties) == 0 {
		if len(at) == 0 {
			return nil
		}
		return [][]string{at}
	}
	var names []string
	for name := range s.Properties {
		if fieldName.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all [][]string
	for _, name := range names {
		property := s.Properties[name]
		all = append(all, leaves(&property, append(slices.Clone(at), name))...)
	}
	return all
}

// placesOf are the paths in an object at which a key is, metadata aside. What is called name is what its list knows an
// item by, and hardly a value that differs.
func placesOf(value any, at fieldpath.Path, key string) []fieldpath.Path {
	if key == "name" {
		return nil
	}
	var found []fieldpath.Path
	switch v := value.(type) {
	case map[string]any:
		for _, name := range yamltext.Keys(v) {
			if name == "metadata" && len(at) == 0 {
				continue
			}
			below := at.Child(name)
			if name == key {
				found = append(found, below)
			}
			found = append(found, placesOf(v[name], below, key)...)
		}
	case []any:
		for i, item := range v {
			found = append(found, placesOf(item, append(slices.Clone(at), stepTo(v, i)), key)...)
		}
	}
	return found
}

// stepTo names an item of a list: by its name where no other has it, else by its number.
func stepTo(list []any, i int) fieldpath.Step {
	nameOf := func(item any) string {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		return name
	}
	name := nameOf(list[i])
	for j, item := range list {
		if name == "" || j != i && nameOf(item) == name {
			return fieldpath.Step{Kind: fieldpath.IndexStep, Index: i}
		}
	}
	return fieldpath.Step{Kind: fieldpath.SelectorStep, Selector: map[string]string{"name": name}}
}

// takes reports whether a schema takes values like this one. One that says nothing of its type takes none here.
func takes(s *spec.Schema, value any) bool {
	if either, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); either {
		_, whole := value.(int64)
		return whole || isText(value)
	}
	if len(s.Type) != 1 {
		return false
	}
	switch value.(type) {
	case string:
		return s.Type[0] == "string"
	case bool:
		return s.Type[0] == "boolean"
	case int64:
		return s.Type[0] == "integer" || s.Type[0] == "number"
	case float64:
		return s.Type[0] == "number"
	case map[string]any:
		return s.Type[0] == "object"
	case []any:
		return s.Type[0] == "array"
	}
	return false
}

// schemaAt is the schema of a field, nil where it is not declared.
func schemaAt(s *spec.Schema, path fieldpath.Path) *spec.Schema {
	for _, step := range path {
		if s == nil {
			return nil
		}
		property, ok := s.Properties[step.Field]
		if !ok {
			return nil
		}
		s = &property
	}
	return s
}

// expression is what the template says in the place of a hole. Where the custom resource may leave the field out, the
// manifest's value is used instead.
func (u *Upstream) expression(h *hole) string {
	text := ".spec." + strings.Join(h.field, ".")
	if u.known == nil || isGiven(u.known.Schema, append([]string{"spec"}, h.field...)) {
		return text
	}
	switch h.value.(type) {
	case map[string]any, []any:
		return text + " | omitempty"
	}
	return text + " | default " + literal(h.value)
}

// isGiven reports whether every object of a kind has a field: each step to it is required or has a default.
func isGiven(s *spec.Schema, path []string) bool {
	for _, name := range path {
		property, ok := s.Properties[name]
		if !ok || property.Default == nil && !slices.Contains(s.Required, name) {
			return false
		}
		s = &property
	}
	return true
}
