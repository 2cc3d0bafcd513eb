//go:build controlplane

package examples_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/cli"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// sameAsRun makes a case of an upstream and its downstreams as `run` and a real API server have left them, and has
// `test` play it: nothing is to be done, and the status is word for word the one that `run` wrote.
func sameAsRun(t *testing.T, e example, u *unstructured.Unstructured) {
	t.Helper()
	i := slices.IndexFunc(e.compile(t), func(p *compile.Pipeline) bool { return p.Upstream.GVK == u.GroupVersionKind() })
	if i < 0 {
		return // it is there for an upstream
	}
	p, path := e.compile(t)[i], filepath.Join(t.TempDir(), "case.yaml")
	testkit.Eventually(t, patience, func() (bool, string) {
		text := must.Get(yaml.Marshal(caseOf(t, e, p, u))).In(t)
		must.Do(t, os.WriteFile(path, text, 0o600))
		var out bytes.Buffer
		code := cli.Main([]string{"test", path}, cli.IO{Out: &out, Err: &out})
		return code == 0, out.String()
	})
}

// caseOf is a case of what exists, which expects that nothing is done.
func caseOf(t *testing.T, e example, p *compile.Pipeline, u *unstructured.Unstructured) map[string]any {
	t.Helper()
	absolute := func(path string) string {
		path = must.Get(filepath.Abs(path)).In(t)
		return path
	}
	crds := []string{}
	for _, path := range e.crds() {
		crds = append(crds, absolute(path))
	}
	upstream, downstreams := asStored(t, u), map[string]any{}
	for _, d := range p.Downstreams {
		downstreams[d.Name] = map[string]any{"document": nil} // none is applied
	}
	expect := map[string]any{"errors": []any{}, "leftovers": []any{}, "finalizer": "None", "downstreams": downstreams}
	if p.StatusEnabled() {
		expect["conditions"], expect["status"] = ofRun(upstream)
	}
	c := map[string]any{"apiVersion": "corollary.dev/v1alpha1", "kind": "Case", "config": absolute(e.config()), "crds": crds,
		"operator": p.Name, "upstream": upstream.Object, "expect": expect}
	if _, err := os.Stat(e.path("inputs.yaml")); err == nil {
		c["inputs"] = []any{}
		for _, u := range documents(t, e.path("inputs.yaml")) {
			c["inputs"] = append(c["inputs"].([]any), asStored(t, u).Object)
		}
	}
	live := []any{}
	for _, u := range documents(t, e.path("rendered.yaml")) {
		live = append(live, map[string]any{"object": asStored(t, u).Object})
	}
	c["live"] = live
	return c
}

// ofRun splits a status into its conditions, without times, and the rest.
func ofRun(u *unstructured.Unstructured) (conditions []any, rest map[string]any) {
	rest = map[string]any{}
	content, _ := u.Object["status"].(map[string]any)
	for key, value := range content {
		if key != "conditions" && key != "observedGeneration" {
			rest[key] = value
		}
	}
	list, _ := content["conditions"].([]any)
	for _, item := range list {
		condition := (&unstructured.Unstructured{Object: item.(map[string]any)}).DeepCopy().Object
		delete(condition, "lastTransitionTime")
		if condition["message"] == "" {
			delete(condition, "message")
		}
		conditions = append(conditions, condition)
	}
	return conditions, rest
}

// asStored is an object as the API server has it.
func asStored(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	cluster := must.Get(discovered.New(testkit.Config(t))).In(t)
	kind := must.Get(cluster.Kind(u.GroupVersionKind())).In(t)
	return testkit.Get(t, kind.GVR, u.GetNamespace(), u.GetName())
}
