//go:build controlplane

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestInitialFields(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := strings.NewReplacer("v1\n    kind: ConfigMap", "apps/v1\n    kind: Deployment",
		"      data: {{ .spec.data }}\n", `      spec:
        replicas: 1
        selector: {matchLabels: {app: a}}
        template:
          metadata: {labels: {app: a}, annotations: {{ .spec.data }}}
          spec: {containers: [{name: app, image: "registry.example.com/app:1"}]}
`).Replace(with(fill(widgetConfig, ns, name), "drift: {initialFields: [.spec.replicas]}"))
	start(t, testkit.Config(t), conf).ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	annotation := func(want string, replicas int64) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			d := testkit.Find(t, deployments, ns, "a")
			if d == nil {
				return false, "no Deployment"
			}
			have, _, _ := unstructured.NestedString(d.Object, "spec", "template", "metadata", "annotations", "key")
			n, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
			return have == want && n == replicas, fmt.Sprintf("%s with %d replicas", have, n)
		})
	}
	annotation("value", 1)
	// A change while we own the field alone must not reset it, and an autoscaler's value must survive ours.
	testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"second"}}}`)
	annotation("second", 1)
	testkit.Patch(t, deployments, ns, "a", "autoscaler", `{"spec":{"replicas":5}}`, "scale")
	testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"third"}}}`)
	annotation("third", 5)
	testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"fourth"}}}`)
	annotation("fourth", 5)
}
