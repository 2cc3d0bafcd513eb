package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// What one tenant writes neither stops the process nor keeps others waiting, and each gets to know why.
func TestHostileUpstreams(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		text := strings.Replace(fill(widgetConfig, ns, name), "data: {{ .spec.data }}", `data: {key: {{ .spec.data.key | default "none" }}, text: "{{ range until (.spec.data.count | default 0 | int) }}x{{ end }}"}`, 1)
		start(t, testkit.Config(t), text).ready()
		for i, n := range []string{"-9223372036854775808", "9223372036854775807", "1000000000", "400000"} {
			testkit.Apply(t, ns, widget(fmt.Sprint("hostile", i), fmt.Sprintf("{data: {count: %q}}", n)))
		}
		applyReady(t, ns, "innocent", "{data: {key: value}}")
		waitData(t, ns, "innocent", "key", "value")
		for i := range 4 {
			up := waitCondition(t, widgets, ns, fmt.Sprint("hostile", i), "Ready", "False")
			if _, reason, message := condition(up, "Ready"); reason != "RenderFailed" || !strings.Contains(message, "more than") && !strings.Contains(message, "longer than") {
				t.Errorf("%s: Ready says %s: %s", up.GetName(), reason, message)
			}
		}
	})
}
