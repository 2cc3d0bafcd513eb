package schema

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	kyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/tags"
)

func compileSchema(t testing.TB, text []byte) *jsonschema.Schema {
	t.Helper()
	doc := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text))).In(t)
	c := jsonschema.NewCompiler()
	must.Do(t, c.AddResource("schema.json", doc))
	s := must.Get(c.Compile("schema.json")).In(t)
	return s
}

func instance(t testing.TB, text []byte) any {
	t.Helper()
	j := must.Get(kyaml.YAMLToJSON(text)).In(t)
	v := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(j))).In(t)
	return v
}

// completeFiles are configs with every key.
const completeFiles = "../../../testdata/complete/*.txtar"

// Every case without errors, the config with every field there is among them, is valid.
func TestSchemaAcceptsWhatLoadAccepts(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{config.Kind: compileSchema(t, Operator()),
		config.ConventionsKind: compileSchema(t, Conventions())}
	kind := regexp.MustCompile(`(?m)^kind: (\w+)`)
	names := must.Get(filepath.Glob("../load/testdata/*.txtar")).In(t)
	complete := must.Get(filepath.Glob(completeFiles)).In(t)
	checked := map[string]int{}
	for _, name := range append(names, complete...) {
		a := must.Get(txtar.ParseFile(name)).In(t)
		want := a.Files[len(a.Files)-1].Data
		complete := strings.HasSuffix(name, "/complete.txtar")
		// To Load null is as good as absent, as it is to kubectl; an editor should not propose it.
		nulls := strings.HasSuffix(name, "/null-is-absent.txtar")
		// What an operator gives itself hides what is wrong in the other file, but not from those who edit that.
		hidden := strings.HasSuffix(name, "/shared-own-win.txtar")
		if len(want) > 0 && !complete || nulls || hidden || strings.Contains(string(a.Comment), "set:") {
			continue
		}
		for _, f := range a.Files {
			m := kind.FindSubmatch(f.Data)
			if !strings.HasSuffix(f.Name, ".yaml") || m == nil || schemas[string(m[1])] == nil {
				continue
			}
			checked[string(m[1])]++
			if err := schemas[string(m[1])].Validate(instance(t, f.Data)); err != nil {
				t.Errorf("%s: %s: %v", name, f.Name, err)
			}
		}
	}
	if checked[config.Kind] < 20 || checked[config.ConventionsKind] < 3 {
		t.Errorf("only %v files were checked", checked)
	}
}

// The complete configs give every field, so that the test above says something about each.
func TestCompleteIsComplete(t *testing.T) {
	alternatives := []string{"watch.schema.spec", "watch.schema.types", "watch.schema.scope", "watch.schema.plural", "watch.schema.shortNames",
		"helpersFile", "conventions.hash.label", "conventions.previous.hash.annotation", "deletion.before.templateFile",
		"deletion.before.targetNamespaces.names", "downstreams.ready.failed.rule", "downstreams.ready.failed.message",
		"source.sqlite.path", "source.postgres.dsnFrom.env", "source.postgres.dsnFrom.file",
		"source.writeDSNFrom.env", "source.writeDSNFrom.file", "inputs.sql.sqlite.path", "inputs.sql.postgres.dsnFrom.env",
		"inputs.sql.postgres.dsnFrom.file",
		"source.mysql.dsnFrom.env", "source.mysql.dsnFrom.file", "inputs.sql.mysql.dsnFrom.env", "inputs.sql.mysql.dsnFrom.file"}
	given := map[string]bool{}
	var collect func(at string, v any)
	collect = func(at string, v any) {
		given[at] = true
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				collect(strings.TrimPrefix(at+"."+key, "."), value)
			}
		case []any:
			for _, item := range v {
				collect(at, item)
			}
		}
	}
	files := must.Get(filepath.Glob(completeFiles)).In(t)
	for _, name := range files {
		a := must.Get(txtar.ParseFile(name)).In(t)
		var values map[string]any
		must.Do(t, kyaml.Unmarshal(a.Files[0].Data, &values))
		collect("", values)
	}
	var walk func(at string, typ reflect.Type)
	above := map[reflect.Type]bool{}
	walk = func(at string, typ reflect.Type) {
		switch {
		case typ.Kind() == reflect.Pointer, typ.Kind() == reflect.Slice:
			walk(at, typ.Elem())
		case typ.Kind() == reflect.Struct && strings.HasPrefix(typ.PkgPath(), reflect.TypeFor[config.Operator]().PkgPath()):
			if above[typ] {
				return // a type that holds itself
			}
			above[typ] = true
			defer delete(above, typ)
			for _, name := range tags.Names(typ) {
				f, _ := tags.Named(typ, name)
				walk(strings.TrimPrefix(at+"."+name, "."), f.Type)
			}
		case given[at] == slices.Contains(alternatives, at):
			t.Errorf("%s: given is %v", at, given[at])
		}
	}
	walk("", reflect.TypeFor[config.Operator]())
}

func TestSchemaRefusesMistakes(t *testing.T) {
	s := compileSchema(t, Operator())
	a := must.Get(txtar.ParseFile("../../../testdata/complete/complete.txtar")).In(t)
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
		{"one delimiter", `delimiters: ["{{", "}}"]`, `delimiters: ["[["]`},
		{"a parameter that CEL cannot select", "registry: registry", "my-registry: registry"},
		{"two names for an input", "fixedName: pull", "fixedName: pull\n    objectName: self.x"},
		{"an input's namespace that is an expression", "namespace: platform  ", "namespace: self.spec.namespace  "},
		{"an input that may be missing or not", "missing: Wait", "missing: Maybe"},
		{"no manager to adopt from", "fieldManagers: [helm]", "fieldManagers: []"},
		{"a manager twice", "fieldManagers: [helm]", "fieldManagers: [helm, helm]"},
		{"a manager without a name", "fieldManagers: [helm]", `fieldManagers: [""]`},
		{"a key that is none for asking for a look", "tools.example.com/look", "a b"},
		{"two places for the hash before", "hash: {label: old.example.com/hash}", "hash: {label: a, annotation: b}"},
		{"an owner before without a key", "owner: {annotation: old.example.com/owner}", "owner: {}"},
		{"a finalizer before that is no key", "finalizer: old.example.com/cleanup", "finalizer: a b"},
		{"deletion.before without its end", "doneWhen: downstream", "messageFrom: downstream"},
		{"deletion.before without a document", `template: "…"`, "when: x"},
		{"a failure of deletion.before that proceeds or holds", "onFailure: Hold", "onFailure: Wait"},
		{"a timeout of deletion.before that proceeds or holds", "onTimeout: Hold", "onTimeout: Wait"},
		{"a guard below nothing", "minimum: 10", "minimum: -1"},
		{"a guard of more than all", "maxChanged: 20%", "maxChanged: 101%"},
		{"a confirmation without a key", ", key: appoperator}", "}"},
		{"a confirmation at a key that is none", "key: appoperator}", "key: a/b}"},
		{"a ConfigMap's name that is none", "configMap: confirmed", "configMap: Confirmed"},
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

// TestSchemaOfASharedHash: where the hash rides, the conventionsFile may say, of which this schema knows nothing.
func TestSchemaOfASharedHash(t *testing.T) {
	s := compileSchema(t, Operator())
	const text = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: app}
watch: {apiVersion: tools.example.com/v1, kind: App}
downstreams: [{name: config, apiVersion: v1, kind: ConfigMap, template: "metadata: {name: a}"}]
conventionsFile: conventions.yaml
conventions: {fieldManager: app, labels: {a: b}, hash: {algorithm: sha1}}
status: {enabled: false}
`
	if err := s.Validate(instance(t, []byte(text))); err != nil {
		t.Error(err)
	}
	if err := s.Validate(instance(t, []byte(strings.Replace(text, "conventionsFile: conventions.yaml\n", "", 1)))); err == nil {
		t.Error("nobody says where the hash rides, and that is valid")
	}
}

func TestConventionsSchemaRefusesMistakes(t *testing.T) {
	s := compileSchema(t, Conventions())
	const whole = `apiVersion: corollary.dev/v1alpha1
kind: Conventions
conventions:
  hash: {algorithm: sha1}
  pause: {annotation: tools.example.com/paused}
`
	if err := s.Validate(instance(t, []byte(whole))); err != nil {
		t.Errorf("the operators choose where the hash rides: %v", err)
	}
	for _, tc := range []struct{ reason, old, new string }{
		{"an operator", "kind: Conventions", "kind: Operator"},
		{"another version", "corollary.dev/v1alpha1", "corollary.dev/v1"},
		{"nothing that is shared", "conventions:", "convention:"},
		{"keys at the top, as in no other kind of file", "conventions:", "hash: {label: a}\nconventions:"},
		{"what only operators have", "conventions:", "mode: Observe\nconventions:"},
		{"an unknown field", "pause:", "paused:"},
		{"two places for the hash", "{algorithm: sha1}", "{annotation: a, label: b}"},
		{"a key that is none", "tools.example.com/paused", "a b"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if err := s.Validate(instance(t, []byte(strings.Replace(whole, tc.old, tc.new, 1)))); err == nil {
				t.Error("valid")
			}
		})
	}
}

// Every type and field has a description, and editors get them.
func TestSchemaDescribesEverything(t *testing.T) {
	describesEverything(t, Operator(), 15)
	describesEverything(t, Conventions(), 7)
	describesEverything(t, Conversion(), 6)
	describesEverything(t, Activation(), 2)
}

func describesEverything(t *testing.T, schema []byte, least int) {
	t.Helper()
	var doc map[string]any
	must.Do(t, json.Unmarshal(schema, &doc))
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
	check("the file", doc)
	defs, _ := doc["$defs"].(map[string]any)
	for name, d := range defs {
		def, _ := d.(map[string]any)
		check(name, def)
	}
	if len(defs) < least {
		t.Errorf("only %d definitions", len(defs))
	}
}

func TestSchemaGolden(t *testing.T) {
	golden.File(t, "testdata/schema.json", Operator())
	golden.File(t, "testdata/conventions.schema.json", Conventions())
	golden.File(t, "testdata/conversion.schema.json", Conversion())
	golden.File(t, "testdata/activation.schema.json", Activation())
}
