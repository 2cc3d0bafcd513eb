package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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

// TestReleaseRemovesThePreviousFinalizer: an upstream that was not reconciled since the finalizer was renamed has the previous one.
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
