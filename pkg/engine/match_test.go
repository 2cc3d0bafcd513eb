package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// gold selects by an annotation, and fails for an object without annotations.
const gold = `matchConditions: [
  {name: is-gold, expression: "self.metadata.annotations['tier'] == params.tier"},
  {name: is-alive, expression: "!has(self.spec.replicas) || self.spec.replicas > 0"}]`

func annotated(name, annotation, spec string) string {
	return strings.Replace(widget(name, spec), "{name: "+name+"}", "{name: "+name+", annotations: {"+annotation+"}}", 1)
}

// What does not meet the match conditions costs no request and is not listed. What meets them no longer is cleaned up after.
func TestMatchConditions(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := watched(fill(widgetConfig, ns, name), gold) + "parameters: {tier: gold}\n"
		testkit.Apply(t, ns, annotated("before", "tier: silver", `{data: {key: value}}`))
		_, counter := startCounted(t, conf)
		testkit.Apply(t, ns, annotated("a", "tier: gold", `{data: {key: value}}`))
		waitData(t, ns, "a", "key", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		settle(t, counter)
		testkit.Apply(t, ns, annotated("never", "tier: silver", `{data: {key: value}}`))
		testkit.Patch(t, widgets, ns, "before", "somebody", `{"spec":{"data":{"key":"other"}}}`)
		deleteAndWait(t, widgets, ns, "never")
		atMostRequests(t, counter, 0, "objects that were never upstreams")
		surveyAll(t, testkit.Config(t), survey.Options{}, conf).expect(t, "a", "none a")

		testkit.Patch(t, widgets, ns, "before", "somebody", `{"metadata":{"annotations":{"tier":"gold"}}}`)
		waitData(t, ns, "before", "key", "other")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"annotations":{"tier":"silver"}}}`)
		waitGone(t, configMaps, ns, "a")
		readyIs(t, widgets, ns, "a", "False", "NotSelected", "does not meet the match condition is-gold")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"annotations":{"tier":"gold"}}}`)
		waitData(t, ns, "a", "key", "value")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"replicas":0}}`)
		waitGone(t, configMaps, ns, "a")
	})
}

// While a condition cannot be evaluated, nothing is made, changed or removed for the object; it can be deleted.
func TestMatchConditionFails(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		conf := elsewhere(watched(fill(widgetConfig, ns, name), gold), other, ns) + "parameters: {tier: gold}\n"
		first, counter := startCounted(t, conf)
		for _, object := range []string{"a", "b"} {
			testkit.Apply(t, ns, annotated(object, "tier: gold", `{namespace: `+other+`, data: {key: value}}`))
			waitCondition(t, widgets, ns, object, "Ready", "True")
		}
		settle(t, counter)
		for _, object := range []string{"a", "b"} {
			testkit.Patch(t, widgets, ns, object, "somebody", `{"metadata":{"annotations":null}, "spec":{"data":{"key":"other"}}}`)
		}
		testkit.Eventually(t, patience, func() (bool, string) {
			return metric(t, "corollary_failures_total", name) >= 2, "it is not counted"
		})
		quiet(t, counter)
		deleteAndWait(t, widgets, ns, "b")
		waitGone(t, configMaps, other, "b")
		first.halt()
		again := start(t, counter.Wrap(testkit.Config(t)), conf).ready()
		quiet(t, counter)
		again.halt()
		waitData(t, other, "a", "key", "value")
		if n := counter.Mutating(func(r testkit.Request) bool { return r.Name == "a" }); n > 0 {
			t.Errorf("%d writes for the object: %v", n, counter.Snapshot())
		}
	})
}
