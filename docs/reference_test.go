package docs_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/schema"
)

// everything is a config with each block that has defaults of its own, and with nothing that has a default.
const everything = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: reference}
watch: {apiVersion: example.com/v1, kind: Thing}
validate: [{rule: "true"}]
inputs: [{name: input, apiVersion: v1, kind: ConfigMap, fixedName: input}]
downstreams:
  - {name: downstream, apiVersion: v1, kind: ConfigMap, template: "metadata: {name: x}"}
deletion:
  before: {apiVersion: v1, kind: ConfigMap, template: "metadata: {name: x}", doneWhen: "true"}
conventions:
  fieldManager: reference
  labels: {example.com/managed-by: reference}
  hash: {annotation: example.com/hash}
  owner: {annotation: example.com/owner}
  finalizer: example.com/finalizer
status: {conditions: {ready: Ready}, downstreams: .status.downstreams}
conversion:
  hub: v1
  spokes: [{version: v1beta1, rules: [{move: .a}], toHub: [{set: .a, expression: self.b}], lost: [{path: .c, reason: unused}]}]
  preserve: {annotation: a/b}
guard: {}
`

// reference writes the tables of the config reference: order and structure from the Go types, meaning and bounds from
// the schema that is published, defaults from a config that was loaded.
type reference struct {
	schema struct {
		definition
		Definitions map[string]definition `json:"$defs"`
	}
	defaults config.Operator
	text     strings.Builder
}

type definition struct {
	Description string              `json:"description"`
	Required    []string            `json:"required"`
	Properties  map[string]property `json:"properties"`
}

type property struct {
	Description string    `json:"description"`
	Type        string    `json:"type"`
	Enum        []string  `json:"enum"`
	Items       *property `json:"items"`
}

// TestReferenceIsGenerated: docs/reference.md is what the types say. `make golden` writes it.
func TestReferenceIsGenerated(t *testing.T) {
	r := &reference{}
	if err := json.Unmarshal(schema.Operator(), &r.schema); err != nil {
		t.Fatal(err)
	}
	files, errs := load.Operators(load.Options{Files: []string{"-"}, Stdin: strings.NewReader(everything)})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	r.defaults = files[0].Operator
	r.text.WriteString(`# Config reference

Generated from the program's types; what the keys are good for, and how they play together, is told by topic in
[The config file](config.md). A key that is missing has its default; **bold** keys must be given where their block is.
A duration is Go's: ` + "`90s`, `1h30m`" + `. The same as a JSON Schema: [schema/operator.v1alpha1.json](schema/operator.v1alpha1.json).
`)
	r.block("", r.schema.definition, reflect.ValueOf(r.defaults))
	golden.File(t, "reference.md", []byte(r.text.String()))
}

// block writes the table of a struct, and then those of the structs in it. Value is nil where no config has the block.
func (r *reference) block(path string, d definition, value reflect.Value) {
	heading := "`" + path + "`"
	if path == "" {
		heading = "The operator"
	}
	fmt.Fprintf(&r.text, "\n## %s\n\n%s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", heading, sentence(d.Description, "", ""))
	var below []func()
	for _, f := range reflect.VisibleFields(value.Type()) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		p, at := d.Properties[key], strings.TrimPrefix(path+"."+key, ".")
		shown := "`" + key + "`"
		for _, required := range d.Required {
			if required == key {
				shown = "**" + shown + "**"
			}
		}
		kind, inner := r.kind(f, p, at)
		if inner == value.Type() { // a type that holds itself has one table
			kind, inner = "list of "+linkTo(path), nil
		}
		fmt.Fprintf(&r.text, "| %s | %s | %s | %s |\n", shown, kind, r.standard(key, value.FieldByIndex(f.Index)),
			sentence(p.Description, f.Name, key))
		if inner != nil {
			if strings.HasPrefix(kind, "list") {
				at += "[]"
			}
			below = append(below, func() { r.block(at, r.schema.Definitions[inner.Name()], sample(value.FieldByIndex(f.Index), inner)) })
		}
	}
	for _, write := range below {
		write()
	}
}

// sample returns a value of the struct type of a field, as a pointer or in a list perhaps.
func sample(v reflect.Value, inner reflect.Type) reflect.Value {
	for v.IsValid() && v.Type() != inner {
		switch {
		case v.Kind() == reflect.Slice && v.Len() > 0:
			v = v.Index(0)
		case v.Kind() == reflect.Pointer && !v.IsNil():
			v = v.Elem()
		default:
			return reflect.Zero(inner)
		}
	}
	return v
}

// kind returns what a field holds, in words, and the struct of its own table.
func (r *reference) kind(f reflect.StructField, p property, at string) (string, reflect.Type) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	ours := strings.HasPrefix(t.PkgPath(), reflect.TypeFor[config.Operator]().PkgPath())
	switch {
	case f.Tag.Get("holds") == "cel":
		return "CEL", nil
	case f.Tag.Get("holds") != "":
		return f.Tag.Get("holds"), nil
	case t == reflect.TypeFor[common.Duration]():
		return "duration", nil
	case ours && t.Kind() == reflect.Struct:
		return linkTo(at), t
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return "list of " + linkTo(at+"[]"), t.Elem()
	case t.Kind() == reflect.Slice:
		return "list of strings", nil
	case t.Kind() == reflect.Map:
		return "map", nil
	case len(p.Enum) > 0:
		return "`" + strings.Join(p.Enum, "`, `") + "`", nil
	case t.Kind() == reflect.Struct:
		return "`metav1." + t.Name() + "`", nil
	case p.Type == "string":
		return "text", nil
	}
	return p.Type, nil
}

// linkTo leads to the table of a block. Anchors are made of headings as GitHub makes them.
func linkTo(path string) string {
	return "[`" + path + "`](#" + strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "").Replace(path)) + ")"
}

// standard returns the default of a field: what it has where the config does not say it.
func (r *reference) standard(key string, v reflect.Value) string {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Bool && !v.Bool() {
		return "`false`"
	}
	text, err := json.Marshal(v.Interface())
	said := strings.Trim(string(text), `"`)
	if err != nil || v.IsZero() || v.Kind() == reflect.Struct || strings.Contains(everything, key+": "+said) ||
		strings.Contains(everything, key+`: "`) {
		return ""
	}
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct {
		return ""
	}
	return "`" + said + "`"
}

// sentence turns a doc comment into a cell: it begins with the key as it is in a file, not with the field's name.
func sentence(comment, field, key string) string {
	comment = strings.ReplaceAll(strings.Join(strings.Fields(comment), " "), "|", `\|`)
	if rest, ok := strings.CutPrefix(comment, field+" "); ok && field != "" {
		comment = "`" + key + "` " + rest
	}
	return comment
}
