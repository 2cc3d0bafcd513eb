package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestReleaseRemovesFinalizersOfBeforeObjects: a deletion.before object has the finalizer too, and loses it with its upstream; an
// object that only looks like one is left alone.
func TestReleaseRemovesFinalizersOfBeforeObjects(t *testing.T) {
	t.Parallel()
	memory(t)
	ns, other := testkit.Namespace(t), testkit.Namespace(t)
	text := read(t, "../../testdata/widgets/operator.yaml")
	conf := filepath.Join(t.TempDir(), "operator.yaml")
	before := "deletion:\n  before: {apiVersion: v1, kind: ConfigMap, template: 'metadata: {name: x}', doneWhen: 'true', targetNamespaces: " +
		"{from: Any}}\n"
	if err := os.WriteFile(conf,
		[]byte(strings.Replace(text, "owner: {reference: true}", "owner: {annotation: tools.example.com/owner}", 1)+before),
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

// TestReleaseWaitsForBefore: an upstream that is being deleted is not released before its deletion.before is done, or with deletion.wait
// its downstreams are gone, nor any other.
func TestReleaseWaitsForBefore(t *testing.T) {
	t.Parallel()
	memory(t)
	for deletion, first := range map[string]string{
		"{before: {apiVersion: v1, kind: ConfigMap, template: 'metadata: {name: x}', doneWhen: 'true'}}": "deletion.before is done",
		"{wait: true}": "its downstreams are (deletion.wait)",
	} {
		t.Run(first, func(t *testing.T) { releaseWaits(t, deletion, first) })
	}
}

func releaseWaits(t *testing.T, deletion, first string) {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "operator.yaml")
	text := read(t, "../../testdata/widgets/operator.yaml")
	text += "deletion: " + deletion + "\n"
	write(t, conf, text)
	ns := testkit.Namespace(t)
	for _, name := range []string{"goes", "stays"} {
		testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: "+name+
			", finalizers: [tools.example.com/cleanup]}}")
	}
	testkit.Delete(t, widgets, ns, "goes")
	for _, args := range [][]string{nil, {"--dry-run"}} {
		code, out := run(t, append([]string{"release", "-c", conf}, args...)...)
		if code != 1 || !strings.Contains(out, "Widget "+ns+"/goes: it is being deleted, and would be gone before "+first) {
			t.Errorf("%v: exit code %d\n%s", args, code, out)
		}
		for _, name := range []string{"goes", "stays"} {
			if len(testkit.Get(t, widgets, ns, name).GetFinalizers()) != 1 {
				t.Errorf("%v: %s is released", args, name)
			}
		}
	}
	if code, out := run(t, "release", "-c", conf, "--skip-before"); code != 0 || testkit.Find(t, widgets, ns, "goes") != nil {
		t.Errorf("with --skip-before: exit code %d\n%s", code, out)
	}
}

// TestReleaseKeepsOrphans: what a changed config keeps loses its owner reference, which would have it deleted with its upstream.
func TestReleaseKeepsOrphans(t *testing.T) {
	t.Parallel()
	memory(t)
	conf, ns := filepath.Join(t.TempDir(), "operator.yaml"), testkit.Namespace(t)
	write(t, conf, strings.NewReplacer("    kind: ConfigMap\n", "    kind: ConfigMap\n    deletionPolicy: Orphan\n",
		"fieldManager: widgets", "fieldManager: test").Replace(read(t, good)))
	owner := testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, "+
		"metadata: {name: w, finalizers: [tools.example.com/cleanup]}}")
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, labels: {tools.example.com/managed-by: widgets}, "+
		"ownerReferences: [{apiVersion: tools.example.com/v1, kind: Widget, name: w, uid: "+string(owner.GetUID())+"}]}}")
	for i, args := range [][]string{{"--dry-run"}, nil} {
		code, out := run(t, append([]string{"release", "-c", conf}, args...)...)
		if code != 0 || !strings.Contains(out, "kept: owner reference to Widget w ") {
			t.Errorf("%v: exit code %d\n%s", args, code, out)
		}
		if n := len(testkit.Get(t, configMaps, ns, "kept").GetOwnerReferences()); n != 1-i {
			t.Errorf("%v: it has %d owner references", args, n)
		}
	}
}
