package cli_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

const hereAndThere = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: logins}
watch: {apiVersion: tools.example.com/v1, kind: Widget, namespaces: [NS]}
downstreams:
  - name: here
    apiVersion: v1
    kind: ConfigMap
    template: "{metadata: {name: here}, data: {color: {{ .spec.color }}}}"
  - name: there
    apiVersion: v1
    kind: ConfigMap
    targetNamespaces: {from: List, names: [OTHER]}
    template: "{metadata: {name: there, namespace: OTHER}, data: {color: {{ .spec.color }}}}"
conventions:
  fieldManager: NS
  labels: {NS.example.com/managed: "yes"}
  hash: {annotation: NS.example.com/hash}
  owner: {annotation: NS.example.com/owner}
  finalizer: NS.example.com/cleanup
  pause: {annotation: NS.example.com/paused}
status: {conditions: {ready: Ready}, downstreams: .status.downstreams}
events: None
`

// A backup has what is left over, of a kind that the config still has, in a namespace where it has none any more.
func TestBackupOfLeftoverElsewhere(t *testing.T) {
	ns := memory(t)
	other := testkit.Namespace(t)
	t.Setenv("KUBECONFIG", testkit.Kubeconfig(t))
	t.Chdir(t.TempDir())
	conf := strings.NewReplacer("NS", ns, "OTHER", other).Replace(hereAndThere)
	before, after, _ := strings.Cut(conf, "  - name: there")
	later := before + after[strings.Index(after, "conventions:"):]
	for file, text := range map[string]string{"operator.yaml": conf, "later.yaml": later} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one}, spec: {color: blue}}")
	runUntilIdle(t, ns, "operator.yaml")
	code, out := run(t, "backup", "-c", "operator.yaml", "--downstreams", "-o", "all")
	if code != 0 || !strings.Contains(out, "configmaps: 2 objects") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	code, out = run(t, "backup", "-c", "later.yaml", "--downstreams", "-o", "left-over")
	if code != 0 || !strings.Contains(out, "configmaps: 2 objects") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// Whoever may write a status cannot make backups fail by a record of a kind that cannot be listed.
func TestBackupOfForgedRecord(t *testing.T) {
	ns := memory(t)
	other := testkit.Namespace(t)
	t.Setenv("KUBECONFIG", testkit.Kubeconfig(t))
	t.Chdir(t.TempDir())
	conf := strings.NewReplacer("NS", ns, "OTHER", other).Replace(hereAndThere)
	if err := os.WriteFile("operator.yaml", []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one}, spec: {color: blue}}")
	runUntilIdle(t, ns, "operator.yaml")
	widgets := schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "widgets"}
	testkit.Patch(t, widgets, ns, "one", "author", `{"status": {"downstreams": [{"name": "x", "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "objectName": "x", "uid": "1"}]}}`, "status")
	code, out := run(t, "backup", "-c", "operator.yaml", "--downstreams", "-o", "all")
	if code != 0 || !strings.Contains(out, "configmaps: 2 objects") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// A backup through a version that lacks what another one has says what it leaves out.
func TestBackupThroughAnOlderVersion(t *testing.T) {
	bubble.Listen(t, "testdata/versions/crd.yaml")
	t.Setenv("KUBECONFIG", testkit.Kubeconfig(t))
	testkit.Apply(t, testkit.Namespace(t), "{apiVersion: tools.example.com/v1, kind: App, metadata: {name: one}, spec: {a: one, b: more}}")
	code, out := run(t, "backup", "-c", "testdata/versions/app.yaml", "-o", t.TempDir()+"/all")
	if want := "note: apps.tools.example.com: version v1beta1 lacks what objects have in another one, and no webhook converts: left out are v1 .spec.b"; code != 0 ||
		!strings.Contains(out, want) {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
