package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// watched makes a config select its upstreams by labels of theirs or of their namespace.
func watched(conf, selector string) string {
	return strings.Replace(conf, "kind: Widget, ", "kind: Widget, "+selector+", ", 1)
}

// bySelection runs a test with a label selector, and with a match condition that asks for the same label: both let an upstream go alike.
func bySelection(t *testing.T, test func(t *testing.T, selection string)) {
	for name, selection := range map[string]string{
		"label":     `labelSelector: {matchLabels: {served: "yes"}}`,
		"condition": `matchConditions: [{name: served, expression: "self.metadata.?labels.served.orValue('no') == 'yes'"}]`,
	} {
		t.Run(name, bubbled(func(t *testing.T) { test(t, selection) }))
	}
}

// A new namespace may be heard of later than what was made in it.
func TestNamespaceSelectorLate(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		name := testkit.Unique(t)
		conf := strings.Replace(fill(widgetConfig, "x", name), "namespaces: [x]", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+name+"}}, "+
			"labelSelector: {matchLabels: {of: "+name+"}}", 1) // so that it looks at nobody else's
		_, faults := startFaulty(t, conf)
		deaf := faults.Drop(testkit.On("WATCH", "namespaces"))
		faults.Cut(testkit.On("WATCH", "namespaces"))
		testkit.Apply(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
		testkit.Apply(t, name, strings.Replace(widget("a", `{data: {key: value}}`), "{name: a}", "{name: a, labels: {of: "+name+"}}", 1))
		waitMetricFrom(t, 1, "corollary_reconcile_seconds", name)
		deaf.Off()
		waitData(t, name, "a", "key", "value")
	})
}

// A label that comes back before its loss is looked at takes nothing away.
func TestLabelLostAndBack(t *testing.T) {
	bySelection(t, func(t *testing.T, selection string) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		conf := watched(fill(widgetConfig, ns, name), selection)
		_, faults := startFaulty(t, conf)
		testkit.Apply(t, ns, strings.Replace(widget("a", `{data: {key: value}}`), "{name: a}", `{name: a, labels: {served: "yes"}}`, 1))
		cm := waitData(t, ns, "a", "key", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		// The read fails until the label is back; the watch does not show it yet.
		unread := faults.Answer(500, testkit.On("GET", "widgets"))
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"served":null}}}`)
		testkit.Eventually(t, patience, func() (bool, string) { return unread.Hits() > 0, "not read" })
		deaf, unlisted := faults.Drop(testkit.On("WATCH", "widgets")), faults.Drop(testkit.On("LIST", "widgets"))
		faults.Cut(testkit.On("WATCH", "widgets"))
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"served":"yes"}}}`)
		looks := metric(t, "corollary_reconcile_seconds", name)
		unread.Off()
		waitMetricFrom(t, looks+1, "corollary_reconcile_seconds", name)
		unlisted.Off()
		deaf.Off()
		waitData(t, ns, "a", "key", "value")
		mustBeSame(t, configMaps, cm, "nothing was lost")
	})
}

// A mark that names an upstream outside of the watched namespaces makes nobody look there.
func TestMarkNamesOtherNamespace(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		conf := elsewhere(watched(fill(widgetConfig, ns, name), "labelSelector: {matchLabels: {served: \"yes\"}}"), other, ns)
		// Another process serves the other namespace by the same names.
		victim := testkit.Apply(t, other, "{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: victim, finalizers: ["+name+".example.com/cleanup]}, spec: {data: {key: value}}}")
		_, counter := startCounted(t, conf)
		counter.Reset()
		testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: bait, labels: {`+name+`.example.com/managed: "yes"}, annotations: {
	  `+name+`.example.com/owner: "`+other+`/victim/`+string(victim.GetUID())+`"}}}`)
		waitMetricFrom(t, 1, "corollary_reconcile_seconds", name)
		atMostRequests(t, counter, 0, "a mark that names another namespace")
		if f := testkit.Get(t, widgets, other, "victim").GetFinalizers(); len(f) != 1 {
			t.Errorf("the other one's finalizers are %v", f)
		}
	})
}

// A mark with a name that no upstream can have asks for nothing, and is not tried again and again.
func TestMarkNamesNobody(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason, mark, owner string
		requests                  int
	}{
		{"percent", "a name that is not a part of a path", "NS/a%b/uid", "", 0},
		{"dots", "the same", "NS/../uid", "", 0},
		{"long", "only annotations limit its length", "NS/" + strings.Repeat("a", 200_000) + "/uid", "", 1},
		{"cluster", "a kind with namespaces has none without", "/a/uid", "", 0},
		{"namespace", "a namespace that is not a part of a path", "n%s/a/uid", "", 0},
		{"reference", "the name in an owner reference may be any", "", "a%b", 0},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(fill(widgetConfig, ns, name), "namespaces: ["+ns+"]", "labelSelector: {matchLabels: {of: "+name+"}}", 1)
			_, counter := startCounted(t, conf)
			counter.Reset()
			annotation, reference := "{}", "[]"
			if row.mark != "" {
				annotation = "{" + name + `.example.com/owner: "` + strings.Replace(row.mark, "NS", ns, 1) + `"}`
			}
			if row.owner != "" {
				reference = `[{apiVersion: test.example.com/v1, kind: Widget, name: "` + row.owner + `", uid: "1"}]`
			}
			testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: bait, labels: {`+name+`.example.com/managed: "yes"}, annotations: `+
				annotation+`, ownerReferences: `+reference+`}}`)
			waitMetricFrom(t, 1, "corollary_reconcile_seconds", name)
			exactly(t, counter, row.requests, row.reason)
			metricIs(t, 0, "corollary_failures_total", name)
		}))
	}
}

// An upstream that is no longer selected says so, loses its downstreams, and is then left alone until it is selected again.
func TestUnselectedIsReported(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"label", "namespace"} {
		for _, kind := range []string{"reference", "elsewhere", "invalid"} {
			t.Run(by+"/"+kind, spacedTwice(func(t *testing.T, ns, other, name string) { testUnselected(t, ns, other, name, by, kind) }))
		}
	}
}

func testUnselected(t *testing.T, ns, other, name, by, kind string) {
	conf, at := fill(widgetConfig, ns, name), ns
	switch kind {
	case "elsewhere":
		conf, at = elsewhere(conf, other, ns), other
	case "invalid": // nothing exists, but there is a status
		conf += "validate: [{rule: 'false', message: nothing is valid}]\n"
	}
	key, selector := name+".example.com/on", "labelSelector"
	if by == "namespace" {
		selector = "namespaceSelector"
	}
	conf = watched(conf, selector+": {matchLabels: {"+key+": \"yes\"}}")
	label := func(value string) {
		patch := `{"metadata":{"labels":{"` + key + `":` + value + `}}}`
		if by == "namespace" {
			testkit.Patch(t, namespaces, "", ns, "somebody", patch)
			return
		}
		testkit.Patch(t, widgets, ns, "a", "somebody", patch)
	}
	ready := map[bool]string{true: "False", false: "True"}[kind == "invalid"]
	testkit.Apply(t, ns, widget("a", `{namespace: `+at+`, data: {key: value}}`))
	label(`"yes"`)
	_, counter := startCounted(t, conf)
	waitCondition(t, widgets, ns, "a", "Ready", ready)

	label("null")
	waitGone(t, configMaps, at, "a")
	var up *unstructured.Unstructured
	testkit.Eventually(t, patience, func() (bool, string) {
		up = waitsFor(t, widgets, ns, "a", "NotSelected")
		return len(downstreamsOf(up))+len(up.GetFinalizers()) == 0, fmt.Sprint(up.Object["status"])
	})
	for _, gone := range []string{"Valid", "Reconciling", "Stalled"} {
		conditionIs(t, up, gone, "")
	}
	settle(t, counter)
	testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"another":"one"}}}`)
	testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"new"}}}`)
	atMostWrites(t, counter, 0, "an upstream that is not selected")

	label(`"yes"`)
	waitCondition(t, widgets, ns, "a", "Ready", ready)
	if kind != "invalid" {
		waitData(t, at, "a", "key", "new")
	}
}

// While a downstream is going, the status says which one; it is not ready at any time after it is no longer selected.
func TestUnselectedWaits(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := watched(fill(widgetConfig, ns, name), "labelSelector: {matchLabels: {served: \"yes\"}}")
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, strings.Replace(widget("a", `{data: {key: value}}`), "{name: a}", `{name: a, labels: {served: "yes"}}`, 1))
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		holdFor(t, ns, "a")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"served":null}}}`)
		up := waitsFor(t, widgets, ns, "a", "NotSelected", "ConfigMap "+ns+"/a")
		if status, _, _ := condition(up, "Reconciling"); status != "True" || downstreamsOf(up)["config"]["uid"] == nil {
			t.Errorf("it says %v", up.Object["status"])
		}
		letGo(t, ns, "a")
		waitThat(t, widgets, ns, "a", func(up *obj) bool {
			status, _, _ := condition(up, "Reconciling")
			return status == "" && len(downstreamsOf(up)) == 0
		})
	})
}

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
		waitMetricFrom(t, 2, "corollary_failures_total", name)
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
