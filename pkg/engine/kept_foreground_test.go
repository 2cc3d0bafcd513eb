package engine_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestKeptInForeground: what deletionPolicy keeps since the config has changed stays when its upstream is deleted in the foreground, also if
// nothing else is done for the upstream.
func TestKeptInForeground(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		spec   string // of the upstream before the config changes
		config func(conf string) string
		patch  string
	}{
		{name: "nothing in the way"},
		{name: "paused", patch: `{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`},
		{name: "invalid", spec: `{data: {bad: "yes"}}`},
		{name: "cannot be rendered", config: func(conf string) string {
			return strings.Replace(conf, "data: {{ .spec.data }}", `data: {key: "{{ fail "no" }}"}`, 1)
		}},
		{name: "an input is missing", config: func(conf string) string {
			return conf + "inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: '\"missing\"'}]\n"
		}},
		{name: "made once", config: func(conf string) string { return with(conf, "updatePolicy: CreateOnly") }},
		{name: "superseded", config: func(conf string) string {
			return strings.Replace(conf, `name: {{ .spec.name | default .metadata.name }}`, `name: "{{ fail "no" }}"`, 1)
		}},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name) + "validate: [{rule: \"self.spec.?data.?bad.orValue('') != 'yes'\", message: bad}]\nguard: {maxDeleted: 100%}\n"
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			before := waitData(t, ns, "a", "key", "value")
			if row.patch != "" {
				testkit.Patch(t, widgets, ns, "a", "somebody", fill(row.patch, ns, name))
			}
			if row.spec != "" {
				testkit.Apply(t, ns, widget("a", row.spec))
				waitCondition(t, widgets, ns, "a", "Ready", "False")
			}
			r.halt()
			conf = with(conf, "deletionPolicy: Orphan")
			if row.config != nil {
				conf = row.config(conf)
			}
			counter := testkit.NewCounter()
			r = start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			bubble.Quiet(t, counter)
			r.halt() // the garbage collector may be quicker
			foreground := metav1.DeletePropagationForeground
			if err := testkit.Dynamic(t).Resource(widgets).Namespace(ns).Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			start(t, testkit.Config(t), conf)
			waitGone(t, widgets, ns, "a")
			if cm := testkit.Find(t, configMaps, ns, "a"); cm == nil || cm.GetUID() != before.GetUID() || cm.GetDeletionTimestamp() != nil {
				t.Error("what deletionPolicy keeps was deleted")
			}
		}))
	}
}
