package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// stubServer is an API server that serves Widgets, and answers lists and patches as a test wants.
type stubServer struct {
	lists   []string // query of each list
	patches []string // name of each patched object
	list    func(r *http.Request) (int, any)
	patch   func(name string) (int, any)
}

type object = map[string]any

func (s *stubServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, body := s.answer(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *stubServer) answer(r *http.Request) (int, any) {
	const group = "/apis/tools.example.com/v1"
	switch {
	case r.URL.Path == group:
		return http.StatusOK, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "tools.example.com/v1", "resources": []object{
			{"name": "widgets", "kind": "Widget", "namespaced": true, "verbs": []string{"list", "patch"}},
		}}
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/widgets"):
		s.lists = append(s.lists, r.URL.Query().Encode())
		return s.list(r)
	case r.Method == http.MethodPatch:
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		s.patches = append(s.patches, name)
		return s.patch(name)
	}
	return http.StatusNotFound, failure(http.StatusNotFound, "NotFound", "")
}

func failure(code int, reason, token string) object {
	return object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason,
		"metadata": object{"continue": token}}
}

func widget(name string) object {
	return object{"apiVersion": "tools.example.com/v1", "kind": "Widget", "metadata": object{
		"name": name, "namespace": "apps", "uid": "uid-" + name, "resourceVersion": "1", "finalizers": []string{"tools.example.com/cleanup"},
	}}
}

func page(token string, names ...string) object {
	items := []object{}
	for _, name := range names {
		items = append(items, widget(name))
	}
	return object{"kind": "WidgetList", "apiVersion": "tools.example.com/v1", "metadata": object{"continue": token}, "items": items}
}

// release runs the command against the stub.
func (s *stubServer) release(t *testing.T, args ...string) (int, string) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	path := t.TempDir() + "/kubeconfig"
	write(t, path, string(kubeconfig(server.URL)))
	return run(t, append([]string{"release", "--kubeconfig", path, "-c"}, args...)...)
}

const good, broken = "../../testdata/widgets/operator.yaml", "testdata/errors/broken.yaml"

func released(name string) (int, any) {
	w := widget(name)
	w["metadata"].(object)["finalizers"] = []string{}
	return http.StatusOK, w
}

// TestReleaseReadsByPages: a list of more than a page is read to its end, also where it grows old meanwhile.
func TestReleaseReadsByPages(t *testing.T) {
	t.Parallel()
	s := &stubServer{patch: released, list: func(r *http.Request) (int, any) {
		switch r.URL.Query().Get("continue") {
		case "":
			return http.StatusOK, page("second", "a", "b")
		case "second":
			return http.StatusGone, failure(http.StatusGone, "Expired", "anew")
		}
		return http.StatusOK, page("", "c")
	}}
	code, out := s.release(t, good)
	if code != 0 || !strings.Contains(out, "3 upstreams released") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if got, want := fmt.Sprint(s.lists), "[limit=500 continue=second&limit=500 continue=anew&limit=500]"; got != want {
		t.Errorf("lists %s, want %s", got, want)
	}
}

// TestReleaseContinuesAfterFailures: a refused upstream does not stop the others; the exit code reports it.
func TestReleaseContinuesAfterFailures(t *testing.T) {
	t.Parallel()
	s := &stubServer{
		list: func(*http.Request) (int, any) { return http.StatusOK, page("", "a", "b", "c") },
		patch: func(name string) (int, any) {
			if name == "b" {
				return http.StatusForbidden, failure(http.StatusForbidden, "Forbidden", "")
			}
			return released(name)
		},
	}
	code, out := s.release(t, good)
	if code != 1 || !strings.Contains(out, "2 upstreams released") || !strings.Contains(out, "apps/b") ||
		!strings.Contains(out, "Error: 1 failure") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if got := fmt.Sprint(s.patches); got != "[a b c]" {
		t.Errorf("patched %s", got)
	}
}

// TestReleaseReadsAgainAfterAConflict, with the right to list only.
func TestReleaseReadsAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	tries := 0
	s := &stubServer{
		list: func(*http.Request) (int, any) { return http.StatusOK, page("", "a") },
		patch: func(name string) (int, any) {
			if tries++; tries == 1 {
				return http.StatusUnprocessableEntity, failure(http.StatusUnprocessableEntity, "Invalid", "")
			}
			return released(name)
		},
	}
	code, out := s.release(t, good)
	if code != 0 || !strings.Contains(out, "1 upstream released") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if got, want := fmt.Sprint(s.lists), "[limit=500 fieldSelector=metadata.name%3Da]"; got != want {
		t.Errorf("lists %s, want %s", got, want)
	}
}

func TestReleaseByConfigs(t *testing.T) {
	t.Parallel()
	empty := func(*http.Request) (int, any) { return http.StatusOK, page("") }
	for _, test := range []struct {
		reason string
		args   []string
		code   int
		want   string
		lists  int
	}{
		{"broken rules and templates hold nobody up", []string{broken}, 0, "0 upstreams released", 1},
		{"what is broken is told all the same", []string{broken}, 0, "note: ignored here: " + broken, 1},
		{"a config that cannot be read may hide a finalizer", []string{"missing.yaml", "-c", good}, 1, "missing.yaml: cannot be read", 1},
		{"without a watch nothing can be found", []string{good, "--set", "widgets:.watch.kind="}, 1, "watch.kind", 0},
		{"no finalizer, nothing to do", []string{good, "--set", "widgets:.conventions.finalizer="}, 0, "operator widgets has no finalizer", 0},
		{"a finalizer that cannot be read is no finalizer that is missing", []string{good, "--set", "widgets:.conventions.finalizer=[a]"}, 1,
			"conventions.finalizer", 0},
		{"a kind that is not served is probably another cluster", []string{good, "--set", "widgets:.watch.kind=Gadget"}, 1, "has no kind Gadget",
			0},
		{"each namespace is listed by itself, as the rights may be", []string{good, "--set", "widgets:.watch.namespaces=[a, b]"}, 0,
			"0 upstreams released", 2},
		{"-n narrows", []string{good, "--set", "widgets:.watch.namespaces=[a, b]", "-n", "b"}, 0, "0 upstreams released", 1},
		{"-n widens nothing", []string{good, "--set", "widgets:.watch.namespaces=[a, b]", "-n", "c"}, 1,
			"namespace c is not among those that it watches", 0},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := &stubServer{list: empty, patch: released}
			code, out := s.release(t, test.args...)
			if code != test.code || !strings.Contains(out, test.want) || len(s.lists) != test.lists {
				t.Errorf("exit code %d, want %d; %d lists, want %d; %q wanted in:\n%s", code, test.code, len(s.lists), test.lists, test.want, out)
			}
		})
	}
}

// TestReleaseRemovesThePreviousFinalizer: an upstream that was not reconciled since the finalizer was renamed has the
// previous one.
func TestReleaseRemovesThePreviousFinalizer(t *testing.T) {
	t.Parallel()
	s := &stubServer{patch: released, list: func(*http.Request) (int, any) { return http.StatusOK, page("", "a") }}
	code, out := s.release(t, good, "--set", "widgets:.conventions.finalizer=tools.example.com/new", "--set",
		"widgets:.conventions.previous.finalizer=tools.example.com/cleanup")
	if code != 0 || !strings.Contains(out, "a: finalizer tools.example.com/cleanup removed") || !strings.Contains(out, "1 upstream released") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func finalizersOf(t *testing.T, namespace, name string) int {
	t.Helper()
	return len(testkit.Get(t, widgets, namespace, name).GetFinalizers())
}

// led is a namespace in which an operator leads and holds a Widget by its finalizer.
func led(t *testing.T) (ns string, leader *process) {
	t.Helper()
	ns = testkit.Namespace(t)
	leader = startRun(t, testkit.Config(t), ns, slices.Concat(steadyElection, []string{"--leader-elect", "--leader-election-id", "operator",
		"-n", ns, "--set", "widgets:.deletion.wait=true"})...)
	testkit.Apply(t, ns, blueWidget)
	testkit.Eventually(t, patience, func() (bool, string) { return finalizersOf(t, ns, "one") == 1, "there is no finalizer" })
	return ns, leader
}

func releaseIn(ns string, args ...string) []string {
	return append([]string{"release", "-c", operatorFile, "-n", ns, "--leader-election-id", "operator", "--leader-election-namespace", ns},
		args...)
}

// TestReleaseStopsWaiting: Ctrl-C ends the wait for a Lease.
func TestReleaseStopsWaiting(t *testing.T) {
	t.Parallel()
	memory(t)
	ns, _ := led(t)
	r := startWriting(t, testkit.Config(t), releaseIn(ns)...)
	eventuallySays(t, r, "waiting until ")
	r.interrupt(t)
	if code := r.wait(t); code != 1 || !strings.Contains(r.text(t), "waiting for Lease") {
		t.Errorf("exit code %d\n%s", code, r.text(t))
	}
	if n := finalizersOf(t, ns, "one"); n != 1 {
		t.Errorf("it has %d finalizers", n)
	}
}

const finalizedWidget = `{apiVersion: tools.example.com/v1, kind: Widget,
  metadata: {name: %s, finalizers: [tools.example.com/cleanup, tools.example.com/other]}, spec: {color: blue}}`

// TestReleaseRemovesFinalizers: with a config whose rules and templates are broken. Other finalizers stay.
func TestReleaseRemovesFinalizers(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	for i := range 3 {
		testkit.Apply(t, ns, fmt.Sprintf(finalizedWidget, fmt.Sprintf("w%d", i)))
	}
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: bare}}")
	code, out := run(t, "release", "-c", "testdata/errors/broken.yaml", "-n", ns, "--dry-run")
	if code != 0 || !strings.Contains(out, "3 upstreams would be released") {
		t.Errorf("dry run: exit code %d\n%s", code, out)
	}
	if n := finalizersOf(t, ns, "w0"); n != 2 {
		t.Errorf("a dry run left %d finalizers, want 2", n)
	}
	code, out = run(t, "release", "-c", "testdata/errors/broken.yaml", "-n", ns)
	if code != 0 || !strings.Contains(out, "3 upstreams released") ||
		!strings.Contains(out, "widgets.tools.example.com "+ns+"/w1: finalizer tools.example.com/cleanup removed") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for i := range 3 {
		if n := finalizersOf(t, ns, fmt.Sprintf("w%d", i)); n != 1 {
			t.Errorf("w%d has %d finalizers, want the other one only", i, n)
		}
	}
}

// TestReleaseHoldsTheLease: without --scale-down a process that comes meanwhile waits as a standby until release has
// let go.
func TestReleaseHoldsTheLease(t *testing.T) {
	t.Parallel()
	memory(t)
	ns, leader := led(t)
	r := startWriting(t, testkit.Config(t), releaseIn(ns)...)
	eventuallySays(t, r, "waiting until ")
	leader.interrupt(t)
	for r.wait(t) != 0 && strings.Contains(r.text(t), "was lost") { // on a machine that is too busy to renew the Lease within 10 s
		r = startWriting(t, testkit.Config(t), releaseIn(ns)...)
	}
	if code := r.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, r.text(t))
	}
	lease := testkit.Get(t, leases, ns, "operator")
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if n, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseTransitions"); holder != "" || n < 1 {
		t.Errorf("it was not taken and let go of: %v", lease.Object["spec"])
	}
}

// TestReleaseRemovesFinalizersOfBeforeObjects: a deletion.before object has the finalizer too, and loses it with its
// upstream; an object that only looks like one is left alone.
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

// TestReleaseWaitsForBefore: an upstream that is being deleted is not released before its deletion.before is done, or
// with deletion.wait its downstreams are gone, nor any other.
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

// TestReleaseKeepsOrphans: what a changed config keeps loses its owner reference, which would have it deleted with its
// upstream.
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
