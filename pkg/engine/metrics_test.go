package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// waitUpstreams waits until one upstream is counted, and that as ready and reason say.
func waitUpstreams(t *testing.T, name, ready, reason string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		all := metric(t, "corollary_upstreams", name)
		return all == 1 && metric(t, "corollary_upstreams", name, "ready", ready, "reason", reason) == 1, "it is not counted as " + ready + " " + reason
	})
}

// An upstream is counted once, by what Ready says, as long as it is there and worked on.
func TestUpstreamsAreCounted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, status string }{
		{"as the status says", "status:\n"},
		{"what Ready would say, where no status is written", "status:\n  enabled: false\n"},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(fill(widgetConfig, ns, name), "status:\n", row.status, 1) + rule
			r, faults := startFaulty(t, conf)
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitUpstreams(t, name, "True", "Ready")

			testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"replicas":21}}`)
			waitUpstreams(t, name, "False", "Invalid")

			refusal := faults.Answer(500, testkit.On("PATCH", "configmaps"))
			testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"replicas":1,"data":{"key":"other"}}}`)
			waitUpstreams(t, name, "False", "InternalError")
			refusal.Off()
			waitUpstreams(t, name, "True", "Ready")

			testkit.Delete(t, widgets, ns, "a")
			waitMetric(t, 0, "corollary_upstreams", name)
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitUpstreams(t, name, "True", "Ready")
			r.halt()
			metricIs(t, 0, "corollary_upstreams", name)
		}))
	}
}

// A status that cannot be written says nothing, so that the count is where it shows; what keeps an upstream that is being deleted is
// counted too, whoever it waits for.
func TestUpstreamsWithFaultsAreCounted(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, faults := startFaulty(t, fill(widgetConfig, ns, name)+waiting)
		refusal := faults.Answer(500, testkit.On("PATCH", "widgets/status"))
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitUpstreams(t, name, "True", "InternalError")
		refusal.Off()
		waitUpstreams(t, name, "True", "Ready")
		refusal = faults.Answer(500, testkit.On("DELETE", "configmaps"))
		testkit.Delete(t, widgets, ns, "a")
		waitUpstreams(t, name, "False", "InternalError")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":["elsewhere.example.com/hold"]}}`)
		refusal.Off()
		waitUpstreams(t, name, "False", "Deleting")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":null}}`)
		waitGone(t, widgets, ns, "a")
		waitMetric(t, 0, "corollary_upstreams", name)
	})
}
