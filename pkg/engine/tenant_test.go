package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
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
			gvr            schema.GroupVersionResource
			adds, tampers  string
			ours, enforced string // a path, and the value there
			theirs, stays  string
		}{
			{schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"},
				`{"spec":{"hard":{"services":"5"}}}`, `{"spec":{"hard":{"pods":"5000"}}}`, ".spec.hard.pods", "50", ".spec.hard.services", "5"},
			{schema.GroupVersionResource{Version: "v1", Resource: "limitranges"},
				`{"metadata":{"labels":{"theirs":"x"},"finalizers":["tenant.example.com/hold"]}}`,
				`{"spec":{"limits":[{"type":"Container","default":{"cpu":"50"}},{"type":"Pod","max":{"cpu":"100"}}]}}`,
				".spec.limits", "[map[default:map[cpu:500m] defaultRequest:map[cpu:100m] type:Container]]", ".metadata.labels.theirs", "x"},
			{networkPolicies,
				`{"metadata":{"annotations":{"theirs":"x"}}}`, `{"spec":{"policyTypes":["Egress"]}}`, ".spec.policyTypes", "[Ingress Egress]", ".metadata.annotations.theirs", "x"},
		}
		valueOf := func(gvr schema.GroupVersionResource, path string) string {
			u := testkit.Find(t, gvr, ns, "fence")
			if u == nil {
				return "not there"
			}
			have, _ := fieldpath.Get(u.Object, fieldpath.MustParse(path))
			return fmt.Sprint(have)
		}
		enforced := func() {
			t.Helper()
			for _, f := range fences {
				testkit.Eventually(t, patience, func() (bool, string) {
					have := valueOf(f.gvr, f.ours)
					return have == f.enforced, f.gvr.Resource + " has " + have
				})
			}
		}
		tamper := func() {
			for _, f := range fences {
				testkit.Patch(t, f.gvr, ns, "fence", "tenant", f.tampers)
			}
		}
		testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"fence":"`+name+`"}}}`)
		r := start(t, testkit.Config(t), conf).ready()
		enforced()
		r.halt()

		for _, f := range fences {
			testkit.Patch(t, f.gvr, ns, "fence", "tenant", f.adds)
		}
		r, counter := startCounted(t, conf)
		exactly(t, counter, 0, "a restart", func(r testkit.Request) bool { return r.Name != "" })
		tamper()
		enforced()
		r.halt()
		tamper()
		start(t, testkit.Config(t), conf).ready()
		enforced()
		tamper()
		enforced()
		for _, f := range fences {
			if have := valueOf(f.gvr, f.theirs); have != f.stays {
				t.Errorf("what the tenant added to %s is %s", f.gvr.Resource, have)
			}
			testkit.Patch(t, f.gvr, ns, "fence", "tenant", `{"metadata":{"finalizers":null}}`)
		}
	})
}
