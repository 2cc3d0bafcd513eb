package cli_test

import (
	"strings"
	"testing"

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
` + ownConventions + `  finalizer: NS.example.com/cleanup
  pause: {annotation: NS.example.com/paused}
status: {conditions: {ready: Ready}, downstreams: .status.downstreams}
events: None
`

// A backup has what is left over, of a kind that the config still has, in a namespace where it has none any more.
func TestBackupOfLeftoverElsewhere(t *testing.T) {
	ns := memory(t)
	other := testkit.Namespace(t)
	dir := inDirectory(t)
	conf := strings.NewReplacer("NS", ns, "OTHER", other).Replace(hereAndThere)
	before, after, _ := strings.Cut(conf, "  - name: there")
	_, after, _ = strings.Cut(after, "conventions:")
	later := before + "conventions:" + after
	write(t, dir+"/operator.yaml", conf)
	write(t, dir+"/later.yaml", later)
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one}, spec: {color: blue}}")
	runUntilIdle(t, ns, dir+"/operator.yaml")
	expect(t, 0, "configmaps: 2 objects", "backup", "-c", "operator.yaml", "--downstreams", "-o", dir+"/all")
	expect(t, 0, "configmaps: 2 objects", "backup", "-c", "later.yaml", "--downstreams", "-o", dir+"/left-over")
}

// Whoever may write a status cannot make backups fail by a record of a kind that cannot be listed.
func TestBackupOfForgedRecord(t *testing.T) {
	ns := memory(t)
	other := testkit.Namespace(t)
	dir := inDirectory(t)
	conf := strings.NewReplacer("NS", ns, "OTHER", other).Replace(hereAndThere)
	write(t, dir+"/operator.yaml", conf)
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one}, spec: {color: blue}}")
	runUntilIdle(t, ns, dir+"/operator.yaml")
	testkit.Patch(t, widgets, ns, "one", "author", `{"status": {"downstreams": [{"name": "x", "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "objectName": "x", "uid": "1"}]}}`, "status")
	expect(t, 0, "configmaps: 2 objects", "backup", "-c", "operator.yaml", "--downstreams", "-o", dir+"/all")
}

// A backup through a version that lacks what another one has says what it leaves out.
func TestBackupThroughAnOlderVersion(t *testing.T) {
	bubble.Listen(t, "testdata/versions/crd.yaml")
	connected(t)
	testkit.Apply(t, testkit.Namespace(t), "{apiVersion: tools.example.com/v1, kind: App, metadata: {name: one}, spec: {a: one, b: more}}")
	expect(t, 0, "note: apps.tools.example.com: version v1beta1 lacks what objects have in another one, and no webhook converts: "+
		"left out are v1 .spec.b", "backup", "-c", "testdata/versions/app.yaml", "-o", t.TempDir()+"/all")
}
