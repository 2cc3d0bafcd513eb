package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

const thingCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                on: {type: boolean}
                size: {type: integer}
                name: {type: string}
                either: {x-kubernetes-int-or-string: true}
                list: {type: array, items: {type: object, properties: {port: {type: integer}}}}
`

func TestWarningsOfTexts(t *testing.T) {
	for _, row := range []struct{ reason, spec, want string }{
		{"a whole hole keeps its type", "size: {{ .spec.x }}", ""},
		{"text beside a hole makes text", "size: 80{{ .spec.x }}", "operator.yaml:11: downstreams[0].template: .spec.size wants an integer, and {{ .spec.x }} gives text"},
		{"so do quotes", `size: "{{ .spec.x }}"`, ".spec.size wants an integer"},
		{"so does printf", `size: {{ printf "%d" 1 }}`, ".spec.size wants an integer"},
		{"int mends it", `size: {{ printf "%d" 1 | int }}`, ""},
		{"in a list", "list: [{port: 80{{ .spec.x }}}]", ".spec.list[].port wants an integer"},
		{"a boolean", `"on": "{{ .spec.x }}"`, "wants a boolean"},
		{"text where text is wanted", "name: a-{{ .spec.x }}", ""},
		{"either", "either: 80{{ .spec.x }}", ""},
		{"a field that the schema does not know", "nope: 80{{ .spec.x }}", ""},
	} {
		dir := t.TempDir()
		conf := strings.Replace(typedConfig, "SPEC", row.spec, 1)
		write(t, filepath.Join(dir, "operator.yaml"), conf)
		write(t, filepath.Join(dir, "crd.yaml"), strings.Replace(thingCRD, " on:", ` "on":`, 1))
		source, err := kinds.Offline(filepath.Join(dir, "crd.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		files, errs := config.Load(config.Options{Files: []string{filepath.Join(dir, "operator.yaml")}})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		p, errs, err := pipeline.Compile(files[0], pipeline.Options{Kinds: source})
		if err != nil || len(errs) > 0 {
			t.Fatalf("%s: %v %v", row.reason, errs, err)
		}
		var got []string
		for i := range p.Warnings {
			got = append(got, strings.ReplaceAll(p.Warnings[i].Error(), dir+"/", ""))
		}
		text := strings.Join(got, "\n")
		if (row.want == "") != (text == "") || !strings.Contains(text, row.want) {
			t.Errorf("%s: got %q, want …%s…", row.reason, text, row.want)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const typedConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: thing}
watch: {apiVersion: v1, kind: ConfigMap, namespaces: [apps]}
downstreams:
  - name: thing
    apiVersion: example.com/v1
    kind: Thing
    template: |
      metadata: {name: web}
      spec: { SPEC }
conventions:
  fieldManager: thing
  labels: {tools.example.com/managed-by: thing}
  hash: {annotation: tools.example.com/hash}
  owner: {reference: true}
status: {enabled: false}
`
