package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// watched makes a config select its upstreams by labels of theirs or of their namespace.
func watched(conf, selector string) string {
	return strings.Replace(conf, "kind: Widget, ", "kind: Widget, "+selector+", ", 1)
}

// bySelection runs a test with a label selector, and with a match condition that asks for the same label: both let an
// upstream go alike.
func bySelection(t *testing.T, test func(t *testing.T, selection string)) {
	for name, selection := range map[string]string{
		"label":     `labelSelector: {matchLabels: {served: "yes"}}`,
		"condition": `matchConditions: [{name: served, expression: "self.metadata.?labels.served.orValue('no') == 'yes'"}]`,
	} {
		t.Run(name, bubbled(func(t *testing.T) { test(t, selection) }))
	}
}

// A new namespace may be seen later than what was made in it.
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

// An upstream that is no longer selected says so, loses its downstreams, and is then left alone until it is selected
// again.
func TestUnselectedIsReported(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"label", "namespace"} {
		for _, kind := range []string{"reference", "elsewhere", "invalid", "before"} {
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
	case "before": // losing the label does not delete
		conf += beforeText
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
	mustBeAbsent(t, configMaps, ns, "a-drain", "the object of deletion.before was made")
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

// What does not meet the match conditions costs no request and is not listed. What meets them no longer is cleaned up
// after.
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
		deleteBoth(t, ns, other, "b")
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

// chosen is a config that selects by a label, one way or the other, and makes its ConfigMaps in another namespace: only
// the finalizer cleans up. What authors do is not guard's.
func chosen(selection, ns, other, name string) string {
	return elsewhere(watched(fill(widgetConfig, ns, name), selection), other, ns) + "guard: {maxDeleted: 0%, minimum: 0}\n"
}

func applyChosen(t *testing.T, ns, other string, names ...string) {
	t.Helper()
	for _, name := range names {
		testkit.Apply(t, ns, strings.Replace(widget(name, `{namespace: `+other+`, data: {key: value}}`),
			"{name: "+name+"}", "{name: "+name+`, labels: {served: "yes"}}`, 1))
	}
	for _, name := range names {
		waitCondition(t, widgets, ns, name, "Ready", "True")
	}
}

func unchoose(t *testing.T, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		testkit.Patch(t, widgets, ns, name, "somebody", `{"metadata":{"labels":{"served":null}}}`)
	}
}

// cleanedUp waits until nothing is left of upstreams that are not selected.
func cleanedUp(t *testing.T, ns, other string, names ...string) {
	t.Helper()
	waitGone(t, configMaps, other, names...)
	for _, name := range names {
		waitThat(t, widgets, ns, name, func(up *obj) bool {
			_, reason, _ := condition(up, "Ready")
			return len(up.GetFinalizers()) == 0 && reason == "NotSelected"
		})
	}
}

// A label that is lost while a config with errors only deletes: nothing is done until the config is right, and then its
// downstreams go. What is deleted meanwhile goes at once.
func TestLabelLostWithABrokenConfig(t *testing.T) {
	bySelection(t, func(t *testing.T, selection string) {
		ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
		good := chosen(selection, ns, other, name)
		first := start(t, testkit.Config(t), good).ready()
		applyChosen(t, ns, other, "loses", "goes", "stays", "bare", "first")
		first.halt()
		r := startBroken(t, replaceOnce(t, good, "data: {{ .spec.data }}", "data: {{ .spec.data"))
		r.waitUnready("ConfigRefused", cleansUp)
		testkit.Delete(t, widgets, ns, "first") // once it is gone, the watches are known to show what happens
		waitGone(t, widgets, ns, "first")
		testkit.Delete(t, configMaps, other, "bare") // but for its finalizer, nothing leads to it
		unchoose(t, ns, "loses", "goes", "bare")
		never(t, func() (bool, string) {
			for _, object := range []string{"loses", "goes", "stays"} {
				if testkit.Find(t, configMaps, other, object) == nil || len(testkit.Get(t, widgets, ns, object).GetFinalizers()) == 0 {
					return true, object + " was cleaned up after"
				}
			}
			return false, ""
		})
		deleteBoth(t, ns, other, "goes")
		r.reloadTo(good)
		r.ready()
		cleanedUp(t, ns, other, "loses", "bare")
		waitData(t, other, "stays", "key", "value")
		waitCondition(t, widgets, ns, "stays", "Ready", "True")
	})
}

// A label that is lost while no process runs looks like a changed selector: what there is stays, and is reported. A
// deletion is none of that. Once the label is set and removed again, it goes.
func TestLabelLostWhileNothingRuns(t *testing.T) {
	bySelection(t, func(t *testing.T, selection string) {
		ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
		conf := chosen(selection, ns, other, name)
		first := start(t, testkit.Config(t), conf).ready()
		applyChosen(t, ns, other, "loses", "goes", "later")
		first.halt()
		unchoose(t, ns, "loses", "later", "goes")
		testkit.Delete(t, widgets, ns, "goes")
		startWith(t, testkit.Config(t), func(op *config.Operator, _ *engine.Options) { op.ResyncPeriod = common.Duration(time.Second) }, conf).ready()
		bothGone(t, ns, other, "goes")
		waitMetric(t, 2, "corollary_shared_upstreams", name)
		surveyAll(t, testkit.Config(t), survey.Options{}, conf).expect(t, "loses", "leftover loses")
		waitData(t, other, "loses", "key", "value")
		if len(testkit.Get(t, widgets, ns, "loses").GetFinalizers()) != 1 {
			t.Error("the finalizer is off what is left")
		}
		testkit.Patch(t, widgets, ns, "loses", "somebody", `{"metadata":{"labels":{"served":"yes"}}}`)
		waitCondition(t, widgets, ns, "loses", "Ready", "True")
		unchoose(t, ns, "loses")
		cleanedUp(t, ns, other, "loses")
		testkit.Delete(t, widgets, ns, "later") // no watch shows it: a resync finds it
		bothGone(t, ns, other, "later")
	})
}

// A standby keeps nothing of upstreams that are gone, or that the leader has cleaned up after; and it cleans up itself
// after one that the leader did not live to clean up after.
func TestStandbyKeepsNothing(t *testing.T) {
	bySelection(t, func(t *testing.T, selection string) {
		ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
		conf := chosen(selection, ns, other, name)
		leader := start(t, testkit.Config(t), conf).ready()
		elected := make(chan struct{})
		standby := startWith(t, testkit.Config(t), func(_ *config.Operator, o *engine.Options) {
			o.Elected, o.HadOtherLeader = elected, func() bool { return true }
		}, conf).ready()
		objects := []string{"a", "b", "c", "d", "e", "f"}
		applyChosen(t, ns, other, objects...)
		for i, object := range objects {
			if i%2 == 0 {
				unchoose(t, ns, object)
				cleanedUp(t, ns, other, object)
			}
			deleteAndWait(t, widgets, ns, object)
		}
		testkit.Eventually(t, patience, func() (bool, string) {
			n, text := standby.Kept(name)
			return n == 0, text
		})

		applyChosen(t, ns, other, "loses", "bare")
		leader.halt()
		testkit.Delete(t, configMaps, other, "bare")
		unchoose(t, ns, "loses", "bare")
		testkit.Eventually(t, patience, func() (bool, string) {
			n, text := standby.Kept(name)
			return n >= 2, text
		})
		close(elected)
		cleanedUp(t, ns, other, "loses", "bare")
		testkit.Delete(t, widgets, ns, "loses")
		testkit.Delete(t, widgets, ns, "bare")
	})
}

// A session that only deletes, of a config that has run before, sees a kind that comes back.
func TestKindComesBackToABrokenConfig(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, other, name, up := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)+"-up"
		installLate(t, name)
		installLate(t, up)
		conf := withLate(fill(widgetConfig, ns, name), name, other) + "validate: [{rule: '!has(self.spec.level) || self.spec.level <= 20'}]\n"
		r, faults := startFaulty(t, replaceOnce(t, conf, "{apiVersion: test.example.com/v1, kind: Widget,", "{apiVersion: "+up+".example.com/v1, kind: Late,"))
		testkit.Eventually(t, patience, func() (bool, string) {
			_, err := testkit.TryApply(t, ns, "{apiVersion: "+up+".example.com/v1, kind: Late, metadata: {name: a}, spec: {data: {key: value}}}")
			return err == nil, text(err)
		})
		waitLate(t, other, name, "a", "value")
		waitThat(t, lates(up), ns, "a", isReady)
		servesLate(t, up, false)
		waitState(t, name, "KindMissing")
		servesLate(t, name, false)
		// It sees the kind once the changed schema is published: then no session goes on by the one before.
		deaf := faults.Answer(http.StatusServiceUnavailable, func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/apis/"+up+".example.com") })
		testkit.Update(t, crds, "", "lates."+up+".example.com", func(u *unstructured.Unstructured) {
			versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
			spec := map[string]any{"type": "object", "properties": map[string]any{"level": map[string]any{"type": "string"}, "data": free}}
			_ = unstructured.SetNestedMap(versions[0].(map[string]any), map[string]any{"type": "object", "properties": map[string]any{"spec": spec, "status": runtime.DeepCopyJSON(free)}},
				"schema", "openAPIV3Schema")
			_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
		})
		servesLate(t, up, true)
		source := must.Get(discovered.New(testkit.Config(t))).In(t)
		testkit.Eventually(t, patience, func() (bool, string) {
			source.Invalidate()
			k, err := source.Kind(lates(up).GroupVersion().WithKind("Late"))
			return err == nil && k.Schema != nil && len(k.Schema.Properties["spec"].Properties) > 0, text(err)
		})
		deaf.Off()
		r.waitUnready("ConfigRefused", "validate[0].rule", cleansUp)
		testkit.Delete(t, lates(up), ns, "a")
		waitsFor(t, lates(up), ns, "a", "KindNotServed", "serves it in no version")
		servesLate(t, name, true)
		waitGone(t, lates(up), ns, "a")
		waitGone(t, lates(name), other, "a")
	})
}
