package compile_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// typedCRDs define an upstream App and a downstream Thing.
const typedCRDs = "testdata/typed/crds.yaml"

// typedConfig is a config with one downstream, whose template begins in line 10.
const typedConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: app}
watch: {apiVersion: example.com/v1, kind: App}
downstreams:
  - name: it
    apiVersion: %s
    kind: %s
    template: |
%s
conventions:
  fieldManager: app
  labels: {tools.example.com/managed-by: app}
  hash: {annotation: tools.example.com/hash}
  owner: {reference: true}
status:
  conditions: {ready: Ready}
  fields: [%s]
`

// checked are the refusals and warnings of a config, each as LINE: problem: fix, one in a line.
func checked(t *testing.T, apiVersion, kind, template, fields string) string {
	t.Helper()
	source := must.Get(kinds.Offline(typedCRDs)).In(t)
	p := compileTyped(t, source, apiVersion, kind, template, fields)
	var lines []string
	for i := range p.Refusals {
		lines = append(lines, p.Refusals[i].Error())
	}
	for i := range p.Warnings {
		lines = append(lines, "warning: "+p.Warnings[i].Error())
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.Join(lines, "\n"), p.Config.Metadata.Name+".yaml:", ""), " downstreams[0].template:", "")
}

func compileTyped(t *testing.T, source kinds.Source, apiVersion, kind, template, fields string) *compile.Pipeline {
	t.Helper()
	t.Chdir(t.TempDir()) // so that errors name the file alone
	indented := "      " + strings.ReplaceAll(strings.TrimRight(template, "\n"), "\n", "\n      ")
	write(t, "app.yaml", fmt.Sprintf(typedConfig, apiVersion, kind, indented, fields))
	files, errs := load.Operators(load.Options{Files: []string{"app.yaml"}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	p, errs, err := compile.One(files[0], compile.Options{Kinds: source})
	if err != nil || len(errs) > 0 {
		t.Fatalf("%v %v", errs, err)
	}
	return p
}

// TestTypes: what a template has wrong by the schema of a Thing. Its spec is one in testdata/typed/things.txt.
func TestTypes(t *testing.T) {
	golden.Table(t, "testdata/typed/things.txt", func(t *testing.T, spec string) string {
		return cmp.Or(checked(t, "example.com/v1", "Thing", thing(spec), ""), "fits")
	})
}

// thing is a template of a Thing, whose spec begins in the line 11 of the config.
func thing(spec string) string {
	if strings.HasPrefix(spec, "{{ $x") {
		spec += ", must: x"
	} else if !strings.Contains(strings.ToLower(spec), "must:") {
		spec = "must: x, " + spec
	}
	return "metadata: {name: web}\nspec: { " + spec + " }"
}

// TestTypesOfBuiltinKinds: what a template of a Deployment has wrong, without a cluster.
func TestTypesOfBuiltinKinds(t *testing.T) {
	golden.Table(t, "testdata/typed/deployments.txt", func(t *testing.T, fields string) string {
		return cmp.Or(checked(t, "apps/v1", "Deployment", deployment(fields), ""), "fits")
	})
	// Not among what the API server refuses: it cuts the number down.
	want := "12: .spec.replicas holds whole numbers from -2147483648 to 2147483647, not the integer 4294967297: give a number that it holds"
	must.Same(t, want, checked(t, "apps/v1", "Deployment", deployment("  replicas: 4294967297"), ""), "a number that is too large")
}

// TestTypesOfCharts: nothing is said of templates as charts have them, which use all that the language has.
func TestTypesOfCharts(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/typed/charts.txtar")
	if err != nil || len(archive.Files) < 5 {
		t.Fatalf("%d templates: %v", len(archive.Files), err)
	}
	for _, f := range archive.Files {
		apiVersion, kind, _ := strings.Cut(f.Name, " ")
		t.Run(kind, func(t *testing.T) {
			must.Same(t, "", checked(t, apiVersion, kind, string(f.Data), ""))
		})
	}
}

// deployment is a template with more fields of the spec, at the line 12 of the config, and, after "pod:", of its pods,
// at the line 22.
func deployment(fields string) string {
	spec, pod, _ := strings.Cut("\n"+fields, "\npod:\n")
	if spec = strings.TrimPrefix(spec, "\n"); spec == "" {
		spec = "  # nothing"
	}
	return "metadata: {name: web}\nspec:\n" + spec + `
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: web
        image: web
      ` + strings.ReplaceAll(pod, "\n", "\n      ")
}

// TestTypesOfStatus: paths and values of status.fields.
func TestTypesOfStatus(t *testing.T) {
	golden.Table(t, "testdata/typed/status.txt", func(t *testing.T, fields string) string {
		return cmp.Or(checked(t, "apps/v1", "Deployment", deployment(""), fields), "fits")
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
}
