package engine_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// waitField waits until a field of an object has a value.
func waitField(t *testing.T, gvr schema.GroupVersionResource, ns, name string, want any, fields ...string) *obj {
	t.Helper()
	return waitThat(t, gvr, ns, name, func(u *obj) bool {
		have, _, _ := unstructured.NestedFieldNoCopy(u.Object, fields...)
		return reflect.DeepEqual(have, want)
	})
}

const strategyBody = `
spec:
  strategy: {type: {{ .spec.data.strategy }}}
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: a, image: example.com/a}]}
`

// TestNotRecreatedForADefault: a default that nobody owns, and that the new document does not allow, is removed. With updatePolicy Recreate,
// the object is not deleted for it.
func TestNotRecreatedForADefault(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Apply", "Recreate"} {
		t.Run(policy, spaced(func(t *testing.T, ns, name string) {
			start(t, testkit.Config(t), with(making(fill(widgetConfig, ns, name), "apps/v1", "Deployment", strategyBody), "updatePolicy: "+policy)).ready()
			testkit.Apply(t, ns, widget("a", `{data: {strategy: RollingUpdate}}`))
			before := waitField(t, deployments, ns, "a", "RollingUpdate", "spec", "strategy", "type")
			testkit.Apply(t, ns, widget("a", `{data: {strategy: Recreate}}`))
			after := waitField(t, deployments, ns, "a", map[string]any{"type": "Recreate"}, "spec", "strategy")
			if before.GetUID() != after.GetUID() {
				t.Error("it was deleted and created again")
			}
			waitDownstream(t, ns, "a", "InSync")
		}))
	}
}
