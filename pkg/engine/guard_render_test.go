package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// A reload after which upstreams fail to render that were rendered before waits, whatever guard allows: what fails is named. One that
// failed before does not count.
func TestGuardHoldsRenderFailures(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name) // less than guard.minimum, so that no deletion would be held
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("good", `{data: {key: value}}`))
		testkit.Apply(t, ns, widget("bad", `{}`))
		waitCondition(t, widgets, ns, "good", "Ready", "True")
		waitCondition(t, widgets, ns, "bad", "Ready", "False")
		testkit.Eventually(t, patience, func() (bool, string) {
			err := r.ObjectsReady(nil)
			return err != nil && strings.Contains(err.Error(), "operator "+name+": 1 of 2 upstreams are not Ready: RenderFailed 1"), text(err)
		})
		r.mustBeReady()

		needsMore := strings.Replace(conf, "data: {{ .spec.data }}", `data: {key: "{{ .spec.data.more }}"}`, 1)
		r.reloadTo(needsMore)
		waitState(t, name, "GuardWaiting")
		says := "1 upstream that the active config renders would be RenderFailed without confirmation: " + ns + "/good (config: RenderFailed: "
		testkit.Eventually(t, patience, func() (bool, string) {
			message := text(r.Reloaded(nil))
			return strings.Contains(message, says) && strings.Contains(message, ".spec.data.more"), "it says " + message
		})
		waitData(t, ns, "good", "key", "value")
		r.mustBeReady()

		r.confirm(needsMore)
		waitState(t, name, "Running")
		testkit.Eventually(t, patience, func() (bool, string) {
			err := r.ObjectsReady(nil)
			return err != nil && strings.Contains(err.Error(), "RenderFailed 2"), text(err)
		})
	})
}

// A reload that makes fewer upstreams fail does not wait.
func TestGuardAllowsFewerRenderFailures(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("bad", `{}`))
		waitCondition(t, widgets, ns, "bad", "Ready", "False")
		r.reloadTo(strings.Replace(conf, "data: {{ .spec.data }}", "data: {{ .spec.data | default dict }}", 1))
		waitCondition(t, widgets, ns, "bad", "Ready", "True")
	})
}
