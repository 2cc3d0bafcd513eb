//go:build controlplane

package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestRefusals tests how refusals of a document are classified, in particular a 500 with only a text.
func TestRefusals(t *testing.T) {
	in := func(from, to string) string { return strings.Replace(deployment, from, to, 1) }
	image := `image: "registry.example.com/web:1"`
	widgetWith := func(spec string) string {
		return `{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: web}, spec: {` + spec + `}}`
	}
	big := func(n int) string { return widgetWith("text: " + strings.Repeat("a", n)) }
	cases := []struct {
		reason          string
		gvr             schema.GroupVersionResource
		yaml            string
		want            string
		messageContains string
	}{
		{"a field that a CRD does not have", widgets, widgetWith("nope: 1"), ReasonSchemaMismatch,
			"web: .spec.nope: field not declared in schema"},
		{"a field that a built-in kind does not have", deployments, in("replicas", "replcas"), ReasonSchemaMismatch,
			"web: .spec.replcas: field not declared in schema"},
		{"one deep in a list", deployments, in("image:", "imag:"), ReasonSchemaMismatch,
			`.spec.template.spec.containers[name="app"].imag: field not declared in schema`},
		{"one in the metadata", configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labelz: {}}}`, ReasonSchemaMismatch,
			".metadata.labelz: field not declared"},
		{"one at the root", widgets, `{apiVersion: tools.example.com/v1, kind: Widget, spek: {}}`, ReasonSchemaMismatch,
			".spek: field not declared"},
		{"text for an integer", widgets, widgetWith(`number: "5"`), ReasonSchemaMismatch,
			".spec.number: expected numeric (int or float), got string"},
		{"a number for text: the value is not told, for it could be a secret's", configMaps, `{apiVersion: v1, kind: ConfigMap, data: {a: 5}}`,
			ReasonSchemaMismatch, ".data.a: expected string"},
		{"a list key twice", deployments, in(image, image+`, env: [{name: A, value: "1"}, {name: A, value: "2"}]`), ReasonSchemaMismatch,
			`.env: duplicate entries for key [name="A"]`},
		{"an item of a set twice", widgets, widgetWith("set: [a, a]"), ReasonSchemaMismatch, ".spec.set: "},
		{"several at once", deployments, in(image, image+`, tty: "x", stdin: "x"`), ReasonSchemaMismatch, ".stdin: expected boolean"},
		{"a quantity that is none", deployments, in(image, image+`, resources: {limits: {cpu: abc}}`), ReasonSchemaMismatch,
			"quantities must match"},
		{"null for a typed field of a CRD", widgets, widgetWith("text: null"), ReasonRejected, "spec.text: Invalid value"},
		{"a bad value", deployments, in("replicas: 3", "replicas: -1"), ReasonRejected,
			"spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"a label that is none", deployments, in("name: web}", `name: web, labels: {a: "b c"}}`), ReasonRejected,
			"metadata.labels: Invalid value"},
		{"too large for the store", widgets, big(1_600_000), ReasonTooLarge, "request is too large"},
		{"too large to be sent to the store", widgets, big(2_300_000), ReasonTooLarge, "larger than max"},
		{"too large for the API server", widgets, big(3_200_000), ReasonTooLarge, "limit is"},
		{"too large for the kind", configMaps, `{apiVersion: v1, kind: ConfigMap, data: {a: ` + strings.Repeat("a", 1_100_000) + `}}`,
			ReasonRejected, "1048576 bytes"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			f := setup(t)
			_, err := f.c.Create(t.Context(), f.target(tc.gvr, "web"), doc(t, tc.yaml))
			expectError(t, err, nil, tc.want)
			messageContains(t, err, tc.messageContains)
			if !Classify(err).Persistent() {
				t.Error("repetition alone will not fix it, but it is not called persistent")
			}
			if strings.Contains(err.Error(), "value.value") {
				t.Errorf("Go's internals are in the message: %s", err)
			}
		})
	}
}

// TestUnknownFieldAtEveryLevel: an apply never drops a field silently, whatever fieldValidation is: the level that Apply sets
// is only a precaution.
func TestUnknownFieldAtEveryLevel(t *testing.T) {
	f := setup(t)
	tg := f.target(deployments, "web")
	force := true
	body, err := encode(document(tg, doc(t, strings.Replace(deployment, "replicas", "replcas", 1)), "", createOnly))
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"", metav1.FieldValidationIgnore, metav1.FieldValidationWarn, metav1.FieldValidationStrict} {
		_, err := f.c.resource(tg).Patch(t.Context(), tg.Name, types.ApplyYAMLPatchType, body,
			metav1.PatchOptions{FieldManager: ours, Force: &force, FieldValidation: level})
		if got := Classify(err).Reason; got != ReasonSchemaMismatch {
			t.Errorf("at level %q: %v, want %s", level, err, ReasonSchemaMismatch)
		}
	}
}

// TestNullOnBuiltIn: a null for a field of a built-in kind sets its default, unlike with a CRD.
func TestNullOnBuiltIn(t *testing.T) {
	f := setup(t)
	out := f.create(f.target(deployments, "web"), strings.Replace(deployment, "replicas: 3", "replicas: null", 1))
	if got := field(t, out, "spec", "replicas"); got != int64(1) {
		t.Errorf("replicas are %v, want the default", got)
	}
}

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
	if _, err := f.c.Delete(t.Context(), ns, made.GetUID(), metav1.DeletePropagationBackground); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, eventually, func() (bool, string) { // admission sees it through a watch
		_, err = f.c.Create(t.Context(), Target{GVR: configMaps, Namespace: name, Name: testkit.Unique(t)}, doc(t, configMap))
		return err != nil, "objects can still be created"
	})
	expectError(t, err, nil, ReasonNamespaceTerminating)
	messageContains(t, err, "being terminated")
}

func TestForbidden(t *testing.T) {
	admin := setup(t)
	tg := admin.target(configMaps, "a")
	live := admin.create(tg, configMap)
	f := setupFor(t, testkit.User(t, "reader", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"},
		Verbs: []string{"get"}}))
	f.ns = admin.ns
	obj := doc(t, configMap)
	cases := []struct {
		needs string
		do    func() error
	}{
		{"create and patch configmaps in namespace " + f.ns, func() error {
			_, err := f.c.Create(t.Context(), f.target(configMaps, "b"),
				obj)
			return err
		}},
		{"patch configmaps in namespace " + f.ns, func() error { _, err := f.c.Apply(t.Context(), tg, live.GetUID(), obj); return err }},
		{"create configmaps in namespace " + f.ns, func() error { return f.c.Accepts(t.Context(), tg, obj) }},
		{"delete configmaps in namespace " + f.ns, func() error {
			_, err := f.c.Delete(t.Context(), tg, live.GetUID(), metav1.DeletePropagationBackground)
			return err
		}},
		{"patch configmaps in namespace " + f.ns,
			func() error { _, err := f.c.AddFinalizer(t.Context(), tg, live, "example.com/x"); return err }},
		{"patch configmaps in namespace " + f.ns, func() error { _, err := f.c.Release(t.Context(), tg, live, Marks{}); return err }},
		{"patch widgets.tools.example.com/status in namespace " + f.ns, func() error {
			_, err := f.applyStatus(f.target(widgets, "a"), nobody, map[string]any{"phase": "x"})
			return err
		}},
		{"patch namespaces", func() error {
			_, err := f.c.Apply(t.Context(), Target{GVR: namespaces, Name: f.ns}, nobody, map[string]any{"apiVersion": "v1", "kind": "Namespace"})
			return err
		}},
		{"get widgets.tools.example.com in namespace " + f.ns,
			func() error { _, err := f.c.Get(t.Context(), f.target(widgets, "a")); return err }},
	}
	for _, tc := range cases {
		t.Run(tc.needs, func(t *testing.T) {
			err := tc.do()
			expectError(t, err, nil, ReasonForbidden)
			messageContains(t, err, "cannot", "needs: "+tc.needs)
			if !strings.HasSuffix(err.Error(), tc.needs) {
				t.Errorf("%q does not end in %q", err, tc.needs)
			}
		})
	}
}

// TestForbiddenToCreate: a first apply needs both verbs, and the error names the missing one.
func TestForbiddenToCreate(t *testing.T) {
	f := setupFor(t, testkit.User(t, "patcher", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"},
		Verbs: []string{"patch"}}))
	_, err := f.c.Create(t.Context(), f.target(configMaps, "a"), doc(t, configMap))
	expectError(t, err, nil, ReasonForbidden)
	messageContains(t, err, "needs: create and patch configmaps in namespace "+f.ns)
}

// TestForbiddenToImpersonate: a missing right to impersonate is not reported as a missing right of the impersonated user.
func TestForbiddenToImpersonate(t *testing.T) {
	cfg := testkit.User(t, "process", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"},
		Verbs: []string{"get", "patch"}})
	cfg.Impersonate.UserName = "system:serviceaccount:team-a:app"
	f := setupFor(t, cfg)
	_, err := f.c.Apply(t.Context(), f.target(configMaps, "a"), nobody, doc(t, configMap))
	expectError(t, err, nil, ReasonForbidden)
	messageContains(t, err, `User "process-`, "cannot impersonate")
	if strings.Contains(err.Error(), "needs: ") || !Impersonating(err) {
		t.Error(err)
	}
}

// TestDenied: a refusal of admission is not reported as a missing right, although the API server's response is similar.
func TestDenied(t *testing.T) {
	f := setup(t)
	testkit.Patch(t, namespaces, "", f.ns, "test", `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
	var err error
	testkit.Eventually(t, eventually, func() (bool, string) { // admission sees the label through a watch
		_, err = f.c.Create(t.Context(), f.target(pods, testkit.Unique(t)),
			doc(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: a}]}}`))
		return err != nil, "the pod is admitted"
	})
	expectError(t, err, nil, ReasonDenied)
	messageContains(t, err, "violates PodSecurity")
	if strings.Contains(err.Error(), "needs:") {
		t.Errorf("a right is asked for that is there: %s", err)
	}
}

// TestConflictReadsTheObject: after a 409 the object is read; if that fails, the object counts neither as gone nor as replaced.
func TestConflictReadsTheObject(t *testing.T) {
	faults := testkit.NewFaults()
	f := setupFor(t, faults.Wrap(testkit.Config(t)))
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
	f := setupFor(t, faults.Wrap(testkit.Config(t)))
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
