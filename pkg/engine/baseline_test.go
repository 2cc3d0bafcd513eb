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
