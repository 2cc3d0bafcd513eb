package config

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	kyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
)

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instance(t testing.TB, text []byte) any {
	t.Helper()
	j, err := kyaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Every case without errors, the config with every field there is among them, is valid.
func TestSchemaAcceptsWhatLoadAccepts(t *testing.T) {
	s := compileSchema(t)
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := a.Files[len(a.Files)-1].Data
		complete := strings.HasSuffix(name, "/complete.txtar")
		// To Load null is as good as absent, as it is to kubectl; an editor should not propose it.
		nulls := strings.HasSuffix(name, "/null-is-absent.txtar")
		if len(want) > 0 && !complete || nulls || strings.Contains(string(a.Comment), "set:") {
			continue
		}
		for _, f := range a.Files {
			if !strings.HasSuffix(f.Name, ".yaml") || !strings.Contains(string(f.Data), "kind: Operator") {
				continue
			}
			checked++
			if err := s.Validate(instance(t, f.Data)); err != nil {
				t.Errorf("%s: %s: %v", name, f.Name, err)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d files were checked", checked)
	}
}

func TestSchemaRefusesMistakes(t *testing.T) {
	s := compileSchema(t)
	a, err := txtar.ParseFile("testdata/complete.txtar")
	if err != nil {
		t.Fatal(err)
	}
	whole := string(a.Files[0].Data)
	for _, tc := range []struct{ reason, old, new string }{
		{"another kind", "kind: Operator", "kind: Deployment"},
		{"another version", "corollary.dev/v1alpha1", "corollary.dev/v1"},
		{"an unknown field", "mode: Enforce", "moed: Enforce"},
		{"an unknown nested field", "adoptionPolicy:", "adoption:"},
		{"an unknown value", "mode: Enforce", "mode: enforce"},
		{"an unknown value of a plain text field", "missing: Wait", "missing: wait"},
		{"an unknown reason", "reason: FieldValueInvalid", "reason: Invalid"},
		{"a boolean for CEL", `when: "true"`, "when: true"},
		{"a hyphen in a downstream's name", "name: deployment ", "name: my-app "},
		{"no name", "  name: appoperator ", "  namr: appoperator "},
		{"an operator's name in capitals", "name: appoperator ", "name: Appoperator "},
		{"an empty list of namespaces", "namespaces: [apps, tools]", "namespaces: []"},
		{"a number for a duration", "resyncPeriod: 10h", "resyncPeriod: 10"},
		{"a bad duration", "timeout: 1h", "timeout: soon"},
		{"a duration without a unit", "timeout: 1h", `timeout: "60"`},
		{"two places for the hash", "hash: {annotation:", "hash: {label: a.b/c, annotation:"},
		{"a path without a dot", "initialFields: [.spec", "initialFields: [spec"},
		{"a status path elsewhere", "downstreams: .status.downstreams", "downstreams: .spec.downstreams"},
		{"template and templateFile", `    when: "true"`, "    templateFile: x\n    when: \"true\""},
		{"a number as label value", "tools.example.com/managed-by: appoperator", "tools.example.com/managed-by: 5"},
		{"a label key that is none", "tools.example.com/managed-by: appoperator", "a b: c"},
		{"a finalizer without a domain", "finalizer: tools.example.com/cleanup", "finalizer: cleanup"},
		{"no conventions and no file with them", "conventionsFile:", "x-file:"},
		{"one delimiter", "mode: Enforce", `delimiters: ["[["]`},
		{"a guard that is no share", "maxChanged: 20%", "maxChanged: many"},
		{"an unknown operator in a selector", "labelSelector: {}", "labelSelector: {matchExpressions: [{key: a, operator: Is}]}"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if !strings.Contains(whole, tc.old) {
				t.Fatalf("the complete config does not hold %q", tc.old)
			}
			text := strings.Replace(whole, tc.old, tc.new, 1)
			if err := s.Validate(instance(t, []byte(text))); err == nil {
				t.Error("valid")
			}
		})
	}
}

// Every type and field has a description, and editors get them.
func TestSchemaDescribesEverything(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("$schema is %v", doc["$schema"])
	}
	check := func(name string, s map[string]any) {
		props, _ := s["properties"].(map[string]any)
		for key, p := range props {
			prop, _ := p.(map[string]any)
			if text, _ := prop["description"].(string); text == "" {
				t.Errorf("%s.%s has no description", name, key)
			}
		}
		if _, isObject := s["properties"]; isObject && s["additionalProperties"] != false {
			t.Errorf("%s allows unknown fields", name)
		}
	}
	check("Operator", doc)
	defs, _ := doc["$defs"].(map[string]any)
	for name, d := range defs {
		def, _ := d.(map[string]any)
		check(name, def)
	}
	if len(defs) < 15 {
		t.Errorf("only %d definitions", len(defs))
	}
}

// Constraints name fields that exist: a renamed field must not lose its pattern in silence.
func TestConstraintsNameFields(t *testing.T) {
	known := map[string]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(t.Elem())
		case reflect.Struct:
			for _, name := range fieldNames(t) {
				known[t.Name()+"."+name] = true
				f, _ := fieldNamed(t, name)
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[Operator]())
	for field := range patterns {
		if !known[field] {
			t.Errorf("no field %s", field)
		}
	}
	for field := range enumFields {
		if !known[field] {
			t.Errorf("no field %s", field)
		}
	}
}

func TestSchemaGolden(t *testing.T) {
	golden.File(t, "testdata/schema.json", Schema())
}
