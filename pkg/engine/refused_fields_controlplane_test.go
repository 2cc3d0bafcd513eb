//go:build controlplane

package engine_test

import (
	_ "embed"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestDeniedFields: a value that admission denies keeps nothing else out of the status either. It is tried again from time to
// time, since nobody tells when a policy changes.
func TestDeniedFields(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	lift := testkit.Policy(t, ns, "Validating", "UPDATE", "test.example.com", "widgets/status",
		`  validations: [{expression: "!has(object.status) || !has(object.status.summary) || object.status.summary != 'denied'"}]`)
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
	lift()
	waitReason(t, widgets, ns, "Ready", "denied")
}
