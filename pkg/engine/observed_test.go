package engine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestObservedGeneration: a custom downstream whose controller never writes status.observedGeneration is ready by what it
// confirms and by the rules, once it has said anything; ready.observedGeneration changes that.
func TestObservedGeneration(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		policy, atFirst, written string // whether it is ready without a status, and with one that has no generation
	}{{"", "False", "True"}, {"Auto", "False", "True"}, {"Required", "False", "False"}, {"Optional", "True", "True"}} {
		t.Run("policy "+row.policy, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(fill(widgetConfig, ns, name), "apiVersion: v1\n    kind: ConfigMap", "apiVersion: test.example.com/v1\n    kind: Gadget", 1)
			conf = strings.Replace(conf, "      data: {{ .spec.data }}\n", "      spec: {data: {{ .spec.data }}}\n", 1)
			if row.policy != "" {
				conf = with(conf, "ready: {observedGeneration: "+row.policy+"}")
			}
			start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			up := waitCondition(t, widgets, ns, "a", "Ready", row.atFirst)
			if _, _, message := condition(up, "Ready"); row.atFirst == "False" && !strings.Contains(message, "has not seen it yet") {
				t.Errorf("it says %q", message)
			}
			testkit.Update(t, gadgets, ns, "a", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, "done", "status", "summary")
			}, "status")
			if row.written == "True" {
				waitCondition(t, widgets, ns, "a", "Ready", "True")
			}
			testkit.Update(t, gadgets, ns, "a", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, u.GetGeneration()-1, "status", "observedGeneration")
			}, "status")
			waitCondition(t, widgets, ns, "a", "Ready", "False")
			testkit.Update(t, gadgets, ns, "a", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, u.GetGeneration(), "status", "observedGeneration")
			}, "status")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}
