//go:build controlplane

package engine_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestDerivedWhileOthersWrite: an update of an object that others change leaves no derived value behind, and fails only
// if they change it all the time. Then it is completed later, also after a restart, whatever the status said last.
func TestDerivedWhileOthersWrite(t *testing.T) {
	t.Parallel()
	for title, times := range map[string]int64{"some times": 3, "all the time": 1000} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := making(fill(widgetConfig, ns, name), "networking.k8s.io/v1", "NetworkPolicy", egressBody)
			var left atomic.Int64 // how often another writer changes the object right before the first of the operator's comparisons with a new one
			cfg := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				replaces := r.Header.Get("Content-Type") == string(types.JSONPatchType) && r.URL.Query().Has("dryRun")
				if n := left.Load(); replaces && n > 0 {
					left.Add(-1)
					testkit.Patch(t, networkPolicies, ns, "a", "other", fmt.Sprintf(`{"metadata": {"annotations": {"other": "%d"}}}`, n))
				}
				return next.RoundTrip(r)
			})
			o := start(t, cfg, conf)
			testkit.Apply(t, ns, widget("a", `{data: {egress: x}}`))
			waitField(t, networkPolicies, ns, "a", []any{"Ingress", "Egress"}, "spec", "policyTypes")
			waitDownstream(t, ns, "a", "InSync")
			left.Store(times)
			testkit.Apply(t, ns, widget("a", `{data: {other: x}}`))
			if times == 1000 {
				waitMetricFrom(t, 5, "corollary_failures_total", name, "reason", "Changed")
				o.halt()
				start(t, testkit.Config(t), conf)
			}
			waitField(t, networkPolicies, ns, "a", []any{"Ingress"}, "spec", "policyTypes")
			waitDownstream(t, ns, "a", "InSync")
			if got := metric(t, "corollary_failures_total", name, "reason", "Changed"); (got > 0) != (times == 1000) {
				t.Errorf("%v attempts failed", got)
			}
		})
	}
}

// TestDerivedAfterEachDeath: an operator that is killed before or after any of its writes leaves no derived value
// behind once it has been started again, nor a field that the template does not have.
func TestDerivedAfterEachDeath(t *testing.T) {
	t.Parallel()
	testkit.EachWrite(t, testkit.Deaths, func(t *testing.T, strike *testkit.Strike) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		conf := making(fill(widgetConfig, ns, name), "networking.k8s.io/v1", "NetworkPolicy", egressBody)
		testkit.Apply(t, ns, widget("a", `{data: {other: x}}`))
		life := strike.Run(t, testkit.Config(t), func(cfg *rest.Config) func() { return start(t, cfg, conf).halt })
		defer life.Stop()
		until := func(want ...any) {
			life.Eventually(patience, func() (bool, string) {
				u, up := testkit.Find(t, networkPolicies, ns, "a"), testkit.Get(t, widgets, ns, "a")
				if u == nil {
					return false, "it does not exist"
				}
				have, _, _ := unstructured.NestedSlice(u.Object, "spec", "policyTypes")
				state, observed := downstreamsOf(up)["config"]["state"], up.GetGeneration()
				generation, _, _ := unstructured.NestedInt64(up.Object, "status", "observedGeneration")
				owned := slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
					return strings.Contains(e.FieldsV1.GetRawString(), "policyTypes")
				})
				return reflect.DeepEqual(have, want) && state == "InSync" && generation == observed && !owned, fmt.Sprintf("it is %v, %v; owned: %v", have, state, owned)
			})
		}
		until("Ingress")
		testkit.Apply(t, ns, widget("a", `{data: {egress: x}}`))
		until("Ingress", "Egress")
		testkit.Apply(t, ns, widget("a", `{data: {other: x}}`))
		until("Ingress")
	})
}

// TestAbandonedFields: what others have put into a map of ours does not keep us from a document without the map, if it
// is only that which the API server refuses: an injected caBundle beside conversion.strategy None, someone's maxSurge
// beside strategy Recreate.
func TestAbandonedFields(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	bundle := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for _, row := range []struct {
		apiVersion, kind, body, before, after, patch string
		gvr                                          schema.GroupVersionResource
		field                                        []string
		want                                         map[string]any
	}{
		{apiVersion: "apps/v1", kind: "Deployment", body: rollingBody, gvr: deployments, before: "RollingUpdate", after: "Recreate",
			patch: `{"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}`,
			field: []string{"spec", "strategy"}, want: map[string]any{"type": "Recreate"}},
		{apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", body: convertedBody, gvr: crds, before: "Webhook", after: "None",
			patch: `{"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "` + bundle + `"}}}}}`,
			field: []string{"spec", "conversion"}, want: map[string]any{"strategy": "None"}},
	} {
		t.Run(row.kind, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			object, inNamespace := "a", ns
			if row.gvr == crds {
				object, inNamespace = "things."+name+".example.com", ""
			}
			widgetOf := func(data string) string {
				return widget("a", fmt.Sprintf(`{name: %s, data: {group: %s.example.com, %s}}`, object, name, data))
			}
			start(t, testkit.Config(t), making(fill(widgetConfig, ns, name), row.apiVersion, row.kind, row.body)).ready()
			testkit.Apply(t, ns, widgetOf("type: "+row.before+", extra: x"))
			waitDownstream(t, ns, "a", "InSync")
			testkit.Patch(t, row.gvr, inNamespace, object, "other", row.patch)
			testkit.Apply(t, ns, widgetOf("type: "+row.after))
			waitField(t, row.gvr, inNamespace, object, row.want, row.field...)
			waitDownstream(t, ns, "a", "InSync")
		})
	}
}

const egressBody = `
spec:
  podSelector: {matchLabels: {app: a}}
  ingress: [{from: [{podSelector: {}}]}]
  {{- if .spec.data.egress }}
  egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]
  {{- end }}
`

const rollingBody = `
spec:
  strategy:
    type: {{ .spec.data.type }}
    {{- if .spec.data.extra }}
    rollingUpdate: {maxUnavailable: 1}
    {{- end }}
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: a, image: example.com/a}]}
`

const convertedBody = `
spec:
  group: {{ .spec.data.group }}
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
  conversion:
    strategy: {{ .spec.data.type }}
    {{- if .spec.data.extra }}
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: "https://convert.example.com"}
    {{- end }}
`
