package scaffold

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// hole is a value of a manifest that the custom resource gives from now on.
type hole struct {
	source *source
	path   fieldpath.Path
	field  []string // below the custom resource's spec
	value  any      // what is in the manifest
}

// fieldName is what a template can select with a dot.
var fieldName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// parseHole reads [DOWNSTREAM:]PATH=FIELD. PATH may hold = in brackets, FIELD may not.
func parseHole(text string) (downstream string, path fieldpath.Path, field []string, err error) {
	at := strings.LastIndex(text, "=")
	if at < 0 || strings.HasSuffix(text, "]") {
		return "", nil, nil, requestf("--hole %q names no field: write PATH=FIELD, such as .spec.replicas=replicas", text)
	}
	left, right := text[:at], strings.TrimPrefix(text[at+1:], ".spec.")
	if !strings.HasPrefix(left, ".") && !strings.HasPrefix(left, "[") {
		var prefixed bool
		if downstream, left, prefixed = strings.Cut(left, ":"); !prefixed {
			return "", nil, nil, requestf("--hole %q names no path: write PATH=FIELD, such as .spec.replicas=replicas", text)
		}
	}
	if path, err = fieldpath.Parse(left); err != nil {
		return "", nil, nil, requestf("--hole %q: %v", text, err)
	}
	field = strings.Split(right, ".")
	for _, name := range field {
		if !fieldName.MatchString(name) {
			return "", nil, nil, requestf("--hole %q: %q is not a field: write letters and digits, parts separated by dots",
				text, right)
		}
	}
	return downstream, path, field, nil
}

// findHole finds the one manifest in which a hole's path is.
func findHole(manifests []*source, text string) (*hole, error) {
	name, path, field, err := parseHole(text)
	if err != nil {
		return nil, err
	}
	var found []*hole
	var names, lost []string
	for _, s := range manifests {
		names = append(names, s.downstream)
		if name != "" && name != s.downstream {
			continue
		}
		value, ok := fieldpath.Get(s.value, path)
		if !ok || value == nil {
			lost = append(lost, fmt.Sprintf("%s has %s", s.downstream, whatIsThere(s.value, path)))
			continue
		}
		found = append(found, &hole{source: s, path: path, field: field, value: value})
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var in []string
		for _, h := range found {
			in = append(in, h.source.downstream)
		}
		return nil, requestf("--hole %q is in %s: write one of them before it, %s:%s", text,
			strings.Join(in, " and in "), in[0], text)
	case len(lost) == 0:
		return nil, requestf("--hole %q: unknown downstream %s: valid downstreams are %s", text,
			name, strings.Join(names, ", "))
	}
	return nil, requestf("--hole %q is in no manifest: %s", text, strings.Join(lost, "; "))
}

// whatIsThere says where a path ends in an object, and what is there instead.
func whatIsThere(object map[string]any, path fieldpath.Path) string {
	n := len(path) - 1
	for n > 0 {
		if _, ok := fieldpath.Get(object, path[:n]); ok {
			break
		}
		n--
	}
	var at any = object
	where := "at its root "
	if n > 0 {
		at, _ = fieldpath.Get(object, path[:n])
		where = "in " + path[:n].String() + " "
	}
	switch at := at.(type) {
	case map[string]any:
		return where + strings.Join(yamltext.Keys(at), ", ")
	case []any:
		var names []string
		for i, item := range at {
			m, _ := item.(map[string]any)
			if name, ok := m["name"].(string); ok {
				names = append(names, "[name="+name+"]")
			} else {
				names = append(names, fmt.Sprintf("[%d]", i))
			}
		}
		return where + strings.Join(names, ", ")
	}
	return where + "not a map or list"
}

// fill puts the mark in the place of the value.
func (h *hole) fill(mark string) error {
	n := nodeAt(h.source.root, h.path)
	switch {
	case n == nil:
		return requestf("hole %s of downstream %s lies in another hole", h.path, h.source.downstream)
	case anyNode(n, func(n *yaml.Node) bool { return h.source.bound[n] }):
		return requestf("hole %s of downstream %s holds another hole", h.path, h.source.downstream)
	}
	n.Kind, n.Style, n.Tag, n.Value, n.Content = yaml.ScalarNode, 0, "!!str", mark, nil
	h.source.bound[n] = true
	return nil
}

// nodeAt follows a path that is known to lead somewhere.
func nodeAt(n *yaml.Node, path fieldpath.Path) *yaml.Node {
	for _, step := range path {
		switch {
		case n == nil:
			return nil
		case step.Kind == fieldpath.FieldStep:
			n = mapEntry(n, step.Field)
		default:
			n = itemAt(n, step)
		}
	}
	return n
}

func itemAt(list *yaml.Node, step fieldpath.Step) *yaml.Node {
	if list.Kind != yaml.SequenceNode {
		return nil
	}
	for i, item := range list.Content {
		selected := step.Kind == fieldpath.IndexStep && i == step.Index
		if step.Kind == fieldpath.SelectorStep {
			selected = true
			for key, want := range step.Selector {
				entry := mapEntry(item, key)
				selected = selected && entry != nil && entry.Value == want
			}
		}
		if selected {
			return item
		}
	}
	return nil
}

// agree wants two holes of one field to hold one value, which becomes that field's.
func agree(holes []*hole) error {
	for i, h := range holes {
		for _, other := range holes[:i] {
			same := strings.Join(h.field, ".") == strings.Join(other.field, ".")
			if same && !reflect.DeepEqual(h.value, other.value) {
				return requestf("field %s would be %s by %s of %s, and %s by %s of %s: give them fields of their own",
					strings.Join(h.field, "."),
					literal(other.value), other.path, other.source.downstream, literal(h.value), h.path, h.source.downstream)
			}
		}
	}
	return nil
}

// literal is a scalar as templates write it.
func literal(value any) string {
	if text, ok := value.(string); ok {
		return strconv.Quote(text)
	}
	if value == nil {
		return "null"
	}
	return fmt.Sprint(value)
}

// grow builds the tree of the fields that holes name. That a field is a value in one hole and a map in another is an
// error.
func grow(holes []*hole) (*branch, error) {
	root := &branch{fields: map[string]*branch{}}
	for _, h := range holes {
		at := root
		for i, name := range h.field {
			if at.fields == nil {
				return nil, requestf("field %s is a value, so it has no field %s", strings.Join(h.field[:i], "."), name)
			}
			next, ok := at.fields[name]
			if !ok {
				next = &branch{fields: map[string]*branch{}}
				at.fields[name] = next
			}
			at = next
		}
		if len(at.fields) > 0 {
			return nil, requestf("field %s is a map of fields, so it is not a value", strings.Join(h.field, "."))
		}
		at.fields, at.schema, at.value = nil, inferred(h.value, h.path), h.value
	}
	return root, nil
}
