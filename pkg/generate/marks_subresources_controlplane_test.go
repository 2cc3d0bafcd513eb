//go:build controlplane

package generate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/testkit"
)

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

// TestMarksBySubresources: subresources other than the status also write metadata, and do not bypass the policy; a write without
// marks passes.
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
