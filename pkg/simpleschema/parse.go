package simpleschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// Problem is one mistake in the notation.
type Problem struct {
	// Path leads to the value, from the map that holds spec and types.
	Path fieldpath.Path
	// Text says what is wrong, Fix how to put it right.
	Text, Fix string
}

// Limits of what a schema expands to. An API server stores no object of more than 1.5 MiB.
const (
	maxNodes = 10_000
	maxDepth = 32
	maxBytes = 1 << 20
)

// basic are the types that the notation has itself, and what OpenAPI calls them.
var basic = map[string]string{"string": "string", "integer": "integer", "boolean": "boolean", "float": "number"}

// unstructured is the type of an object with any fields.
const unstructured = "object"

// name matches the name of a field or of a type.
var name = regexp.MustCompile(`^[A-Za-z_][-A-Za-z0-9_]*$`)

const nameFix = "write letters, digits, _ and -, beginning with a letter or _"

// schema is an OpenAPI schema as JSON has it.
type schema = map[string]any

// Parse returns the OpenAPI schema of fields that are written in the notation, types expanded; nil where there are
// problems. All problems are reported at once.
func Parse(fields, types map[string]any) (map[string]any, []Problem) {
	p := &parser{types: types, nodes: maxNodes}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		p.declare(name)
	}
	p.cycles()
	p.at = fieldpath.New("spec")
	made := p.object(fields)
	if text, err := json.Marshal(made); len(p.problems) == 0 && (err != nil || len(text) > maxBytes) {
		p.fail("describe less of it", "the schema is larger than %d KiB, which no API server stores", maxBytes>>10)
	}
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return made, nil
}

// parser expands one schema. at is where it is in the notation, using the types that it is in the middle of.
type parser struct {
	types    map[string]any
	at       fieldpath.Path
	using    []string
	nodes    int
	silent   bool // what is wrong with a type is reported where it is declared, not where it is used
	problems []Problem
}

func (p *parser) fail(fix, format string, args ...any) {
	if p.silent {
		return
	}
	p.problems = append(p.problems, Problem{Path: slices.Clone(p.at), Text: fmt.Sprintf(format, args...), Fix: fix})
}

// within does something at a place below.
func (p *parser) within(step string, do func()) {
	around := p.at
	p.at = around.Child(step)
	do()
	p.at = around
}

// declare checks a type where it is declared.
func (p *parser) declare(typeName string) {
	p.at = fieldpath.New("types", typeName)
	_, isBasic := basic[typeName]
	switch {
	case isBasic || typeName == unstructured:
		p.fail("choose another name", "%s is a type that the notation has itself", typeName)
		return
	case !name.MatchString(typeName):
		p.fail(nameFix, "%q is not a valid name for a type", clip(typeName))
		return
	}
	p.using = []string{typeName}
	p.field(p.types[typeName])
	p.using = nil
}

// object is the schema of a map of fields.
func (p *parser) object(fields map[string]any) schema {
	properties := schema{}
	var required, rules []any
	isDefaulted := false
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		p.within(key, func() {
			switch {
			case !name.MatchString(key):
				p.fail(nameFix, "%q is not a valid name for a field", clip(key))
				return
			case key == "true" || key == "false" || key == "null":
				p.fail(
					"choose another name, which nobody has to quote",
					"YAML does not read the name of the field as text, but as %s: such names are y, n, yes, no, on and off",
					key,
				)
				return
			}
			made, needed := p.field(fields[key])
			properties[key] = made
			if needed {
				required = append(required, key)
			}
			_, has := made["default"]
			fixed := isFixed(made)
			if fixed && !needed && !has {
				rules = append(rules, kept(key))
			}
			isDefaulted = isDefaulted || has || fixed
		})
	}
	made := schema{"type": "object", "properties": properties}
	if len(rules) > 0 {
		made["x-kubernetes-validations"] = rules
	}
	switch {
	case len(required) > 0:
		made["required"] = required
	case isDefaulted: // so that the defaults, and what may not be removed, take effect where the object itself is missing
		made["default"] = schema{}
	}
	return made
}

// field returns the schema of one field, which is a map of fields, or a text with its type and markers. needed means
// that it must be set.
func (p *parser) field(value any) (made schema, needed bool) {
	if p.nodes--; p.nodes < 0 || len(p.at)+len(p.using) > maxDepth {
		if p.nodes == -1 || p.nodes >= 0 {
			p.always(
				"describe less of it",
				"the schema has more than %d fields, or they are nested more than %d deep, types expanded",
				maxNodes,
				maxDepth,
			)
		}
		return schema{}, false
	}
	switch value := value.(type) {
	case map[string]any:
		return p.object(value), false
	case string:
		typeText, markers, _ := strings.Cut(value, "|")
		made, needed = p.typed(strings.TrimSpace(typeText))
		if made == nil { // reported
			return schema{}, false
		}
		return made, p.mark(made, markers, needed)
	}
	p.fail("write a type, such as string or integer | default=1, or a map of fields",
		"found %s, wanted a type", found(value))
	return schema{}, false
}

// always is fail for what is not only wrong with a type where it is declared.
func (p *parser) always(fix, format string, args ...any) {
	silent := p.silent
	p.silent = false
	p.fail(fix, format, args...)
	p.silent = silent
}

// typed returns the schema of a type; nil if it is wrong. needed means that the type is declared as required.
func (p *parser) typed(text string) (made schema, needed bool) {
	const fix = `write string, integer, boolean, float, object, []TYPE, map[string]TYPE, or the name of one of types`
	if p.nodes--; strings.Count(text, "[") > maxDepth {
		p.fail(fix, "lists and maps are nested more than %d deep", maxDepth)
		return nil, false
	}
	switch rest, isMap := strings.CutPrefix(text, "map["); {
	case text == "":
		p.fail(fix, "the type is missing")
		return nil, false
	case basic[text] != "":
		return schema{"type": basic[text]}, false
	case text == unstructured:
		return schema{"type": "object", "x-kubernetes-preserve-unknown-fields": true}, false
	case strings.HasPrefix(text, "[]"):
		item, _ := p.typed(strings.TrimSpace(text[2:]))
		return around(item, schema{"type": "array", "items": item}), false
	case isMap:
		value, ok := strings.CutPrefix(rest, "string]")
		if !ok {
			p.fail("write map[string]TYPE", "%q is not a type: the keys of a map are strings", clip(text))
			return nil, false
		}
		entry, _ := p.typed(strings.TrimSpace(value))
		return around(entry, schema{"type": "object", "additionalProperties": entry}), false
	}
	return p.custom(text, fix)
}

func around(inner, outer schema) schema {
	if inner == nil {
		return nil
	}
	return outer
}

// otherNames are names that people write for types of the notation.
var otherNames = map[string]string{
	"number":  "float",
	"double":  "float",
	"float64": "float",
	"int":     "integer",
	"int64":   "integer",
	"int32":   "integer",
	"bool":    "boolean",
	"text":    "string",
	"any":     unstructured,
	"array":   "[]TYPE",
	"list":    "[]TYPE",
	"map":     "map[string]TYPE",
}

// custom expands one of the types that are declared.
func (p *parser) custom(text, fix string) (made schema, needed bool) {
	declared, ok := p.types[text]
	switch {
	case !ok && otherNames[text] != "":
		p.fail("write "+otherNames[text], "there is no type %s", text)
		return nil, false
	case !ok:
		known := append(slices.Sorted(maps.Keys(basic)), unstructured)
		if near := spelling.Closest(text, append(known, slices.Sorted(maps.Keys(p.types))...)); near != "" {
			fix = "did you mean " + near + "?"
		}
		p.fail(fix, "there is no type %q", clip(text))
		return nil, false
	case slices.Contains(p.using, text): // cycles reports it
		return nil, false
	}
	silent := p.silent
	p.silent = true
	p.using = append(p.using, text)
	made, needed = p.field(declared)
	p.using = p.using[:len(p.using)-1]
	p.silent = silent
	return made, needed
}

// found describes a value that is not a type.
func found(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case []any:
		return "a list"
	default:
		return fmt.Sprintf("%v", value)
	}
}

// clip keeps a message readable whatever the config holds.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
