//go:build controlplane

package charts

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/cli"
)

// generatedValues is the argument of helm with what generate chart-values writes for a config.
func generatedValues(t *testing.T, config string) string {
	t.Helper()
	var values, errs bytes.Buffer
	if code := cli.Main([]string{"generate", "chart-values", "-c", config},
		cli.IO{In: strings.NewReader(""), Out: &values, Err: &errs, Env: os.Environ()}); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, &errs)
	}
	return "--values=" + write(t, "values.yaml", values.String())
}

// TestDefinitions: the chart installs the definitions of described kinds by default, and Helm leaves them. Nobody gets
// rights to them, and those to their objects are for the resource that the config names.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	config := write(t, "spaces.yaml", `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: spaces}
watch:
  apiVersion: tools.example.com/v1
  kind: Space
  schema: {scope: Cluster, plural: roomy, spec: {title: string, size: integer | default=9007199254740993}}
downstreams:
  - {name: place, apiVersion: v1, kind: Namespace, template: "metadata: {name: x, labels: {title: '{{ .spec.title }}{{ .spec.size }}'}}"}
conventions:
  fieldManager: spaces
  labels: {tools.example.com/managed-by: spaces}
  hash: {annotation: tools.example.com/hash}
status: {conditions: {ready: Ready}}
`)
	given := generatedValues(t, config)
	definitions := func(manifest string) (names []string) {
		for _, o := range objects(t, manifest) {
			if o.GetKind() == "CustomResourceDefinition" {
				names = append(names, o.GetName())
				if keep := o.GetAnnotations()["helm.sh/resource-policy"]; keep != "keep" {
					t.Errorf("%s has the policy %q", o.GetName(), keep)
				}
			}
		}
		return names
	}
	manifest := render(t, image, given)
	if names := definitions(
		manifest,
	); !slices.Equal(names, []string{"roomy.tools.example.com"}) ||
		!strings.Contains(manifest, "default: 9007199254740993") {
		t.Errorf("the definitions are %v", names)
	}
	if names := definitions(render(t, image, given, "--set=crds.install=false")); len(names) > 0 {
		t.Errorf("%v are installed nevertheless", names)
	}
	for reason, args := range map[string][]string{"values": {given}, "the file alone": {"--set-file=operatorFiles.spaces=" + config}} {
		found := false
		for _, g := range grants(t, render(t, append([]string{image}, args...)...)) {
			found = found || g.resource == "roomy" && g.verb == "list" && g.namespace == ""
			if g.resource == "customresourcedefinitions" || g.resource == "spaces" {
				t.Errorf("%s: %s", reason, g)
			}
		}
		if !found {
			t.Errorf("%s: no right to list the upstreams", reason)
		}
	}
}

// TestDefinitionKeepsFields: an upgrade that would remove fields of a kind, other than of its status, fails before
// anything is written.
func TestDefinitionKeepsFields(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	const template = "template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}"
	values := func(schema string) string {
		config := write(t, "spaces.yaml", `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: spaces}
watch:
  apiVersion: `+name+`.example.com/v1
  kind: Room
  schema: `+schema+`
downstreams:
  - {name: place, apiVersion: v1, kind: ConfigMap, template: "metadata: {name: x}"}
conventions:
  fieldManager: spaces
  labels: {tools.example.com/managed-by: spaces}
  hash: {annotation: tools.example.com/hash}
status: {conditions: {ready: Ready}}
`)
		const spec = "\n                  spec:\n"
		return replaced(t, generatedValues(t, config), spec, "\n                  "+template+spec)
	}
	run := func(verb string, args ...string) (problems string, err error) {
		args = append([]string{verb, name, chart, image, "--kubeconfig=" + testkit.Kubeconfig(t), "--namespace=" + ns}, args...)
		_, problems, err = helm(t, args...)
		return problems, err
	}
	before := `{spec: {title: string, ports: {http: Part, admin: Part}, parts: "[]Part", sizes: "map[string]Part", any: object, all: "[]object", tags: "map[string]string"}, types: {Part: {a: string, b: string}}}`
	if problems, err := run("install", values(before)); err != nil {
		t.Fatal(problems)
	}
	for _, row := range []struct{ reason, schema, lost string }{
		{"a field is renamed", strings.Replace(before, "title", "name", 1), " .spec.title,"},
		{"in the items of a list and the values of a map", strings.Replace(before, ", b: string", "", 1),
			" .spec.parts[].b .spec.ports.admin.b .spec.ports.http.b .spec.sizes.*.b,"},
		{"what had any field gets a structure", strings.NewReplacer("any: object", "any: {a: string}", `"[]object"`, `"[]Part"`).Replace(before), " .spec.all[].* .spec.any.*,"},
		{"a map gets a structure", strings.Replace(before, `"map[string]string"`, "{team: string}", 1), " .spec.tags.*,"},
		{"a structure becomes a map of less", strings.NewReplacer("{http: Part, admin: Part}", `"map[string]Less"`, "types: {", "types: {Less: {a: string}, ").Replace(before),
			" .spec.ports.admin.b .spec.ports.http.b,"},
		{"a structure becomes a map", strings.Replace(before, "{http: Part, admin: Part}", `"map[string]Part"`, 1), ""},
		{"a list becomes a map", strings.Replace(before, `"[]Part"`, `"map[string]Part"`, 1), " .spec.parts,"},
		{"a field is added", strings.Replace(before, "title: string", "title: string, more: string", 1), ""},
	} {
		problems, err := run("upgrade", values(row.schema), "--dry-run=server")
		if (err != nil) != (row.lost != "") || !strings.Contains(problems, row.lost) {
			t.Errorf("%s: %v: %s", row.reason, err, problems)
		}
	}
	for reason, change := range map[string][2]string{
		"version v2 would lose .spec.title,": {"name: v1\n", "name: v2\n"},
		" .spec.any.b.*": {"any: {type: object,",
			"any: {type: object, properties: {b: {type: object, properties: {d: {type: string}}}},"},
		" .spec.any.b[].*": {"any: {type: object,",
			"any: {type: object, properties: {b: {type: array, items: {type: object, properties: {d: {type: string}}}}},"},
		" .template.apiVersion .template.kind .template.metadata,": {"x-kubernetes-embedded-resource: true, ", ""},
		" .spec.title .template,":                                  {template, ""},
		"Helm would delete it with the release":                    {"helm.sh/resource-policy: keep", "helm.sh/another: keep"},
	} {
		other := replaced(t, values(strings.Replace(before, "title", "name", 1)), change[0], change[1])
		problems, err := run("upgrade", other, "--dry-run=server")
		if err == nil || !strings.Contains(problems, reason) {
			t.Errorf("%s: %v: %s", reason, err, problems)
		}
	}
	if problems, err := run("upgrade", values(strings.Replace(before, "title", "name", 1)), "--set=crds.force=true"); err != nil {
		t.Error(problems)
	}
}

// replaced is an argument of Helm with the values of another one, in which a text is replaced.
func replaced(t *testing.T, values, old, now string) string {
	t.Helper()
	text, err := os.ReadFile(strings.TrimPrefix(values, "--values="))
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatal(err, string(text))
	}
	return "--values=" + write(t, "other.yaml", strings.Replace(string(text), old, now, 1))
}
