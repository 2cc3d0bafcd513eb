//go:build controlplane

package charts

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// derived are the rights that the command derives.
func derived(t *testing.T, g *generate.RBAC, err error) (list []grant) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range g.Grants {
		for _, rule := range g.Rules {
			user := "system:serviceaccount:" + strings.Replace(g.To.String(), "/", ":", 1)
			policy := rbacv1.PolicyRule{APIGroups: []string{rule.Group}, Resources: []string{rule.Resource}, ResourceNames: rule.Names,
				Verbs: rule.Verbs}
			list = append(list, each(policy, grant{user: user, namespace: g.Namespace})...)
		}
	}
	return list
}

// TestRights holds what the chart grants for configs to what the command derives from them, for every example and for
// the configs that the derivation itself is tested by.
func TestRights(t *testing.T) {
	compareRights(t, rightsCases(t))
}

// compareRights has helm render the rights of all cases at once, and compares those of each with what the command
// derives.
func compareRights(t *testing.T, cases map[string]rightsCase) {
	t.Helper()
	want, values := map[string][]grant{}, map[string]any{}
	for name, c := range cases {
		want[name], values[name] = c.derive(t)
	}
	got := renderCases(t, withCases(t), values)
	failed := 0
	for _, name := range slices.Sorted(maps.Keys(got)) {
		diff := gocmp.Diff(inWords(want[name]), inWords(got[name]))
		if diff == "" {
			continue
		}
		if failed++; failed <= 5 {
			t.Errorf("%s: the chart grants other rights than corollary generate rbac prints (- command, + chart):\n%s\n%v", name, diff, values[name])
		}
	}
	if failed > 5 {
		t.Errorf("and so for %d more configs", failed-5)
	}
}

// derive is what the command derives, and the values of the chart for the same.
func (c rightsCase) derive(t *testing.T) ([]grant, map[string]any) {
	t.Helper()
	source := must.Get(kinds.Offline(c.crds...)).In(t)
	var files []*load.File
	var problems config.Errors
	if len(c.configs) > 0 {
		files, problems = load.Operators(load.Options{Files: c.configs})
	}
	conversions, more := load.Conversions(load.Options{Files: append(c.configs, c.conversions...)}, files)
	if problems = append(problems, more...); len(problems) > 0 {
		t.Fatalf("loading:\n%v", problems)
	}
	source = compile.WithDescribed(files, source)
	run, err := generate.Rights(files, generate.RBACOptions{
		Kinds: source, Process: generate.Identity{Namespace: "system", Name: "process"}, Lease: "lead", Shards: c.values["shards"] != nil,
		Conversions: conversions, Secret: cmp.Or(c.secret, "process-webhook"), SecretReadOnly: c.certificate != nil,
	})
	want := derived(t, run, err)
	release, err := generate.ReleaseRights(files, generate.RBACOptions{
		Kinds: source, Process: generate.Identity{Namespace: "system", Name: "releaser"},
	})
	want = append(want, derived(t, release, err)...)
	values, _, err := generate.ChartValues(generate.ChartOptions{Operators: files, Conversions: conversions, Read: os.ReadFile, Kinds: source})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.crds) == 0 {
		delete(values, "kinds") // what configs say of kinds the chart reads itself
	}
	maps.Copy(values, c.values)
	if c.certificate != nil {
		values["conversion"].(map[string]any)["certificate"] = c.certificate
	}
	return want, values
}

// TestRightsOfValues: an operator that is in the values is given the same as one whose file does.
func TestRightsOfValues(t *testing.T) {
	config := text(t, "../examples/configs/configmap-copy/operator.yaml")
	var operator map[string]any
	must.Do(t, yaml.Unmarshal([]byte(config), &operator))
	file := renderRights(t, map[string]any{"operatorFiles": map[string]any{"copy": config}})
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(operator, key)
	}
	value := renderRights(t, map[string]any{"operators": map[string]any{"configmap-copy": operator}})
	if diff := gocmp.Diff(string(file), string(value)); diff != "" {
		t.Error(diff)
	}
	none := renderRights(t, map[string]any{"operatorFiles": map[string]any{"copy": config}}, "--set", "rbac.create=false")
	if bytes.Contains(none, []byte("corollary-configmap-copy")) {
		t.Errorf("rbac.create is false, and there is\n%s", none)
	}
}

// rightsCase are configs, the definitions of their kinds, and what the rights depend on besides.
type rightsCase struct {
	configs, conversions, crds []string
	values                     map[string]any // of the chart
	certificate                map[string]any // the value conversion.certificate
	secret                     string         // of the webhook
}

func rightsCases(t *testing.T) map[string]rightsCase {
	t.Helper()
	cases := map[string]rightsCase{}
	examples, err := filepath.Glob("../examples/[cs]*/*/operator*")
	if err != nil || len(examples) < 10 {
		t.Fatalf("found %d examples: %v", len(examples), err)
	}
	for _, path := range examples {
		dir := filepath.Dir(path)
		c := rightsCase{configs: []string{path}, crds: existing(filepath.Join(dir, "crd.yaml"))}
		cases["example "+strings.TrimPrefix(dir, "../examples/")] = c
	}
	cases["shards"] = rightsCase{configs: []string{"../examples/configs/configmap-copy/operator.yaml"}, values: map[string]any{"shards": 16}}
	archives, err := filepath.Glob("../testdata/rights/*.txtar")
	if err != nil || len(archives) < 15 {
		t.Fatalf("found %d made-up configs: %v", len(archives), err)
	}
	for _, path := range archives {
		cases[strings.TrimSuffix(filepath.Base(path), ".txtar")] = madeUp(t, path)
	}
	return cases
}

func existing(path string) []string {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{path}
}

// madeUp unpacks a case of the derivation's test.
func madeUp(t *testing.T, path string) (c rightsCase) {
	t.Helper()
	archive := must.Get(txtar.ParseFile(path)).In(t)
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, f.Name)
		must.Do(t, os.WriteFile(path, f.Data, 0o600))
		switch {
		case f.Name == "crds.yaml":
			c.crds = append(c.crds, path)
		case bytes.Contains(f.Data, []byte("\nkind: Operator\n")):
			c.configs = append(c.configs, path)
		}
	}
	return c
}

// caseRights prints the roles of each case, with those to release, which the chart has in a hook.
const caseRights = `{{ range $name, $values := .Values.cases }}
{{ $root := dict "Values" (merge (dict) $values (omit $.Values "cases")) "Release" $.Release "Chart" $.Chart "Files" $.Files }}
{{ $more := dict "case" $name }}
{{ range include "corollary.rights" $root | fromJson }}
{{ include "corollary.role" (dict "root" $root "role" . "name" "process" "annotations" $more) }}
{{ end }}
{{ range include "corollary.releaseRights" (dict "root" $root "to" "system/releaser") | fromJson }}
{{ include "corollary.role" (dict "root" $root "role" . "name" "release" "annotations" $more) }}
{{ end }}
{{ end }}`

// withCases copies the chart and has it render nothing but the rights of cases.
func withCases(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS(chart)))
	manifests := must.Get(filepath.Glob(filepath.Join(dir, "templates", "[^_]*"))).In(t)
	for _, path := range manifests {
		must.Do(t, os.Remove(path))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "templates", "rbac.yaml"), []byte(caseRights), 0o600))
	return dir
}

// renderCases returns the rights of each case. If the chart refuses the cases, it finds the first that it refuses.
func renderCases(t *testing.T, dir string, cases map[string]any) map[string][]grant {
	t.Helper()
	values := valuesOf(t, map[string]any{
		"cases": cases, "fullnameOverride": "process", "serviceAccount": map[string]any{"name": "process"},
		"leaderElection": map[string]any{"id": "lead"},
	})
	stdout, stderr, err := helm(t, "template", "corollary", dir, "--namespace=system", "--skip-schema-validation", values)
	if err == nil {
		return grantedByCase(t, stdout)
	}
	names := slices.Sorted(maps.Keys(cases))
	if len(names) == 1 {
		t.Fatalf("%s: the chart refuses it: %v: %s\n%v", names[0], err, stderr, cases)
	}
	got := map[string][]grant{}
	for half := range slices.Chunk(names, (len(names)+1)/2) {
		some := map[string]any{}
		for _, name := range half {
			some[name] = cases[name]
		}
		maps.Copy(got, renderCases(t, dir, some))
	}
	return got
}

// grantedByCase is what the roles of each case grant. Each role is bound once, and there are no wildcards.
func grantedByCase(t *testing.T, text string) map[string][]grant {
	t.Helper()
	if strings.Contains(text, "*") {
		t.Errorf("there is a wildcard:\n%s", text)
	}
	manifests := map[string][]*unstructured.Unstructured{}
	for _, o := range objects(t, text) {
		name := o.GetAnnotations()["case"]
		manifests[name] = append(manifests[name], o)
	}
	got := map[string][]grant{}
	for name, list := range manifests {
		got[name] = grantsOf(t, list)
		if bound := len(slices.DeleteFunc(slices.Clone(list), isRole)); 2*bound != len(list) {
			t.Errorf("%s: %d objects, of which %d bind roles", name, len(list), bound)
		}
	}
	return got
}

// renderRights has helm render the roles and bindings for values, under the names that the other side uses.
func renderRights(t *testing.T, values map[string]any, more ...string) []byte {
	t.Helper()
	values["image"] = map[string]any{"repository": "registry.example.com/corollary"}
	values["serviceAccount"] = map[string]any{"name": "process"}
	values["leaderElection"] = map[string]any{"id": "lead"}
	args := append([]string{"template", "corollary", chart, "--namespace=system", valuesOf(t, values)}, more...)
	if len(more) == 0 {
		args = append(args, "--show-only=templates/rbac.yaml")
	}
	stdout, stderr, err := helm(t, args...)
	if err != nil {
		t.Fatalf("%v: %s\n%v", err, stderr, values)
	}
	return []byte(stdout)
}
