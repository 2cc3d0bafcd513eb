//go:build controlplane

package drift_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// typeOf is one place in a kind's OpenAPI schema.
type typeOf struct {
	node       map[string]any
	components map[string]any
}

// schemasOf returns the OpenAPI v3 schema of each kind of a group and version.
func schemasOf(t *testing.T, finder *discovery.DiscoveryClient, gv schema.GroupVersion) map[string]typeOf {
	t.Helper()
	all := must.Get(finder.OpenAPIV3().Paths()).In(t)
	path := "apis/" + gv.String()
	if gv.Group == "" {
		path = "api/" + gv.Version
	}
	text := must.Get(all[path].Schema("application/json")).In(t)
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	must.Do(t, json.Unmarshal(text, &document))
	out := map[string]typeOf{}
	for _, node := range document.Components.Schemas {
		of := typeOf{node.(map[string]any), document.Components.Schemas}
		kinds, _ := of.node["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			if k := k.(map[string]any); k["group"] == gv.Group && k["version"] == gv.Version {
				out[k["kind"].(string)] = of
			}
		}
	}
	return out
}

// to returns a schema below this one, with references resolved; ref is the name of the reference.
func (s typeOf) to(node any) (of typeOf, ref string) {
	m, _ := node.(map[string]any)
	for range 3 {
		if all, ok := m["allOf"].([]any); ok && len(all) == 1 {
			inner, _ := all[0].(map[string]any)
			m = inner
		}
		name, ok := m["$ref"].(string)
		if !ok {
			break
		}
		ref = name[strings.LastIndex(name, "/")+1:]
		m, _ = s.components[ref].(map[string]any)
	}
	return typeOf{m, s.components}, ref
}

func (s typeOf) kind() string {
	kind, _ := s.node["type"].(string)
	switch {
	case s.node["x-kubernetes-int-or-string"] == true || s.node["format"] == "int-or-string":
		return "either"
	case s.node["oneOf"] != nil: // a quantity
		return "quantity"
	case kind == "" || kind == "object" && s.node["x-kubernetes-preserve-unknown-fields"] == true && s.node["properties"] == nil:
		return "any"
	case kind == "object" && s.node["properties"] == nil && s.node["additionalProperties"] == nil:
		return "any"
	default:
		return kind
	}
}

// place is a field of a kind; of is its schema. For lists it is in the first item.
type place struct {
	path []any
	of   typeOf
}

func (p place) String() string {
	out := ""
	for _, step := range p.path {
		out += fmt.Sprintf(".%v", step)
	}
	return out
}

// systemOwned are fields of metadata in a template that nobody applies.
var systemOwned = []string{"managedFields", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid",
	"resourceVersion", "generation", "ownerReferences"}

// places lists the fields below a schema. It does not follow recursive types.
func (s typeOf) places(path []any, within []string) []place {
	var out []place
	add := func(node any, step any, emit bool) {
		of, ref := s.to(node)
		at := append(slices.Clone(path), step)
		if emit {
			out = append(out, place{at, of})
		}
		if ref == "" || !slices.Contains(within, ref) {
			out = append(out, of.places(at, append(slices.Clone(within), ref))...)
		}
	}
	properties, _ := s.node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		top := len(path) == 0 && slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name)
		inner := len(path) > 0 && path[len(path)-1] == "metadata" && slices.Contains(systemOwned, name)
		if !top && !inner {
			add(properties[name], name, true)
		}
	}
	if values := s.node["additionalProperties"]; values != nil {
		add(values, "key", true)
	}
	if items := s.node["items"]; items != nil {
		add(items, 0, false)
	}
	return out
}

// texts are tried in turn if a schema only says that a value is a string.
var texts = []any{"a", "/a", "1", "10.0.0.1", "a.example.com", "10.0.0.0/8", "example.com/a", "a1"}

// values returns possible values of a field: the empty ones, and others.
func (s typeOf) values() (empty, full []any) {
	switch s.kind() {
	case "object":
		return []any{map[string]any{}}, []any{s.minimal(nil)}
	case "array":
		items, _ := s.to(s.node["items"])
		one := items.minimal(nil)
		two := runtime.DeepCopyJSONValue(items.other(one))
		return []any{[]any{}}, []any{[]any{one}, []any{one, two}}
	case "string":
		if list, ok := s.node["enum"].([]any); ok {
			return nil, list
		}
		switch s.node["format"] {
		case "byte":
			return []any{""}, []any{"YQ==", "Yg=="}
		case "date-time":
			return nil, []any{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"}
		}
		return []any{""}, texts
	case "integer", "number":
		return []any{int64(0)}, []any{int64(1), int64(2), int64(80)}
	case "boolean":
		return []any{false}, []any{true}
	case "either":
		return []any{int64(0), ""}, []any{int64(1), "50%", "http", int64(2)}
	case "quantity":
		return []any{"0"}, []any{"1000m", "2", "1Gi"}
	default:
		return []any{map[string]any{}, []any{}, ""}, []any{map[string]any{"a": map[string]any{"b": []any{}}}, map[string]any{"a": "b"},
			[]any{map[string]any{"a": ""}}}
	}
}

// minimal returns a value with only the required fields, and its keys.
func (s typeOf) minimal(within []string) any {
	var empty, full []any
	if kind := s.kind(); kind != "object" && kind != "array" {
		if empty, full = s.values(); len(full) == 0 {
			full = empty
		}
		return full[0]
	}
	if s.kind() == "array" {
		items, ref := s.to(s.node["items"])
		if ref != "" && slices.Contains(within, ref) {
			return []any{}
		}
		return []any{items.minimal(append(slices.Clone(within), ref))}
	}
	out := map[string]any{}
	properties, _ := s.node["properties"].(map[string]any)
	required, _ := s.node["required"].([]any)
	for _, name := range required {
		of, ref := s.to(properties[name.(string)])
		if ref == "" || !slices.Contains(within, ref) {
			out[name.(string)] = of.minimal(append(slices.Clone(within), ref))
		}
	}
	if len(out) == 0 {
		if values := s.node["additionalProperties"]; values != nil {
			of, _ := s.to(values)
			out["key"] = of.minimal(within)
		}
	}
	return out
}

// other returns a similar value that differs from v: another name, one more number.
func (s typeOf) other(v any) any {
	switch v := v.(type) {
	case string:
		if list, ok := s.node["enum"].([]any); ok {
			return list[len(list)-1]
		}
		if s.kind() == "quantity" {
			return "7"
		}
		return v + "2"
	case int64:
		return v + 1
	case float64:
		return v + 1
	case bool:
		return !v
	case map[string]any:
		out := runtime.DeepCopyJSON(v)
		properties, _ := s.node["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(out)) {
			of, _ := s.to(properties[name])
			out[name] = of.other(out[name])
		}
		return out
	default:
		return v
	}
}

// put returns obj with value at the place; it creates what is missing on the way, with its required fields.
func (p place) put(obj map[string]any, root typeOf, value any) map[string]any {
	out := runtime.DeepCopyJSON(obj)
	put(out, p.path, root, value)
	return out
}

func put(at any, path []any, of typeOf, value any) any {
	if len(path) == 0 {
		return runtime.DeepCopyJSONValue(value)
	}
	switch step := path[0].(type) {
	case string:
		m, ok := at.(map[string]any)
		if !ok {
			m, _ = of.minimal(nil).(map[string]any)
		}
		if m == nil {
			m = map[string]any{}
		}
		properties, _ := of.node["properties"].(map[string]any)
		next, ok := properties[step]
		if !ok {
			next = of.node["additionalProperties"]
		}
		below, _ := of.to(next)
		m[step] = put(m[step], path[1:], below, value)
		return m
	default:
		list, _ := at.([]any)
		items, _ := of.to(of.node["items"])
		if len(list) == 0 {
			list = []any{items.minimal(nil)}
		}
		list[0] = put(list[0], path[1:], items, value)
		return list
	}
}

// finder returns a discovery client for the API server.
func finder(t *testing.T) *discovery.DiscoveryClient {
	t.Helper()
	c := must.Get(discovery.NewDiscoveryClientForConfig(testkit.Config(t))).In(t)
	return c
}
