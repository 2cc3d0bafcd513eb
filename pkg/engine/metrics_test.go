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
		t.Run(row.reason, bubbled(func(t *testing.T) {
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := strings.Replace(fill(widgetConfig, ns, name), "status:\n", row.status, 1) + rule
			faults := testkit.NewFaults()
			r := start(t, faults.Wrap(testkit.Config(t)), conf).ready()
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
			testkit.Eventually(t, patience, func() (bool, string) {
				return metric(t, "corollary_upstreams", name) == 0, "it is counted though it is gone"
			})
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitUpstreams(t, name, "True", "Ready")
			r.halt()
			if n := metric(t, "corollary_upstreams", name); n != 0 {
				t.Errorf("%v upstreams are counted, nobody works on any", n)
			}
		}))
	}
}

// A status that cannot be written says nothing, so that the count is where it shows.
func TestUpstreamWhoseStatusCannotBeWritten(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		faults := testkit.NewFaults()
		start(t, faults.Wrap(testkit.Config(t)), fill(widgetConfig, ns, name)).ready()
		refusal := faults.Answer(500, testkit.On("PATCH", "widgets/status"))
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitUpstreams(t, name, "True", "InternalError")
		refusal.Off()
		waitUpstreams(t, name, "True", "Ready")
	})
}

// What keeps an upstream that is being deleted is counted too, whoever it waits for.
func TestDeletedUpstreamsAreCounted(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		faults := testkit.NewFaults()
		start(t, faults.Wrap(testkit.Config(t)), fill(widgetConfig, ns, name)+waiting).ready()
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitUpstreams(t, name, "True", "Ready")
		refusal := faults.Answer(500, testkit.On("DELETE", "configmaps"))
		testkit.Delete(t, widgets, ns, "a")
		waitUpstreams(t, name, "False", "InternalError")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":["elsewhere.example.com/hold"]}}`)
		refusal.Off()
		waitUpstreams(t, name, "False", "Deleting")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":null}}`)
		waitGone(t, widgets, ns, "a")
		testkit.Eventually(t, patience, func() (bool, string) {
			return metric(t, "corollary_upstreams", name) == 0, "it is counted though it is gone"
		})
	})
}
