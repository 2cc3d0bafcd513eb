package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// backedUp makes a config, an upstream, and what follows from it: a copy in another namespace, which an annotation says
// is owned, and a Secret. It returns the config's file.
func backedUp(t *testing.T, ns, other, conventions string) string {
	t.Helper()
	owner := testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: site, labels: {example.com/site: a}}, data: {k: v}}")
	mark := ns + "/site/" + string(owner.GetUID())
	for _, kind := range []string{"ConfigMap", "Secret"} {
		testkit.Apply(t, other, "{apiVersion: v1, kind: "+kind+", metadata: {name: copy, labels: {example.com/managed-by: site}, "+
			"annotations: {example.com/owner: "+mark+"}}, data: {k: dmFsdWU=}}")
	}
	testkit.Apply(t, other, "{apiVersion: v1, kind: ConfigMap, metadata: {name: another, labels: {example.com/managed-by: site}}}")
	file := filepath.Join(t.TempDir(), "site.yaml")
	template := "\n    template: '{metadata: {name: copy, namespace: " + other + "}}'\n" +
		"    targetNamespaces: {from: List, names: [" + other + "]}\n"
	text := "apiVersion: corollary.dev/v1alpha1\nkind: Operator\nmetadata: {name: site}\n" +
		"watch: {apiVersion: v1, kind: ConfigMap, namespaces: [" + ns + "], labelSelector: {matchLabels: {example.com/site: a}}}\n" +
		"downstreams:\n  - name: map\n    apiVersion: v1\n    kind: ConfigMap" + template +
		"  - name: secret\n    apiVersion: v1\n    kind: Secret" + template +
		"conventions:\n  fieldManager: site\n  labels: {example.com/managed-by: site}\n  hash: {annotation: example.com/hash}\n" +
		"  owner: {annotation: example.com/owner}\n  finalizer: example.com/site\n" + conventions + "status: {enabled: false}\n"
	write(t, file, text)
	return file
}

// TestBackupAndRestore: what follows from the upstreams is written and nothing else, Secrets only when asked for, and
// all comes back with the owner's new uid.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	ns, other := memory(t), testkit.Namespace(t)
	ns, other = min(ns, other), max(ns, other) // as they are listed
	file := backedUp(t, ns, other, "  pause: {annotation: example.com/paused}\n")
	dir := t.TempDir()
	code, out := run(t, "backup", "-c", file, "--downstreams", "-o", dir+"/plain")
	if code != 0 || !strings.Contains(out, "configmaps: 2 objects at resourceVersion ") ||
		!strings.Contains(out, "note: Secrets are left out") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	identity := must(age.GenerateX25519Identity())(t)
	key, all := dir+"/key", dir+"/all.tar.zst"
	write(t, key, identity.String()+"\n")
	code, out = run(t, "backup", "-c", file, "--downstreams", "--secrets", "--age-recipient", identity.Recipient().String(), "-o", all)
	if code != 0 || !strings.Contains(out, "secrets: 1 object at resourceVersion ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	testkit.Delete(t, configMaps, ns, "site")
	testkit.Delete(t, configMaps, other, "copy")
	testkit.Delete(t, secrets, other, "copy")

	plan := strings.Join([]string{"configmaps: 2 to create", "  create configmaps " + ns + "/site", "  create configmaps " + other + "/copy",
		"secrets: 1 to create", "  create secrets " + other + "/copy", ""}, "\n")
	code, out = run(t, "restore", all, "--age-identity", key, "--dry-run")
	if code != 0 || out != plan+"3 would be created, 0 replaced, 3 finished\n" {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if code, out = run(t, "restore", all, "--age-identity", key); code != 0 || out != plan+"3 created, 0 replaced, 3 finished\n" {
		t.Errorf("exit code %d\n%s", code, out)
	}
	testkit.Patch(t, configMaps, other, "copy", "somebody", `{"data": {"more": "x"}}`)
	for _, row := range []struct {
		how, says string
		code      int
	}{{"fail", "nothing would be written: objects exist and are not as in", 1}, {"skip", "1 to skip", 0}, {"replace", "1 to replace", 0}} {
		code, out = run(t, "restore", all, "--age-identity", key, "--dry-run", "--on-conflict", row.how)
		if code != row.code || !strings.Contains(out, row.says) {
			t.Errorf("a dry run, --on-conflict %s: exit code %d\n%s", row.how, code, out)
		}
	}
	expect(t, 0, "", "restore", all, "--age-identity", key, "--on-conflict", "replace")
	site := testkit.Get(t, configMaps, ns, "site")
	want := ns + "/site/" + string(site.GetUID())
	for _, gvr := range []schema.GroupVersionResource{configMaps, secrets} {
		if got := testkit.Get(t, gvr, other, "copy").GetAnnotations()["example.com/owner"]; got != want {
			t.Errorf("%s: the owner is %s, want %s", gvr.Resource, got, want)
		}
	}
	if len(site.GetAnnotations()) > 0 {
		t.Errorf("annotations are left: %v", site.GetAnnotations())
	}
	for _, maps := range [][]string{{"--namespace-map", ns + "=" + other}, {"--namespace-map", ns + "=y", "--namespace-map", other + "=y"}} {
		code, out = run(t, append([]string{"restore", all}, maps...)...)
		if code != 1 || !strings.Contains(out, " of the backup would both become ") {
			t.Errorf("%v: exit code %d\n%s", maps, code, out)
		}
	}
	expect(t, 1, "--namespace-map names nowhere, which is not in the backup: it has "+ns+", "+other,
		"restore", all, "--namespace-map", "nowhere=here")
	expect(t, 0, "secrets: 1 left out, encrypted: add --age-identity", "restore", all)
}

// TestRestoreNeedsAPause: beside an operator that cannot be paused nothing is restored, unless someone says that it
// does not run.
func TestRestoreNeedsAPause(t *testing.T) {
	t.Parallel()
	ns, other := memory(t), testkit.Namespace(t)
	file, path := backedUp(t, ns, other, ""), t.TempDir()+"/backup"
	expect(t, 0, "", "backup", "-c", file, "-o", path)
	for _, args := range [][]string{{"restore", path}, {"restore", path, "-c", file}} {
		expect(t, 1, "operator site has no conventions.pause.annotation", args...)
	}
	expect(t, 0, "configmaps: 1 equal\n", "restore", path, "--no-pause")
}

// A backup with Secrets brings random values back, and the operator keeps them; one without says what is lost. Objects
// of others are in neither.
func TestBackupOfRandomValues(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	dir := inDirectory(t)
	conf := `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: logins}
watch: {apiVersion: tools.example.com/v1, kind: Widget, namespaces: [NS]}
downstreams:
  - name: login
    apiVersion: v1
    kind: Secret
    template: "metadata: {name: '{{ .metadata.name }}'}"
    generated: [{path: .data.password}]
  - name: shared
    apiVersion: v1
    kind: ConfigMap
    ownership: Fields
    template: "{metadata: {name: shared}, data: {color: {{ .spec.color }}}}"
` + ownConventions + `  finalizer: NS.example.com/cleanup
  pause: {annotation: NS.example.com/paused}
status: {conditions: {ready: Ready}, downstreams: .status.downstreams}
events: None
`
	identity := must(age.GenerateX25519Identity())(t)
	for file, text := range map[string]string{"operator.yaml": strings.ReplaceAll(conf, "NS", ns), "key": identity.String() + "\n"} {
		write(t, filepath.Join(dir, file), text)
	}
	password := func() string {
		value, _, _ := unstructured.NestedString(testkit.Get(t, secrets, ns, "one").Object, "data", "password")
		return value
	}
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {theirs: x}}")
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one}, spec: {color: blue}}")
	runUntilIdle(t, ns, dir+"/operator.yaml")
	made := password()
	if made == "" {
		t.Fatal("there is no password")
	}
	expect(t, 0, "note: Secrets are left out, with values that a restored operator would make anew (generated: logins/login): add --secrets",
		"backup", "-c", "operator.yaml", "--downstreams", "-o", dir+"/plain")
	code, out := run(t, "backup", "-c", "operator.yaml", "--downstreams", "--secrets",
		"--age-recipient", identity.Recipient().String(), "-o", dir+"/all")
	if code != 0 || !strings.Contains(out, "secrets: 1 object") || strings.Contains(out, "configmaps") || strings.Contains(out, made) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	before, after, _ := strings.Cut(strings.ReplaceAll(conf, "NS", ns), "  - name: login")
	_, after, _ = strings.Cut(after, "  - name: shared")
	later := before + "  - name: shared" + after
	write(t, dir+"/later.yaml", later)
	expect(t, 0, "secrets: 1 object", "backup", "-c", "later.yaml", "--downstreams", "--secrets",
		"--age-recipient", identity.Recipient().String(), "-o", dir+"/left-over")
	expect(t, 0, "note: Secrets are left out: add --secrets", "backup", "-c", "later.yaml", "--downstreams", "-o", dir+"/plain")
	testkit.Patch(t, widgets, ns, "one", "test", `{"metadata": {"finalizers": null}}`)
	testkit.Delete(t, widgets, ns, "one")
	testkit.Delete(t, secrets, ns, "one")
	expect(t, 0, "", "restore", "all", "--age-identity", "key")
	runUntilIdle(t, ns, dir+"/operator.yaml")
	if password() != made {
		t.Error("the password is another one")
	}
}

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
