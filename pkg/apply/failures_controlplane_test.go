//go:build controlplane

package apply

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
			f := setupFor(t, testkit.Config(t))
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

// TestForbidden: the error names the rights that are missing: for a first apply both, and not those on a subresource.
func TestForbidden(t *testing.T) {
	admin := setupFor(t, testkit.Config(t))
	tg := admin.target(configMaps, "a")
	live := admin.create(tg, configMap)
	as := func(name string, rule rbacv1.PolicyRule) *fixture {
		f := setupFor(t, testkit.User(t, name, rule))
		f.ns = admin.ns
		return f
	}
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
	}
	f, patcher := as("reader", rule("configmaps", "get")), as("patcher", rule("configmaps", "patch"))
	finalizer := as("finalizer", rule("configmaps/finalizers", "patch", "update"))
	obj := doc(t, configMap)
	cases := []struct {
		needs string
		do    func() error
	}{
		{"create and patch configmaps in namespace " + f.ns, func() error {
			_, err := f.c.Create(t.Context(), f.target(configMaps, "b"), obj)
			return err
		}},
		{"create and patch configmaps in namespace " + f.ns, func() error {
			_, err := patcher.c.Create(t.Context(), f.target(configMaps, "b"), obj)
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
		{"patch configmaps in namespace " + f.ns,
			func() error { _, err := finalizer.c.AddFinalizer(t.Context(), tg, live, "example.com/x"); return err }},
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
	t.Run("a missing right to impersonate is not reported as one of the impersonated user", func(t *testing.T) {
		cfg := testkit.User(t, "process", rule("configmaps", "get", "patch"))
		cfg.Impersonate.UserName = "system:serviceaccount:team-a:app"
		f := setupFor(t, cfg)
		_, err := f.c.Apply(t.Context(), f.target(configMaps, "a"), nobody, obj)
		expectError(t, err, nil, ReasonForbidden)
		messageContains(t, err, `User "process-`, "cannot impersonate")
		if strings.Contains(err.Error(), "needs: ") || !Impersonating(err) {
			t.Error(err)
		}
	})
}

// TestDenied: a refusal of admission is not reported as a missing right, although the API server's response is similar.
func TestDenied(t *testing.T) {
	f := setupFor(t, testkit.Config(t))
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
