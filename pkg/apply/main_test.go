package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// ours is the field manager of the client under test.
const ours = "operator"

// eventually is how long tests wait for what other components do.
const eventually = testkit.Patience

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	services   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	jobs       = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	widgets    = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "widgets"}
	singletons = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "singletons"}
)

// fixture is a client under test in its own namespace, with the requests that its observer saw.
type fixture struct {
	*testing.T
	c        *Client
	ns       string
	requests []string
}

// setup makes a fixture on an API server in memory, of this test alone.
func setup(t *testing.T) *fixture {
	t.Helper()
	return setupFor(t, memory(t))
}

func memory(t *testing.T) *rest.Config {
	t.Helper()
	return bubble.Serve(t, widgetsCRD)
}

const widgetsCRD = "testdata/crds/widgets.yaml"

func setupFor(t *testing.T, cfg *rest.Config) *fixture {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(KeepAnswers)
	d := must.Get(dynamic.NewForConfig(cfg)).In(t)
	f := &fixture{T: t, ns: testkit.Namespace(t)}
	f.c = New(d, ours, WithObserver(func(verb, resource string, code int) {
		f.requests = append(f.requests, fmt.Sprintf("%s %s %d", verb, resource, code))
	}))
	return f
}

func (f *fixture) target(gvr schema.GroupVersionResource, name string) Target {
	return Target{GVR: gvr, Namespace: f.ns, Name: name}
}

// create makes the object by Create and fails the test if it is refused.
func (f *fixture) create(tg Target, yaml string) *unstructured.Unstructured {
	f.Helper()
	out := must.Get(f.c.Create(f.Context(), tg, doc(f.T, yaml))).In(f)
	return out
}

func (f *fixture) apply(tg Target, uid types.UID, yaml string) *unstructured.Unstructured {
	f.Helper()
	out := must.Get(f.c.Apply(f.Context(), tg, uid, doc(f.T, yaml))).In(f)
	return out
}

func (f *fixture) get(tg Target) *unstructured.Unstructured {
	f.Helper()
	return testkit.Get(f.T, tg.GVR, tg.Namespace, tg.Name)
}

// replace deletes the object and creates another one with the same name.
func (f *fixture) replace(tg Target, yaml string) *unstructured.Unstructured {
	f.Helper()
	testkit.Delete(f.T, tg.GVR, tg.Namespace, tg.Name)
	testkit.Eventually(f.T, eventually, func() (bool, string) {
		return testkit.Find(f.T, tg.GVR, tg.Namespace, tg.Name) == nil, "the object is still there"
	})
	return testkit.Apply(f.T, f.ns, yaml)
}

func doc(t testing.TB, yaml string) map[string]any {
	t.Helper()
	return testkit.Parse(t, yaml).Object
}

// expectError fails the test if err does not have that meaning and that reason.
func expectError(t testing.TB, err, meaning error, reason string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", reason)
	}
	if meaning != nil && !errors.Is(err, meaning) {
		t.Errorf("the error is %v, want %v", err, meaning)
	}
	for _, m := range []error{ErrExists, ErrGone, ErrReplaced, ErrConflict} {
		if errors.Is(err, m) && !errors.Is(meaning, m) {
			t.Errorf("the error says %q, too: %v", m, err)
		}
	}
	if got := Classify(err); got.Reason != reason {
		t.Errorf("classified %s (%s), want %s", got.Reason, got.Message, reason)
	}
}

// messageContains fails the test if the message lacks one of the words.
func messageContains(t testing.TB, err error, words ...string) {
	t.Helper()
	message := Classify(err).Message
	for _, w := range words {
		if !strings.Contains(message, w) {
			t.Errorf("the message is %q, want it to say %q", message, w)
		}
	}
	if n := len([]rune(message)); n > 1000 || strings.Contains(message, "\n") {
		t.Errorf("a message of %d characters is not for people: %q", n, message)
	}
}

// entry returns the fields that a manager owns by an operation, in canonical JSON; "" if it has no such entry.
func entry(u *unstructured.Unstructured, manager string, operation metav1.ManagedFieldsOperationType, sub string) string {
	for _, e := range u.GetManagedFields() {
		if e.Manager == manager && e.Operation == operation && e.Subresource == sub {
			var b bytes.Buffer
			if err := json.Compact(&b, e.FieldsV1.GetRawBytes()); err != nil {
				return err.Error()
			}
			return b.String()
		}
	}
	return ""
}

func managers(u *unstructured.Unstructured) []string {
	var out []string
	for _, e := range u.GetManagedFields() {
		out = append(out, e.Manager+" "+string(e.Operation)+" "+e.Subresource)
	}
	slices.Sort(out)
	return out
}

func field(t testing.TB, u *unstructured.Unstructured, path ...string) any {
	t.Helper()
	v, _, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func parse(paths ...string) []fieldpath.Path {
	var out []fieldpath.Path
	for _, p := range paths {
		out = append(out, fieldpath.MustParse(p))
	}
	return out
}
