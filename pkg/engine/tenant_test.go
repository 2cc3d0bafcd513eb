package engine_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// fenceConfig fences a Namespace in. The status of a Namespace is not ours, so nothing records what has been made.
const fenceConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
watch: {apiVersion: v1, kind: Namespace, labelSelector: {matchLabels: {fence: NAME}}}
downstreams:
  - name: quota
    apiVersion: v1
    kind: ResourceQuota
    template: "{metadata: {name: fence, namespace: {{ .metadata.name }}}, spec: {hard: {pods: '50', requests.cpu: '8'}}}"
  - name: limits
    apiVersion: v1
    kind: LimitRange
    template: |
      metadata: {name: fence, namespace: {{ .metadata.name }}}
      spec: {limits: [{type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 100m}}]}
  - name: policy
    apiVersion: networking.k8s.io/v1
    kind: NetworkPolicy
    template: |
      metadata: {name: fence, namespace: {{ .metadata.name }}}
      spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
conventions:
  fieldManager: NAME
  labels: {NAME.example.com/managed: "yes"}
  hash: {annotation: NAME.example.com/hash}
status: {enabled: false}
events: None
retry: {minDelay: 1s}
`

// A tenant adds to objects that limit their Namespace. After a restart this causes no request; our fields are still enforced, and
// what the tenant added stays.
func TestTenantAddsToOurObjects(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.ReplaceAll(fenceConfig, "NAME", name)
		fences := []struct {
			gvr             schema.GroupVersionResource
			adds, tampers   string
			ours, theirs    []string
			enforced, stays any
		}{
			{
				gvr:  schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"},
				adds: `{"spec":{"hard":{"services":"5"}}}`, tampers: `{"spec":{"hard":{"pods":"5000"}}}`,
				ours: []string{"spec", "hard", "pods"}, enforced: "50", theirs: []string{"spec", "hard", "services"}, stays: "5",
			},
			{
				gvr:     schema.GroupVersionResource{Version: "v1", Resource: "limitranges"},
				adds:    `{"metadata":{"labels":{"theirs":"x"},"finalizers":["tenant.example.com/hold"]}}`,
				tampers: `{"spec":{"limits":[{"type":"Container","default":{"cpu":"50"}},{"type":"Pod","max":{"cpu":"100"}}]}}`,
				ours:    []string{"spec", "limits"}, enforced: []any{map[string]any{"type": "Container", "default": map[string]any{"cpu": "500m"}, "defaultRequest": map[string]any{"cpu": "100m"}}},
				theirs: []string{"metadata", "labels", "theirs"}, stays: "x",
			},
			{
				gvr:  schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
				adds: `{"metadata":{"annotations":{"theirs":"x"}}}`, tampers: `{"spec":{"policyTypes":["Egress"]}}`,
				ours: []string{"spec", "policyTypes"}, enforced: []any{"Ingress", "Egress"}, theirs: []string{"metadata", "annotations", "theirs"}, stays: "x",
			},
		}
		enforced := func() {
			t.Helper()
			for _, f := range fences {
				testkit.Eventually(t, patience, func() (bool, string) {
					u := testkit.Find(t, f.gvr, ns, "fence")
					if u == nil {
						return false, f.gvr.Resource + " is not there"
					}
					have, _, _ := unstructured.NestedFieldNoCopy(u.Object, f.ours...)
					return reflect.DeepEqual(have, f.enforced), fmt.Sprintf("%s has %v", f.gvr.Resource, have)
				})
			}
		}
		tamper := func() {
			t.Helper()
			for _, f := range fences {
				testkit.Patch(t, f.gvr, ns, "fence", "tenant", f.tampers)
			}
			enforced()
		}
		testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"fence":"`+name+`"}}}`)
		r := start(t, testkit.Config(t), conf).ready()
		enforced()
		r.halt()

		for _, f := range fences {
			testkit.Patch(t, f.gvr, ns, "fence", "tenant", f.adds)
		}
		counter := testkit.NewCounter()
		r = start(t, counter.Wrap(testkit.Config(t)), conf).ready()
		quiet(t, counter)
		if asked := counter.Requests(func(r testkit.Request) bool { return r.Name != "" && r.Resource != "" && r.Verb != "WATCH" }); len(asked) > 0 {
			t.Errorf("a restart costs %v", asked)
		}
		tamper()
		r.halt()
		for _, f := range fences {
			testkit.Patch(t, f.gvr, ns, "fence", "tenant", f.tampers)
		}
		start(t, testkit.Config(t), conf).ready()
		enforced()
		tamper()
		for _, f := range fences {
			have, _, _ := unstructured.NestedFieldNoCopy(testkit.Get(t, f.gvr, ns, "fence").Object, f.theirs...)
			if have != f.stays {
				t.Errorf("what the tenant added to %s is %v", f.gvr.Resource, have)
			}
			testkit.Patch(t, f.gvr, ns, "fence", "tenant", `{"metadata":{"finalizers":null}}`)
		}
	})
}
