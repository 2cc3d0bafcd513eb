package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// A downstream that cannot be rendered yet does not keep the upstream from getting the finalizer that another one needs.
func TestFinalizerWithAWaitingDownstream(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, waits string }{
		{"an input is missing", `{{ (input "settings").data.color }}`},
		{"the template fails", `{{ .spec.data.missing | upper }}`},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := withInputs(ns, name, "owner: {", "owner: {reference: false, ", `color: {{ (input "settings").data.color }}`, "color: "+row.waits)
			conf = strings.Replace(conf, "    # downstream\n", "  - name: other\n    apiVersion: v1\n    kind: ConfigMap\n    template: |\n"+
				"      metadata: {name: \"{{ .metadata.name }}-other\"}\n      data: {key: value}\n", 1)
			r := start(t, testkit.Config(t), conf).ready()
			applyReader(t, ns, "a", "blue")
			waitData(t, ns, "a-other", "key", "value")
			if f := testkit.Get(t, widgets, ns, "a").GetFinalizers(); len(f) != 1 {
				t.Errorf("finalizers are %v beside an object that nothing else cleans up", f)
			}
			deleteAndWait(t, widgets, ns, "a")
			waitGone(t, configMaps, ns, "a-other")
			r.halt()
		}))
	}
}
