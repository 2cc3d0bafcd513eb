//go:build controlplane

package engine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// TestBaselineIsRecorded: what an apply returned outlives the process. Neither a restart nor a reload nor a takeover makes a
// request or reverts anything.
func TestBaselineIsRecorded(t *testing.T) {
	t.Parallel()
	for _, object := range spelled {
		for _, how := range []string{"restart", "reload", "takeover"} {
			t.Run(object.name+" "+how, func(t *testing.T) {
				t.Parallel()
				ns, name := testkit.Namespace(t), testkit.Unique(t)
				conf := making(fill(widgetConfig, ns, name), object.apiVersion, object.kind, object.body)
				if object.mutate {
					mirror(t, ns, "configmaps", keyOf, probeOfKey)
				}
				r, counter := startCounted(t, conf)
				testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
				up := waitDownstream(t, ns, "a", "InSync")
				atMostRequests(t, counter, 4, "a new object") // a status for its progress, and one for its end
				if b := downstreamsOf(up)["config"]["baseline"]; b == nil || b == "" {
					t.Errorf("no baseline is recorded: %v", downstreamsOf(up))
				}
				before := testkit.Get(t, object.gvr, ns, "a")
				counter.Reset()
				replaceBy(t, how, r, counter, name, conf)
				quiet(t, counter)
				if n := counter.Total(func(r testkit.Request) bool { return r.Resource != "widgets" || r.Mutating() }); n > 0 {
					t.Errorf("a %s takes %d requests: %v", how, n, counter.Snapshot())
				}
				after := testkit.Get(t, object.gvr, ns, "a")
				value, _, _ := unstructured.NestedString(after.Object, object.field...)
				if after.GetResourceVersion() != before.GetResourceVersion() || value != object.value {
					t.Errorf("a %s changed it: %v", how, after.Object)
				}
			})
		}
	}
	// Where the status has no place for it, a restart applies such an object once, and then it rests.
	t.Run("unrecorded", func(t *testing.T) {
		t.Parallel()
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		mirror(t, ns, "configmaps", keyOf, probeOfKey)
		conf := withoutRecord(t, fill(widgetConfig, ns, name))
		r, counter := startCounted(t, conf)
		applyReady(t, ns, "a", `{data: {key: value}}`)
		waitData(t, ns, "a", "key", "mirror/value")
		quiet(t, counter)
		replaceBy(t, "restart", r, counter, name, conf)
		waitData(t, ns, "a", "key", "value")
		quiet(t, counter)
	})
}

const probeOfKey = `{apiVersion: v1, kind: ConfigMap, metadata: {name: PROBE}, data: {key: value}}`

// spelled are objects of which the API server stores something else than what is applied.
var spelled = []struct {
	name                   string
	gvr                    schema.GroupVersionResource
	apiVersion, kind, body string
	field                  []string
	value                  string // as it is stored
	mutate                 bool
}{
	{"a value that admission changes on creation", configMaps, "v1", "ConfigMap", "data: {{ .spec.data }}", []string{"data", "key"}, "mirror/value", true},
	{"a quantity", schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}, "v1", "ResourceQuota", `spec: {hard: {cpu: 1000m}}`,
		[]string{"spec", "hard", "cpu"}, "1", false},
}

func keyOf(cm map[string]any) (pointer, value string) {
	value, _, _ = unstructured.NestedString(cm, "data", "key")
	return "/data/key", value
}

// replaceBy puts another process, or another config, in the place of r.
func replaceBy(t *testing.T, how string, r *running, counter *testkit.Counter, name, conf string) {
	t.Helper()
	switch how {
	case "restart":
		r.halt()
		start(t, counter.Wrap(testkit.Config(t)), conf).ready()
	case "reload":
		r.changeTo(name, strings.Replace(conf, "maxDelay: 10s", "maxDelay: 11s", 1))
	case "takeover":
		elected := make(chan struct{})
		startWith(t, counter.Wrap(testkit.Config(t)), func(_ *config.Operator, o *engine.Options) {
			o.Elected, o.HadOtherLeader = elected, func() bool { return true }
		}, conf).ready()
		r.halt()
		close(elected)
	}
}
