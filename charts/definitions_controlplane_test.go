//go:build controlplane

package charts

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

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

// TestDefinitions: the chart installs the definitions of described kinds by default, and Helm leaves them. Nobody gets rights to
// them, and those to their objects are for the resource that the config names.
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
