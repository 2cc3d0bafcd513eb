package scaffold

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/crdschema"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// branch is a field of a custom resource's spec, or a map of fields.
type branch struct {
	fields map[string]*branch
	schema crdschema.Node // of a leaf
	value  any            // the sample's
}

// definition is the schema of a branch. Numbers and booleans get the manifest's value as default; text, maps and lists
// have to be given, for nothing suits all. required reports whether the branch has to be given.
func (b *branch) definition() (schema crdschema.Node, required bool) {
	if b.fields == nil {
		schema := crdschema.Node{}
		crdschema.Merge(schema, b.schema)
		switch b.value.(type) {
		case string, map[string]any, []any:
			return schema, true
		}
		schema["default"] = b.value
		return schema, false
	}
	properties := crdschema.Node{}
	var names []any
	for _, name := range yamltext.Keys(b.sample().(map[string]any)) {
		child, needed := b.fields[name].definition()
		properties[name] = child
		if needed {
			names = append(names, name)
		}
	}
	schema = crdschema.Object(properties)
	if len(names) > 0 {
		schema["required"] = names
		return schema, true
	}
	schema["default"] = crdschema.Node{}
	return schema, false
}

// sample is the value of a branch in the sample custom resource.
func (b *branch) sample() any {
	if b.fields == nil {
		return b.value
	}
	value := map[string]any{}
	for name, child := range b.fields {
		value[name] = child.sample()
	}
	return value
}

// inferred is the schema that a value lets expect: what else may stand at its place is a guess.
func inferred(value any, path fieldpath.Path) crdschema.Node {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 && all(v, isText) {
			return crdschema.Node{"type": "object", "additionalProperties": crdschema.Node{"type": "string"}}
		}
		return crdschema.Node{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	case []any:
		if len(v) > 0 && !slices.ContainsFunc(v, func(item any) bool { return !isText(item) }) {
			return crdschema.Node{"type": "array", "items": crdschema.Node{"type": "string"}}
		}
		return crdschema.Node{"type": "array", "items": crdschema.Node{"x-kubernetes-preserve-unknown-fields": true}}
	}
	if takesEither(path) {
		return crdschema.Node{"x-kubernetes-int-or-string": true}
	}
	switch value.(type) {
	case bool:
		return crdschema.Node{"type": "boolean"}
	case int64:
		return crdschema.Node{"type": "integer"}
	case float64:
		return crdschema.Node{"type": "number"}
	case string:
		return crdschema.Node{"type": "string"}
	}
	return crdschema.Node{"x-kubernetes-preserve-unknown-fields": true}
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

func all(m map[string]any, meets func(any) bool) bool {
	for _, v := range m {
		if !meets(v) {
			return false
		}
	}
	return true
}

// takesEither reports whether a field of a built-in kind takes a number as well as text:
// quantities, and numbers that may be percentages or names.
func takesEither(path fieldpath.Path) bool {
	last := path[len(path)-1].Field
	parent := ""
	if len(path) > 1 {
		parent = path[len(path)-2].Field
	}
	return slices.Contains([]string{"maxSurge", "maxUnavailable", "minAvailable", "targetPort"}, last) ||
		slices.Contains([]string{"limits", "requests", "hard"}, parent) ||
		last == "port" && (parent == "httpGet" || parent == "tcpSocket")
}
