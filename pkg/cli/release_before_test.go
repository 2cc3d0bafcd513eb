package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestReleaseRemovesFinalizersOfBeforeObjects: a deletion.before object has the finalizer too, and loses it with its upstream; an
// object that only looks like one is left alone.
func TestReleaseRemovesFinalizersOfBeforeObjects(t *testing.T) {
	memory(t)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	ns, other := testkit.Namespace(t), testkit.Namespace(t)
	text, err := os.ReadFile("testdata/offline/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "operator.yaml")
	before := "deletion:\n  before: {apiVersion: v1, kind: ConfigMap, template: 'metadata: {name: x}', doneWhen: 'true', targetNamespaces: " +
		"{from: Any}}\n"
	if err := os.WriteFile(conf,
		[]byte(strings.Replace(string(text), "owner: {reference: true}", "owner: {annotation: tools.example.com/owner}", 1)+before),
		0o600); err != nil {
		t.Fatal(err)
	}
	made := func(name, labels, owner string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", labels: {" + labels +
			"}, annotations: {tools.example.com/owner: " + owner +
			"}, finalizers: [tools.example.com/cleanup, tools.example.com/other]}}"
	}
	const ours = "tools.example.com/managed-by: widgets"
	testkit.Apply(t, ns, made("near", ours, ns+"/w/uid"))
	testkit.Apply(t, other, made("far", ours, ns+"/w/uid"))
	testkit.Apply(t, other, made("elses", ours, other+"/w/uid"))
	testkit.Apply(t, ns, made("unlabeled", "", ns+"/w/uid"))
	t.Setenv("KUBECONFIG", testkit.Kubeconfig(t))
	code, out := run(t, "release", "-c", conf, "-n", ns)
	if code != 0 || !strings.Contains(out, "0 upstreams and 2 objects of deletion.before released") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for name, want := range map[string]int{"near": 1, "unlabeled": 2} {
		if n := len(testkit.Get(t, configMaps, ns, name).GetFinalizers()); n != want {
			t.Errorf("%s has %d finalizers, want %d", name, n, want)
		}
	}
	for name, want := range map[string]int{"far": 1, "elses": 2} {
		if n := len(testkit.Get(t, configMaps, other, name).GetFinalizers()); n != want {
			t.Errorf("%s has %d finalizers, want %d", name, n, want)
		}
	}
}
