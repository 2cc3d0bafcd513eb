package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

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
	case "invalid": // nothing stands, but the status speaks
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
		up := beforeIs(t, ns, "a", "NotSelected", "ConfigMap "+ns+"/a")
		if status, _, _ := condition(up, "Reconciling"); status != "True" || downstreamsOf(up)["config"]["uid"] == nil {
			t.Errorf("it says %v", up.Object["status"])
		}
		letGo(t, ns, "a")
		testkit.Eventually(t, patience, func() (bool, string) {
			up := testkit.Get(t, widgets, ns, "a")
			status, _, _ := condition(up, "Reconciling")
			return status == "" && len(downstreamsOf(up)) == 0, "Reconciling is " + status
		})
	})
}
