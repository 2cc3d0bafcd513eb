//go:build controlplane

package engine_test

import (
	_ "embed"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestDeniedFields: a value that admission denies keeps nothing else out of the status either. It is tried again from time to
// time, since nobody tells when a policy changes.
func TestDeniedFields(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	bindings := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
	testkit.Apply(t, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: `+name+`}, spec: {
  matchConstraints: {resourceRules: [{apiGroups: [test.example.com], apiVersions: [v1], operations: [UPDATE], resources: [widgets/status]}]},
  validations: [{expression: "!has(object.status) || !has(object.status.summary) || object.status.summary != 'denied'"}]}}`)
	testkit.Apply(t, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: `+name+`}, spec: {policyName: `+name+`,
  validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+ns+`}}}}}`)
	testkit.Apply(t, ns, widget("probe", `{data: {key: value}}`))
	testkit.Eventually(t, patience, func() (bool, string) {
		_, err := testkit.Dynamic(t).Resource(widgets).Namespace(ns).Patch(t.Context(), "probe", types.MergePatchType, []byte(`{"status":{"summary":"denied"}}`), metav1.PatchOptions{}, "status")
		return err != nil, "the policy does not refuse anything yet"
	})
	deleteAndWait(t, widgets, ns, "probe")

	conf := strings.Replace(fill(widgetConfig, ns, name), "  downstreams: .status.downstreams\n", `  downstreams: .status.downstreams
  fields: [{path: .status.summary, value: self.spec.data.key}, {path: .status.count, value: size(self.spec.data)}]
`, 1) + rule
	start(t, testkit.Config(t), conf).ready()
	testkit.Apply(t, ns, widget("a", `{replicas: 1, data: {key: denied}}`))
	waitReason(t, widgets, ns, "StatusFieldRefused", "")
	testkit.Apply(t, ns, widget("a", `{replicas: 21, data: {key: denied}}`))
	waitReason(t, widgets, ns, "Invalid", "")
	testkit.Apply(t, ns, widget("a", `{replicas: 1, data: {key: denied}}`))
	waitReason(t, widgets, ns, "StatusFieldRefused", "")
	testkit.Delete(t, bindings, "", name)
	waitReason(t, widgets, ns, "Ready", "denied")
	testkit.Delete(t, bindings.GroupVersion().WithResource("validatingadmissionpolicies"), "", name)
}
