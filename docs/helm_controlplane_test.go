//go:build controlplane

package docs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/tools"
	"github.com/corollary-dev/corollary/pkg/cli"
)

// greeter is the custom resource, and the values of the chart.
const greeter = `apiVersion: tools.example.com/v1
kind: Greeter
metadata: {name: greeter, namespace: default}
spec: {answer: "no", version: "1.10", zero: 0, text: hi, five: "5", map: {b: "2", a: "1"}, other: {a: "1"}, tpl: "{{ 1 }}", yaml: "a: 1"}
`

// failed means an error, with a part of its text.
type failed string

// comparisons are rows of the table in templates.md: what helm makes of a template, and what we do.
var comparisons = []struct {
	row, template string
	helm, ours    any
}{
	{"a value that looks like YAML", `v: {{ .spec.answer }}`, false, "no"},
	{"a value that looks like YAML", `v: {{ .spec.version }}`, 1.1, "1.10"},
	{"`{{ .missing }}`", `v: {{ .spec.missing }}`, nil, failed("missing")},
	{"`default 1` of `0` or `false`", `v: {{ .spec.zero | default 1 }}`, 1.0, 0.0},
	{"`{{ .x \\| quote }}` as a whole value", `v: {{ .spec.answer | quote }}`, "no", "no"},
	{"`{{ .x \\| toJson }}` as a whole value", `v: {{ .spec.map | toJson }}`, map[string]any{"a": "1", "b": "2"},
		map[string]any{"a": "1", "b": "2"}},
	{"`toYaml … \\| nindent N` at the end of a pipeline", `v: {{ toYaml .spec.map | nindent 4 }}`, map[string]any{"a": "1", "b": "2"},
		map[string]any{"a": "1", "b": "2"}},
	{"`{{ printf \"%d\" .x }}` as a whole value", `v: {{ printf "%d" (int .spec.five) }}`, 5.0, "5"},
	{"`{{ printf \"%q\" .x }}` as a whole value", `v: {{ printf "%q" .spec.text }}`, "hi", failed("quote")},
	{"a map or list inside text", `v: "a {{ .spec.map }}"`, "a map[a:1 b:2]", failed("toJson")},
	{"a duplicate key", "v: 1\n{{ print \"v\" }}: 2", 2.0, failed("v")},
	{"`tpl`", `v: {{ tpl .spec.tpl . }}`, 1.0, failed("tpl")},
	{"`lookup`, `fromYaml`, `getHostByName`", `v: {{ (fromYaml .spec.yaml).a }}`, 1.0, failed("fromYaml")},
	{"`now`, `date…`, `rand…`, `uuidv4`, `gen…`, `shuffle`, `bcrypt`, `htpasswd`", `v: {{ randAlpha 0 }}`, nil, failed("randAlpha")},
	{"`keys`, `values`", `v: {{ keys .spec.map | sortAlpha | toJson }}`, []any{"a", "b"}, []any{"a", "b"}},
	{"`set`, `unset`, `merge…`", `{{ $d := set .spec.other "a" "9" }}v: {{ .spec.other.a }}`, 9.0, "1"},
	{"the merge key `<<`", "v: {<<: {a: 1}}", map[string]any{"a": 1.0}, failed("merge")},
}

// TestComparedWithHelm runs rows of the table through helm and through our own rendering.
func TestComparedWithHelm(t *testing.T) {
	page, dir := read(t, "templates.md"), t.TempDir()
	save(t, filepath.Join(dir, "cr.yaml"), greeter)
	save(t, filepath.Join(dir, "chart/Chart.yaml"), "{apiVersion: v2, name: pasted, version: 1.0.0}")
	for i, c := range comparisons {
		if !strings.Contains(page, "\n| "+c.row+" |") {
			t.Errorf("templates.md has no row %s", c.row)
		}
		save(t, filepath.Join(dir, fmt.Sprintf("chart/templates/t%02d.yaml", i)), strings.ReplaceAll(c.template, ".spec", ".Values.spec"))
	}
	printed := must.Get(exec.Command(tools.Path(t, "helm"), "template", "pasted", filepath.Join(dir, "chart"), "--values",
		filepath.Join(dir, "cr.yaml")).Output()).In(t)
	for i, c := range comparisons {
		_, rest, _ := strings.Cut(string(printed), fmt.Sprintf("templates/t%02d.yaml\n", i))
		text, _, _ := strings.Cut(rest, "\n---")
		if got := value(text); !reflect.DeepEqual(got, c.helm) {
			t.Errorf("%s: helm makes %#v of %q, not %#v", c.row, got, c.template, c.helm)
		}
		if got, errors := ours(t, dir, c.template); !reflect.DeepEqual(got, c.ours) {
			if want, ok := c.ours.(failed); !ok || got != nil || !strings.Contains(errors, string(want)) {
				t.Errorf("%s: we make %#v of %q (%s), not %#v", c.row, got, c.template, errors, c.ours)
			}
		}
	}
}

// ours renders a template as our own command does; without a value there are errors.
func ours(t *testing.T, dir, template string) (any, string) {
	t.Helper()
	config := filepath.Join(dir, "operator.yaml")
	save(t, filepath.Join(dir, "template.yaml"), "metadata: {name: x}\nspec:\n  "+strings.ReplaceAll(template, "\n", "\n  ")+"\n")
	save(t, config, `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: greeter}
watch: {apiVersion: tools.example.com/v1, kind: Greeter}
downstreams: [{name: thing, apiVersion: tools.example.com/v1, kind: Thing, templateFile: template.yaml}]
conventions: {fieldManager: greeter, labels: {tools.example.com/managed-by: greeter}, hash: {annotation: tools.example.com/hash}}
status: {conditions: {ready: Ready}}
`)
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"render", "-c", config, "-f", filepath.Join(dir, "cr.yaml")}, cli.IO{In: strings.NewReader(""), Out: &out,
		Err: &errs}); code != 0 {
		return nil, errs.String()
	}
	_, spec, _ := strings.Cut(out.String(), "\nspec:\n")
	return value(strings.ReplaceAll(spec, "\n  ", "\n")[min(2, len(spec)):]), errs.String()
}

// value returns what a YAML text says under v.
func value(text string) any {
	var document struct {
		V any `json:"v"`
	}
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return err.Error()
	}
	return document.V
}

func save(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}
