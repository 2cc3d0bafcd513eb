package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestMissing(t *testing.T) {
	f := setup(t)
	obj := doc(t, configMap)
	group := "tools.example.com"
	cases := []struct {
		reason          string
		target          Target
		want            string
		messageContains string
	}{
		{"the namespace", Target{GVR: configMaps, Namespace: "no-such", Name: "a"}, ReasonNamespaceNotFound, `namespaces "no-such" not found`},
		{"the kind, in a group that is served", f.target(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}, "a"),
			ReasonKindNotServed, "gadgets.tools.example.com"},
		{"the version", f.target(schema.GroupVersionResource{Group: group, Version: "v9", Resource: "widgets"}, "a"), ReasonKindNotServed,
			"in version v9"},
		{"the group", f.target(schema.GroupVersionResource{Group: "none.example.com", Version: "v1", Resource: "gadgets"}, "a"),
			ReasonKindNotServed, "is its CustomResourceDefinition installed"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := f.c.Create(t.Context(), tc.target, obj)
			expectError(t, err, nil, tc.want)
			messageContains(t, err, tc.messageContains)
			if tc.want == ReasonKindNotServed {
				_, err = f.c.Apply(t.Context(), tc.target, nobody, obj)
				expectError(t, err, nil, tc.want) // not ErrGone
				_, err = f.c.Get(t.Context(), tc.target)
				expectError(t, err, nil, tc.want)
			}
		})
	}
	_, err := f.c.Get(t.Context(), f.target(configMaps, "no-such"))
	expectError(t, err, ErrGone, ReasonNotFound)
	_, err = f.c.Apply(t.Context(), Target{GVR: configMaps, Namespace: "no-such", Name: "a"}, nobody, obj)
	expectError(t, err, ErrGone, ReasonNotFound) // together with its namespace
}

// TestRemovedKind: the errors when a CRD is removed while its objects are reconciled.
func TestRemovedKind(t *testing.T) {
	f := setup(t)
	testkit.InstallCRDs(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: passings.tools.example.com}
spec:
  group: tools.example.com
  scope: Namespaced
  names: {plural: passings, singular: passing, kind: Passing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
	tg := f.target(schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "passings"}, "a")
	made := f.create(tg, `{apiVersion: tools.example.com/v1, kind: Passing, metadata: {name: a, labels: {a: b}}}`)
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	testkit.Delete(t, crds, "", "passings.tools.example.com")
	var err error
	testkit.Eventually(t, eventually, func() (bool, string) {
		_, err = f.c.Apply(t.Context(), tg, made.GetUID(), made.Object)
		return Classify(err).Reason == ReasonKindNotServed, fmt.Sprintf("an apply gives %v", err)
	})
	_, err = f.c.Create(t.Context(), tg, made.Object)
	expectError(t, err, nil, ReasonKindNotServed)
	testkit.Eventually(t, eventually, func() (bool, string) { // otherwise the next CRD of that name would be removed with it
		return testkit.Find(t, crds, "", "passings.tools.example.com") == nil, "its definition is still there"
	})
}

// TestTerminatingNamespace uses a namespace that is never finalized, because no namespace controller runs here.
func TestTerminatingNamespace(t *testing.T) {
	f := setup(t)
	name := testkit.Unique(t)
	ns := Target{GVR: namespaces, Name: name}
	made, err := f.c.Create(t.Context(), ns, doc(t, `{apiVersion: v1, kind: Namespace}`))
	if err != nil {
		t.Fatal(err)
	}
	must.Get(f.c.Delete(t.Context(), ns, made.GetUID(), metav1.DeletePropagationBackground)).In(t)
	testkit.Eventually(t, eventually, func() (bool, string) { // admission sees it through a watch
		_, err = f.c.Create(t.Context(), Target{GVR: configMaps, Namespace: name, Name: testkit.Unique(t)}, doc(t, configMap))
		return err != nil, "objects can still be created"
	})
	expectError(t, err, nil, ReasonNamespaceTerminating)
	messageContains(t, err, "being terminated")
}

// TestConflictReadsTheObject: after a 409 the object is read; if that fails, the object counts neither as gone nor as
// replaced.
func TestConflictReadsTheObject(t *testing.T) {
	faults := testkit.NewFaults()
	f := setupFor(t, faults.Wrap(memory(t)))
	tg := f.target(configMaps, "a")
	live := f.create(tg, configMap)
	remove := func() error {
		_, err := f.c.Delete(t.Context(), tg, live.GetUID(), metav1.DeletePropagationBackground)
		return err
	}
	write := func() error {
		_, err := f.c.Apply(t.Context(), tg, live.GetUID(), doc(t, configMap))
		return err
	}
	for verb, do := range map[string]func() error{"DELETE": remove, "PATCH": write} {
		fault := faults.Answer(409, testkit.On(verb, "configmaps"))
		expectError(t, do(), ErrConflict, ReasonChanged)
		fault.Off()
	}
	blind := faults.Answer(403, testkit.On("GET", "configmaps"))
	_, err := f.c.Delete(t.Context(), tg, nobody, metav1.DeletePropagationBackground)
	expectError(t, err, ErrConflict, ReasonChanged)
	blind.Off()
}

func TestNoAnswer(t *testing.T) {
	faults := testkit.NewFaults()
	f := setupFor(t, faults.Wrap(memory(t)))
	tg := f.target(configMaps, "a")

	fault := faults.Drop(testkit.On("PATCH", "configmaps"))
	_, err := f.c.Create(t.Context(), tg, doc(t, configMap))
	expectError(t, err, nil, ReasonUnavailable)
	fault.Off()

	fault = faults.Lose(testkit.On("PATCH", "configmaps")) // the request arrives, its response does not
	_, err = f.c.Create(t.Context(), tg, doc(t, configMap))
	expectError(t, err, nil, ReasonUnavailable)
	fault.Off()
	_, err = f.c.Create(t.Context(), tg, doc(t, configMap))
	expectError(t, err, ErrExists, ReasonAlreadyExists)
	want := []string{"apply configmaps 0", "apply configmaps 0", "apply configmaps 409"}
	if strings.Join(f.requests, ",") != strings.Join(want, ",") {
		t.Errorf("the observer heard %v, want %v", f.requests, want)
	}

	for code, reason := range map[int]string{500: ReasonInternalError, 503: ReasonUnavailable} {
		fault := faults.Answer(code, testkit.On("PATCH", "configmaps"))
		_, err = f.c.Apply(t.Context(), tg, nobody, doc(t, configMap))
		expectError(t, err, nil, reason)
		fault.Off()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.c.Get(ctx, tg)
	expectError(t, err, nil, ReasonCanceled)
}
