//go:build controlplane

package generate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

var (
	apps        = schema.GroupVersionResource{Group: "generate.example.com", Version: "v1", Resource: "apps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
)

// silent is a log that nobody reads.
var silent = funcr.New(func(string, string) {}, funcr.Options{})

// markedConfig makes a Deployment of each App, which the Deployment controller makes a ReplicaSet of.
const markedConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
watch: {apiVersion: generate.example.com/v1, kind: App, namespaces: [NS]}
downstreams:
  - name: deployment
    apiVersion: apps/v1
    kind: Deployment
    template: |
      metadata: {name: {{ .metadata.name }}}
      spec:
        replicas: {{ .spec.replicas }}
        selector: {matchLabels: {app: {{ .metadata.name }}}}
        template:
          metadata: {labels: {app: {{ .metadata.name }}}}
          spec: {containers: [{name: app, image: {{ .spec.image }}}]}
conventions:
  fieldManager: NAME
  labels: {NAME.example.com/managed: "yes", app.kubernetes.io/part-of: shop, NAME.example.com/app: "{{ .metadata.name }}"}
  hash: {annotation: NAME.example.com/hash}
  owner: {annotation: NAME.example.com/owner}
  finalizer: NAME.example.com/cleanup
status:
  conditions: {ready: Ready}
  downstreams: .status.downstreams
events: None
retry: {minDelay: 1s, maxDelay: 2s}
`

// forged is a Deployment with what makes it look like the operator's.
const forged = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": %q, %s}, "spec": {"selector": {"matchLabels": {"app": "x"}},
  "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "app", "image": "evil"}]}}}}`

// marked is an operator with its policy, and a user who may do everything with Deployments.
type marked struct {
	t         *testing.T
	ns, name  string
	files     []*load.File
	user      dynamic.ResourceInterface
	uid       types.UID // of App a
	operating *rest.Config
}

func newMarked(t *testing.T) *marked {
	t.Helper()
	m := &marked{t: t, ns: testkit.Namespace(t), name: testkit.Unique(t)}
	m.files = loaded(t, m.fill(markedConfig))
	user, err := dynamic.NewForConfig(testkit.User(t, "somebody", rbacv1.PolicyRule{
		APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/status", "deployments/scale"}, Verbs: []string{"*"}}))
	if err != nil {
		t.Fatal(err)
	}
	m.user = user.Resource(deployments).Namespace(m.ns)
	up := testkit.Apply(t, m.ns, `{apiVersion: generate.example.com/v1, kind: App, metadata: {name: a}, spec: {image: "web:1", replicas: 1}}`)
	m.uid = up.GetUID()
	// The operator works as a ServiceAccount, by a user who may act as everybody.
	m.operating = rest.CopyConfig(testkit.Config(t))
	m.operating.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + m.ns + ":operator",
		Groups: []string{"system:masters"}}
	return m
}

func (m *marked) fill(text string) string {
	return strings.NewReplacer("NS", m.ns, "NAME", m.name).Replace(text)
}

// enforce applies the policy and waits until it is in force.
func (m *marked) enforce() {
	m.t.Helper()
	notes := applyMarks(m.t, m.files[0], m.ns)
	if len(notes) > 0 {
		m.t.Fatal(notes)
	}
	testkit.Eventually(m.t, patience, func() (bool, string) {
		err := m.create(m.t.Context(), "probe", m.fill(`"annotations": {"NAME.example.com/owner": "x"}`),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err) && m.refused(err), fmt.Sprintf("the policy is not in force: %v", err)
	})
}

// applyMarks applies the policy of an operator that works as the ServiceAccount operator, and returns its notes.
func applyMarks(t *testing.T, f *load.File, ns string) []string {
	t.Helper()
	source := must.Get(kinds.Offline("testdata/crds")).In(t)
	policy := must.Get(generate.MarksPolicy(compiled(t, f, source),
		generate.MarksOptions{Accounts: []generate.Identity{{Namespace: ns, Name: "operator"}}})).In(t)
	apply(t, policy.Manifests)
	return policy.Notes
}

// create creates a Deployment with that metadata as the user.
func (m *marked) create(ctx context.Context, name, metadata string, o metav1.CreateOptions) error {
	u := testkit.Parse(m.t, fmt.Sprintf(forged, name, metadata))
	_, err := m.user.Create(ctx, u, o)
	return err
}

// start runs the operator until the test ends.
func (m *marked) start() {
	m.t.Helper()
	mgr := must.Get(manager.New(m.operating, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: silent})).In(m.t)
	must.Get(engine.New(m.operating, mgr, m.files, engine.Options{Workers: 2, Log: silent})).In(m.t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	m.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			m.t.Error(err)
		}
	})
}

// deployment waits for the Deployment to be as it should.
func (m *marked) deployment(why string, ok func(u *unstructured.Unstructured) bool) *unstructured.Unstructured {
	m.t.Helper()
	var found *unstructured.Unstructured
	testkit.Eventually(m.t, patience, func() (bool, string) {
		found = testkit.Find(m.t, deployments, m.ns, "a")
		return ok(found), why
	})
	return found
}

// refused reports whether the policy refuses a request, and fails the test where something else does.
func (m *marked) refused(err error) bool {
	m.t.Helper()
	if err != nil && (!apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "only operator "+m.name)) {
		m.t.Errorf("not refused by the policy: %v", err)
	}
	return err != nil
}

// TestMarks: nobody but the operator marks an object of its downstreams' kinds as its own, or takes the marks away; the
// operator does its whole work, and everybody else what they do.
func TestMarks(t *testing.T) {
	t.Parallel()
	m := newMarked(t)
	controls := fmt.Sprintf(`{"apiVersion": "generate.example.com/v1", "kind": "App", "name": "a", "uid": %q, "controller": true}`, m.uid)
	plain := strings.Replace(controls, `, "controller": true`, "", 1)
	other := strings.Replace(controls, "generate.example.com", "other.example.com", 1)
	creations := []struct {
		reason, metadata string
		refused          bool
	}{
		{"no mark", `"labels": {"a": "b"}, "annotations": {"c": "d"}`, false},
		{"the owner annotation", `"annotations": {"NAME.example.com/owner": "x"}`, true},
		{"even an empty one", `"annotations": {"NAME.example.com/owner": ""}`, true},
		{"the hash", `"annotations": {"NAME.example.com/hash": "x"}`, true},
		{"the constant labels", `"labels": {"NAME.example.com/managed": "yes", "app.kubernetes.io/part-of": "shop"}`, true},
		{"one of them, which others may have too", `"labels": {"app.kubernetes.io/part-of": "shop"}`, false},
		{"a label that differs from object to object", `"labels": {"NAME.example.com/app": "a"}`, false},
		{"an upstream that controls it", `"ownerReferences": [` + controls + `]`, true},
		{"an upstream that it only goes with", `"ownerReferences": [` + plain + `]`, false},
		{"a kind of that name of another group", `"ownerReferences": [` + other + `]`, false},
		{"all of them", `"labels": {"NAME.example.com/managed": "yes", "app.kubernetes.io/part-of": "shop"}, "annotations": {"NAME.example.com/hash": "x"}, "ownerReferences": [` + controls + `]`, true},
	}
	try := func(c string) bool {
		return m.refused(m.create(t.Context(), "forged", m.fill(c), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	for _, c := range creations {
		if try(c.metadata) {
			t.Errorf("%s: refused without the policy", c.reason)
		}
	}
	m.enforce()
	for _, c := range creations {
		must.Same(t, c.refused, try(c.metadata), c.reason, "refused")
	}
	m.start()
	m.deployment("not made", func(u *unstructured.Unstructured) bool { return u != nil })
	m.editing(plain)
	m.living()
}

// editing is what the user does to the operator's Deployment.
func (m *marked) editing(plain string) {
	for _, c := range []struct {
		reason, patch, subresource string
		refused                    bool
	}{
		{"a field", `{"spec": {"revisionHistoryLimit": 3}}`, "", false},
		{"a label and an annotation", `{"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}`, "", false},
		{"a finalizer", `{"metadata": {"finalizers": ["example.com/hold"]}}`, "", false},
		{"without finalizer", `{"metadata": {"finalizers": null}}`, "", false},
		{"the scale", `{"spec": {"replicas": 2}}`, "scale", false},
		{"the status", `{"status": {"observedGeneration": 1}}`, "status", false},
		{"an owner of another kind",
			`{"metadata": {"ownerReferences": [REFS, {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}]}}`, "", false},
		{"another hash", `{"metadata": {"annotations": {"NAME.example.com/hash": "x"}}}`, "", true},
		{"no hash", `{"metadata": {"annotations": {"NAME.example.com/hash": null}}}`, "", true},
		{"no hash, by way of the status", `{"metadata": {"annotations": {"NAME.example.com/hash": null}}}`, "status", true},
		{"an owner annotation", `{"metadata": {"annotations": {"NAME.example.com/owner": "x"}}}`, "", true},
		{"without a constant label", `{"metadata": {"labels": {"app.kubernetes.io/part-of": null}}}`, "", true},
		{"another value", `{"metadata": {"labels": {"NAME.example.com/managed": "no"}}}`, "", true},
		{"without owner", `{"metadata": {"ownerReferences": null}}`, "", true},
		{"another upstream", `{"metadata": {"ownerReferences": [REFS, ` + strings.Replace(plain, `"name": "a"`, `"name": "b"`, 1) +
			`]}}`, "", true},
	} {
		live := testkit.Get(m.t, deployments, m.ns, "a")
		patch := strings.ReplaceAll(m.fill(c.patch), "REFS", reference(live))
		_, err := m.user.Patch(m.t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, strings.Fields(c.subresource)...)
		must.Same(m.t, c.refused, m.refused(err), c.reason, "refused")
	}
}

// reference is the object's first owner reference as JSON.
func reference(u *unstructured.Unstructured) string {
	r := u.GetOwnerReferences()[0]
	return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "name": %q, "uid": %q, "controller": true}`, r.APIVersion, r.Kind, r.Name, r.UID)
}

// living is the operator's and Kubernetes' own work: update, repair, copies of labels and annotations, make again,
// clean up.
func (m *marked) living() {
	t := m.t
	testkit.Patch(t, apps, m.ns, "a", "somebody", `{"spec": {"image": "web:2"}}`)
	m.deployment("not updated", func(u *unstructured.Unstructured) bool { return strings.Contains(fmt.Sprint(u.Object), "web:2") })
	testkit.Eventually(t, patience, func() (bool, string) {
		list := testkit.List(t, replicaSets, m.ns, "")
		return len(list) >= 2 && list[0].GetAnnotations()[m.name+".example.com/hash"] != "", fmt.Sprintf("%d ReplicaSets", len(list))
	})
	if err := m.user.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Errorf("deleting is free: %v", err)
	}
	m.deployment("not made again", func(u *unstructured.Unstructured) bool { return u != nil && u.GetDeletionTimestamp() == nil })
	// Orphaning: the garbage collector takes the owner reference away.
	orphan := metav1.DeletePropagationOrphan
	must.Do(t, testkit.Dynamic(t).Resource(apps).Namespace(m.ns).Delete(t.Context(), "a",
		metav1.DeleteOptions{PropagationPolicy: &orphan}))
	testkit.Eventually(t, patience, func() (bool, string) {
		return testkit.Find(t, apps, m.ns, "a") == nil, "the upstream is still there"
	})
	m.deployment("its owner reference is not taken away", func(u *unstructured.Unstructured) bool {
		return u == nil || len(u.GetOwnerReferences()) == 0
	})
}

// doorsConfig makes objects of kinds whose metadata can be written by way of subresources. Its policy is about every
// namespace, that of other tests included: so its upstreams are of a kind that no other test has owners of.
const doorsConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
watch: {apiVersion: NAME.example.com/v1, kind: Door}
downstreams:
  - {name: room, apiVersion: v1, kind: Namespace, template: "metadata: {name: x}"}
  - {name: pod, apiVersion: v1, kind: Pod, template: "metadata: {name: x}"}
  - {name: deployment, apiVersion: apps/v1, kind: Deployment, template: "metadata: {name: x}"}
conventions:
  fieldManager: NAME
  labels: {NAME.example.com/managed: "yes"}
  hash: {annotation: NAME.example.com/hash}
  owner: {annotation: NAME.example.com/owner}
  finalizer: NAME.example.com/cleanup
status: {conditions: {ready: Ready}}
`

// TestMarksBySubresources: subresources other than the status also write metadata, and do not bypass the policy; a
// write without marks passes.
func TestMarksBySubresources(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	testkit.Apply(t, ns, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`)
	for _, name := range []string{"free", "a"} {
		testkit.Apply(t, ns, `{apiVersion: v1, kind: Pod, metadata: {name: `+name+`},
  spec: {automountServiceAccountToken: false, containers: [{name: app, image: app}]}}`)
	}
	testkit.Apply(t, ns, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}},
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: app, image: app}]}}}}`)
	enforceDoors(t, ns, name)

	client := testkit.Dynamic(t)
	annotations := map[string]any{name + ".example.com/hash": "forged"}
	bind := func(ctx context.Context, pod string, annotations map[string]any, by schema.GroupVersionResource, subresources ...string) error {
		_, err := client.Resource(by).Namespace(ns).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": pod, "annotations": annotations},
			"target": map[string]any{"kind": "Node", "name": "nowhere"}}}, metav1.CreateOptions{}, subresources...)
		return err
	}
	bindings := schema.GroupVersionResource{Version: "v1", Resource: "bindings"}
	none := map[string]any{}
	for reason, test := range map[string]struct {
		refused bool
		write   func(ctx context.Context) error
	}{
		"a Namespace, by finalize": {true, func(ctx context.Context) error { return finalize(ctx, t, client, ns, annotations) }},
		"a Pod, by its binding":    {true, func(ctx context.Context) error { return bind(ctx, "a", annotations, pods, "binding") }},
		"a Pod, by a Binding":      {true, func(ctx context.Context) error { return bind(ctx, "a", annotations, bindings) }},
		"no mark, by finalize":     {false, func(ctx context.Context) error { return finalize(ctx, t, client, ns, none) }},
		"no mark, by a binding":    {false, func(ctx context.Context) error { return bind(ctx, "free", none, pods, "binding") }},
		"the scale": {false, func(ctx context.Context) error {
			_, err := client.Resource(deployments).Namespace(ns).Patch(ctx, "a", "application/merge-patch+json", []byte(`{"spec": {"replicas": 2}}`),
				metav1.PatchOptions{}, "scale")
			return err
		}},
	} {
		err := test.write(t.Context())
		if refused := err != nil && strings.Contains(err.Error(), "only operator "+name); refused != test.refused || err != nil &&
			!refused {
			t.Errorf("%s: refused %v, want %v: %v", reason, refused, test.refused, err)
		}
	}
	for _, u := range []*unstructured.Unstructured{testkit.Get(t, pods, ns, "a"),
		testkit.Get(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", ns)} {
		if u.GetAnnotations()[name+".example.com/hash"] != "" {
			t.Errorf("%s %s bears a forged mark", u.GetKind(), u.GetName())
		}
	}
}

// finalize writes a Namespace's finalizers, and what else is in it.
func finalize(ctx context.Context, t *testing.T, client dynamic.Interface, name string, annotations map[string]any) error {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	u := testkit.Get(t, namespaces, "", name)
	if err := unstructured.SetNestedMap(u.Object, annotations, "metadata", "annotations"); err != nil {
		return err
	}
	_, err := client.Resource(namespaces).Update(ctx, u, metav1.UpdateOptions{}, "finalize")
	return err
}

// enforceDoors applies the policy of doorsConfig and waits until it is in force.
func enforceDoors(t *testing.T, ns, name string) {
	t.Helper()
	applyMarks(t, loaded(t, strings.ReplaceAll(doorsConfig, "NAME", name))[0], ns)
	probe := fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: probe, annotations: {%q: x}}, spec: {containers: [{name: app, image: app}]}}`, name+".example.com/owner")
	testkit.Eventually(t, patience, func() (bool, string) {
		u := testkit.Parse(t, probe)
		_, err := testkit.Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(ns).Create(t.Context(), u,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "only operator "+name), fmt.Sprintf("the policy is not in force: %v", err)
	})
}
