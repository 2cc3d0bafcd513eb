//go:build controlplane

package charts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// rights are single permissions: whose, where, on what, to do what.
type rights map[string]bool

func (r rights) add(to, namespace string, rules ...rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
						r[fmt.Sprintf("%s in %q: %s %s.%s %s", to, namespace, verb, resource, group, name)] = true
					}
				}
			}
		}
	}
}

// derived adds what the command derives.
func (r rights) derived(t *testing.T, g *generate.RBAC, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range g.Grants {
		for _, rule := range g.Rules {
			r.add(g.To.String(), g.Namespace, rule.PolicyRule())
		}
	}
}

// TestRights holds what the chart grants for configs to what the command derives from them, for every example and for the
// configs that the derivation itself is tested by.
func TestRights(t *testing.T) {
	dir := withReleaseRights(t)
	for name, c := range rightsCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t, dir, 0)
		})
	}
}

// TestRightsOfShards is TestRights for processes that share shards.
func TestRightsOfShards(t *testing.T) {
	rightsCase{configs: []string{"../examples/configs/configmap-copy/operator.yaml"}}.check(t, withReleaseRights(t), 16)
}

// check compares what the chart grants with what the command derives.
func (c rightsCase) check(t *testing.T, dir string, shards int) {
	t.Helper()
	source, err := kinds.Offline(c.crds...)
	if err != nil {
		t.Fatal(err)
	}
	files, problems := config.Load(config.Options{Files: c.configs})
	if len(problems) > 0 {
		t.Fatalf("loading:\n%v", problems)
	}
	want := rights{}
	run, err := generate.Rights(files, generate.RBACOptions{
		Kinds: source, Process: generate.Identity{Namespace: "system", Name: "process"}, Lease: "lead", Shards: shards > 0,
	})
	want.derived(t, run, err)
	release, err := generate.ReleaseRights(files, generate.RBACOptions{
		Kinds: source, Process: generate.Identity{Namespace: "system", Name: "releaser"},
	})
	want.derived(t, release, err)
	values, err := generate.ChartValues(files, os.ReadFile, source, nil)
	if err != nil {
		t.Fatal(err)
	}
	values["shards"] = shards
	got := granted(t, renderRights(t, dir, values))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("the chart grants other rights than corollary generate rbac prints (- command, + chart):\n%s", diff)
	}
}

// TestRightsOfValues: an operator that is in the values is given the same as one whose file does.
func TestRightsOfValues(t *testing.T) {
	text, err := os.ReadFile("../examples/configs/configmap-copy/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var operator map[string]any
	if err := yaml.Unmarshal(text, &operator); err != nil {
		t.Fatal(err)
	}
	file := renderRights(t, chart, map[string]any{"operatorFiles": map[string]any{"copy": string(text)}})
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(operator, key)
	}
	value := renderRights(t, chart, map[string]any{"operators": map[string]any{"configmap-copy": operator}})
	if diff := cmp.Diff(string(file), string(value)); diff != "" {
		t.Error(diff)
	}
	none := renderRights(t, chart, map[string]any{"operatorFiles": map[string]any{"copy": string(text)}}, "--set", "rbac.create=false")
	if bytes.Contains(none, []byte("corollary-configmap-copy")) {
		t.Errorf("rbac.create is false, and there is\n%s", none)
	}
}

// rightsCase are configs and the definitions of their kinds.
type rightsCase struct{ configs, crds []string }

func rightsCases(t *testing.T) map[string]rightsCase {
	t.Helper()
	cases := map[string]rightsCase{}
	examples, err := filepath.Glob("../examples/configs/*/rbac.yaml")
	if err != nil || len(examples) < 10 {
		t.Fatalf("found %d examples: %v", len(examples), err)
	}
	for _, path := range examples {
		var c rightsCase
		dir := filepath.Dir(path)
		for _, name := range []string{"operator.yaml", "operators"} {
			c.configs = append(c.configs, existing(filepath.Join(dir, name))...)
		}
		c.crds = existing(filepath.Join(dir, "crd.yaml"))
		cases["example "+filepath.Base(dir)] = c
	}
	archives, err := filepath.Glob("../pkg/generate/testdata/rights/*.txtar")
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
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		switch {
		case f.Name == "crds.yaml":
			c.crds = append(c.crds, path)
		case bytes.Contains(f.Data, []byte("\nkind: Operator\n")):
			c.configs = append(c.configs, path)
		}
	}
	return c
}

// withReleaseRights copies the chart and adds the rights to release, which the chart has in a hook.
func withReleaseRights(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "templates", "rbac.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, `{{ range include "corollary.releaseRights" (dict "root" . "to" "system/releaser") | fromJson }}`+
		`{{ include "corollary.role" (dict "root" $ "role" . "name" "release") }}{{ end }}`...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// renderRights has helm render the roles and bindings for values, under the names that the other side uses.
func renderRights(t *testing.T, dir string, values map[string]any, more ...string) []byte {
	t.Helper()
	values["image"] = map[string]any{"repository": "registry.example.com/corollary"}
	values["serviceAccount"] = map[string]any{"name": "process"}
	values["leaderElection"] = map[string]any{"id": "lead"}
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"template", "corollary", dir, "--namespace=system", "--values=" + write(t, "values.yaml", string(text))}, more...)
	if len(more) == 0 {
		args = append(args, "--show-only=templates/rbac.yaml")
	}
	stdout, stderr, err := helm(t, args...)
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, stderr, text)
	}
	return []byte(stdout)
}

// granted reads what roles and bindings grant. Each binding is to the role of its own name.
func granted(t *testing.T, text []byte) rights {
	t.Helper()
	type object struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
		Rules    []rbacv1.PolicyRule
		RoleRef  rbacv1.RoleRef
		Subjects []rbacv1.Subject
	}
	var objects []object
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var o object
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if o.Kind != "" {
			objects = append(objects, o)
		}
	}
	got, bound := rights{}, 0
	for _, role := range objects {
		if strings.HasSuffix(role.Kind, "Binding") {
			continue
		}
		for _, b := range objects {
			if b.RoleRef.Kind != role.Kind || b.RoleRef.Name != role.Metadata.Name || b.Metadata.Namespace != role.Metadata.Namespace {
				continue
			}
			bound++
			for _, s := range b.Subjects {
				got.add(s.Namespace+"/"+s.Name, role.Metadata.Namespace, role.Rules...)
			}
		}
	}
	if 2*bound != len(objects) {
		t.Errorf("%d objects, of which %d roles are bound:\n%s", len(objects), bound, text)
	}
	if bytes.Contains(text, []byte("*")) {
		t.Errorf("there is a wildcard:\n%s", text)
	}
	return got
}
