//go:build controlplane

package charts

import (
	"os"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestDefinitionKeepsFields: an upgrade that would remove fields from the spec of a kind fails before anything is written.
func TestDefinitionKeepsFields(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
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
		return generatedValues(t, config)
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
	for reason, replaced := range map[string][2]string{
		"version v2 would lose .spec.title,": {"name: v1\n", "name: v2\n"},
		" .spec.any.b.*": {"any: {type: object,",
			"any: {type: object, properties: {b: {type: object, properties: {d: {type: string}}}},"},
		"Helm would delete it with the release": {"helm.sh/resource-policy: keep", "helm.sh/another: keep"},
	} {
		text, err := os.ReadFile(strings.TrimPrefix(values(strings.Replace(before, "title", "name", 1)), "--values="))
		if err != nil || !strings.Contains(string(text), replaced[0]) {
			t.Fatal(err, string(text))
		}
		other := write(t, "other.yaml", strings.Replace(string(text), replaced[0], replaced[1], 1))
		problems, err := run("upgrade", "--values="+other, "--dry-run=server")
		if err == nil || !strings.Contains(problems, reason) {
			t.Errorf("%s: %v: %s", reason, err, problems)
		}
	}
	if problems, err := run("upgrade", values(strings.Replace(before, "title", "name", 1)), "--set=crds.force=true"); err != nil {
		t.Error(problems)
	}
}
