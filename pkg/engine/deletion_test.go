package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// A finalizer of someone else keeps the upstream; ours goes, and nothing is applied any more.
func TestDeletedUpstreamIsNotApplied(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startMade(t, ns, fill(widgetConfig, ns, name))
		testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"elsewhere.example.com/hold"}) })
		testkit.Delete(t, widgets, ns, "a")
		settle(t, counter)
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"key":"tampered"}}`)
		atMostWrites(t, counter, 0, "an upstream that is being deleted was applied for")
		testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		waitGone(t, widgets, ns, "a")
	})
}

// An object that lost the labels that the watch selects by while nothing could be done about it is not forgotten.
func TestStrippedLabelsAreNotForgotten(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, patch string }{
		{"paused", `{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`},
		{"unwanted", `{"spec":{"exposed":true}}`},
		{"moved", `{"spec":{"namespace":"NS"}}`},
	} {
		t.Run(row.name, spacedTwice(func(t *testing.T, ns, other, name string) {
			_, faults := startFaulty(t, with(elsewhere(fill(widgetConfig, ns, name), other, ns), "when: '!self.spec.?exposed.orValue(false)'"))
			applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
			waitData(t, other, "a", "key", "value")
			refusal := faults.Answer(500, testkit.On("PATCH", "configmaps"))
			testkit.Patch(t, configMaps, other, "a", "somebody", `{"metadata":{"labels":{"`+name+`.example.com/managed":null}}}`)
			testkit.Eventually(t, patience, func() (bool, string) { return refusal.Hits() > 0, "not tried" })
			testkit.Patch(t, widgets, ns, "a", "somebody", fill(row.patch, ns, name))
			waitThat(t, widgets, ns, "a", func(u *obj) bool {
				observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
				_, _, message := condition(u, "Ready")
				return observed == u.GetGeneration() && (row.name != "paused" || strings.HasPrefix(message, "paused: "))
			})
			deleteBoth(t, ns, other, "a")
		}))
	}
}

// What was made and could neither be recorded nor seen by the watch goes with its upstream all the same.
func TestUnrecordedAndUnseen(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"answered", "answer lost"} {
		t.Run(row, spacedTwice(func(t *testing.T, ns, other, name string) {
			_, faults := startFaulty(t, elsewhere(fill(widgetConfig, ns, name), other, ns))
			faults.Drop(testkit.On("WATCH", "configmaps"))
			faults.Cut(testkit.On("WATCH", "configmaps"))
			faults.Drop(testkit.On("LIST", "configmaps"))
			faults.Answer(403, testkit.On("PATCH", "widgets/status"))
			if row == "answer lost" {
				faults.Lose(testkit.On("PATCH", "configmaps"))
			}
			testkit.Apply(t, ns, widget("a", `{namespace: `+other+`, data: {key: value}}`))
			waitData(t, other, "a", "key", "value")
			deleteBoth(t, ns, other, "a")
		}))
	}
}

// What --cascade of kubectl delete says goes before what the config says: every combination.
func TestCascade(t *testing.T) {
	t.Parallel()
	for _, cascade := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		for _, wait := range []bool{false, true} {
			for _, mark := range []string{"reference", "annotation", "elsewhere"} {
				for _, policy := range []string{"Delete", "Orphan"} {
					row := []string{string(cascade), "", mark, policy}
					if wait {
						row[1] = "wait"
					}
					t.Run(strings.Join(row, "/"), bubbled(func(t *testing.T) {
						testCascade(t, cascade, wait, mark, policy)
					}))
				}
			}
		}
	}
}

// While a finalizer of others holds a downstream, a plan does not end the deletion of the upstream that run holds back.
func TestPlanOfAHeldDeletion(t *testing.T) {
	t.Parallel()
	for _, cascade := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		for config, more := range map[string]string{"waits": waiting, "annotation": ""} {
			t.Run(string(cascade)+"/"+config, spaced(func(t *testing.T, ns, name string) {
				conf := fill(widgetConfig, ns, name) + more
				if more == "" {
					conf = strings.Replace(conf, "owner: {", "owner: {reference: false, ", 1)
				}
				start(t, testkit.Config(t), conf).ready()
				applyReady(t, ns, "a", `{data: {key: value}}`)
				holdFor(t, ns, "a")
				testkit.DeleteWith(t, widgets, ns, "a", cascade)
				waitThat(t, configMaps, ns, "a", func(u *obj) bool { return u.GetDeletionTimestamp() != nil })
				found := surveyAll(t, testkit.Config(t), survey.Options{}, conf)
				f := found["a"]
				if goes := cascade == metav1.DeletePropagationBackground && more == ""; f == nil && goes {
					waitGone(t, widgets, ns, "a")
					return
				} else if f == nil {
					t.Fatalf("nothing is said of it: %v", found)
				}
				for _, c := range f.Changes {
					if c.Action.Writes() {
						t.Errorf("the plan is to %s %s", c.Action, c.Target)
					}
				}
				if f.Finalizer != operator.FinalizerLeave {
					t.Errorf("the plan for the finalizer is %v", f.Finalizer)
				}
				if cascade == metav1.DeletePropagationForeground && !slices.Contains(testkit.Get(t, widgets, ns, "a").GetFinalizers(), name+".example.com/cleanup") {
					t.Error("run has removed the finalizer")
				}
				testkit.Update(t, configMaps, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
				waitGone(t, widgets, ns, "a")
				waitGone(t, configMaps, ns, "a")
			}))
		}
	}
}

func testCascade(t *testing.T, cascade metav1.DeletionPropagation, wait bool, mark, policy string) {
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	conf, at := with(fill(widgetConfig, ns, name), "deletionPolicy: "+policy), ns
	switch mark {
	case "annotation":
		conf = strings.Replace(conf, "owner: {", "owner: {reference: false, ", 1)
	case "elsewhere":
		conf, at = elsewhere(conf, other, ns), other
	}
	if wait {
		conf += waiting
	}
	start(t, testkit.Config(t), conf).ready()
	applyReady(t, ns, "a", `{namespace: `+at+`, data: {key: value}}`)
	testkit.Patch(t, configMaps, at, "a", "somebody", `{"metadata":{"labels":{"theirs":"stays"}}}`)
	held := len(testkit.Get(t, widgets, ns, "a").GetFinalizers()) > 0
	if policy == "Orphan" && !held {
		t.Error("nothing leaves time to release the downstream")
	}
	testkit.DeleteWith(t, widgets, ns, "a", cascade)
	waitGone(t, widgets, ns, "a")
	if cascade != metav1.DeletePropagationOrphan && policy == "Delete" {
		if held && (wait || cascade == metav1.DeletePropagationForeground) && testkit.Find(t, configMaps, at, "a") != nil {
			t.Error("the upstream went before its downstream")
		}
		waitGone(t, configMaps, at, "a")
		return
	}
	never(t, func() (bool, string) {
		cm := testkit.Find(t, configMaps, at, "a")
		return cm == nil || cm.GetDeletionTimestamp() != nil, "the downstream was deleted"
	})
	cm := testkit.Get(t, configMaps, at, "a")
	if len(cm.GetOwnerReferences()) > 0 {
		t.Errorf("owner references are left: %v", cm.GetOwnerReferences())
	}
	if labels := cm.GetLabels(); labels["theirs"] != "stays" || held && (len(cm.GetAnnotations()) > 0 || len(labels) > 1) {
		t.Errorf("our marks are left, or theirs are gone: %v %v", labels, cm.GetAnnotations())
	}
	waitData(t, at, "a", "key", "value")
}

// The garbage collector takes the finalizer orphan off as soon as it has no more to do, while we may have much to do.
// What it said counts all the same, for another process too.
func TestOrphanedAfterTheCollector(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"same process", "after a restart"} {
		t.Run(row, spacedTwice(func(t *testing.T, ns, other, name string) {
			conf := elsewhere(fill(widgetConfig, ns, name), other, ns) + waiting
			r, faults := startFaulty(t, conf)
			applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
			refusal := faults.Answer(500, testkit.On("PATCH", "configmaps"))
			testkit.DeleteWith(t, widgets, ns, "a", metav1.DeletePropagationOrphan)
			waitThat(t, widgets, ns, "a", func(u *obj) bool { return len(u.GetFinalizers()) == 1 && refusal.Hits() > 0 })
			waitsFor(t, widgets, ns, "a", "InternalError", "")
			if row == "after a restart" {
				r.halt()
				start(t, testkit.Config(t), conf)
			}
			refusal.Off()
			waitGone(t, widgets, ns, "a")
			if cm := testkit.Get(t, configMaps, other, "a"); cm.GetDeletionTimestamp() != nil || len(cm.GetAnnotations()) > 0 {
				t.Errorf("it was not released: %v", cm.Object["metadata"])
			}
		}))
	}
}

// While nothing runs, the owner references that the collector has removed say that the downstreams are to stay.
func TestOrphanedWhileNothingRuns(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, more string }{{"waits", waiting}, {"restarted in between", waiting}, {"before", ""}} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name) + row.more
			if row.name == "before" {
				conf = withBefore(ns, name)
			}
			r, faults := startFaulty(t, conf)
			applyReady(t, ns, "a", `{data: {key: value}}`)
			<-time.After(time.Minute)
			r.halt()
			testkit.DeleteWith(t, widgets, ns, "a", metav1.DeletePropagationOrphan)
			waitThat(t, widgets, ns, "a", func(u *obj) bool { return len(u.GetFinalizers()) == 1 })
			if row.name == "restarted in between" {
				faults.Answer(500, testkit.On("PATCH", "configmaps"))
				faulty := start(t, faults.Wrap(testkit.Config(t)), conf)
				waitsFor(t, widgets, ns, "a", "InternalError", "")
				faulty.halt()
			}
			start(t, testkit.Config(t), conf)
			waitGone(t, widgets, ns, "a")
			if cm := testkit.Get(t, configMaps, ns, "a"); cm.GetDeletionTimestamp() != nil || len(cm.GetAnnotations()) > 0 {
				t.Errorf("it was not released: %v", cm.Object["metadata"])
			}
			mustBeAbsent(t, configMaps, ns, "a-drain", "deletion.before was made")
		}))
	}
}

// What has the owner annotation is handled as the config says: nothing is left of what the deletion asked for.
func TestOrphanedWhileNothingRunsElsewhere(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		far := "  - name: far\n    apiVersion: v1\n    kind: Secret\n    targetNamespaces: {from: Any}\n    template: |\n      metadata: {name: far, namespace: " + other + "}\n"
		conf := replaceOnce(t, fill(widgetConfig, ns, name), "conventions:\n", far+"conventions:\n")
		r := start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", `{data: {key: value}}`)
		<-time.After(time.Minute)
		r.halt()
		testkit.DeleteWith(t, widgets, ns, "a", metav1.DeletePropagationOrphan)
		waitThat(t, widgets, ns, "a", func(u *obj) bool { return len(u.GetFinalizers()) == 1 })
		start(t, testkit.Config(t), conf)
		waitGone(t, secretKind, other, "far")
		waitGone(t, widgets, ns, "a")
		mustExist(t, configMaps, ns, "a", "it had an owner reference")
	})
}

// An owner reference that a person has removed says nothing about a deletion that a process has watched, or reported.
func TestStrippedReferenceIsNoOrphan(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"before it", "half way", "half way, restarted"} {
		t.Run(row, spaced(func(t *testing.T, ns, name string) {
			first := "  - name: first\n    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: a-first}\n"
			conf := replaceOnce(t, fill(widgetConfig, ns, name), "  - name: config\n", first+"  - name: config\n    drift: {policy: Report}\n    after: [first]\n") + waiting
			conf = replaceOnce(t, conf, "name: first\n", "name: first\n    drift: {policy: Report}\n")
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", `{data: {key: value}}`)
			strip := func() {
				testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"ownerReferences":null}}`)
				testkit.Patch(t, secretKind, ns, "a-first", "somebody", `{"metadata":{"ownerReferences":null}}`)
			}
			if row == "before it" {
				strip()
				testkit.Delete(t, widgets, ns, "a")
			} else {
				holdFor(t, ns, "a")
				testkit.Delete(t, widgets, ns, "a")
				waitThat(t, configMaps, ns, "a", func(u *obj) bool { return u.GetDeletionTimestamp() != nil })
				<-time.After(time.Minute)
				if row == "half way, restarted" {
					r.halt()
				}
				strip()
				if row == "half way, restarted" {
					start(t, testkit.Config(t), conf)
				}
				<-time.After(time.Minute)
				letGo(t, ns, "a")
			}
			waitGone(t, widgets, ns, "a")
			waitGone(t, configMaps, ns, "a")
			waitGone(t, secretKind, ns, "a-first")
		}))
	}
}

// A downstream is renamed in the config while its object is being deleted: what it comes after stays until it is gone.
func TestRenamedDownstreamGoesFirst(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"start", "reload"} {
		t.Run(at, spaced(func(t *testing.T, ns, name string) {
			first := "  - name: first\n    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: a-first}\n"
			conf := replaceOnce(t, fill(widgetConfig, ns, name), "  - name: config\n", first+"  - name: config\n    after: [first]\n") + waiting
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", `{data: {key: value}}`)
			holdFor(t, ns, "a")
			testkit.Delete(t, widgets, ns, "a")
			waitThat(t, configMaps, ns, "a", func(u *obj) bool { return u.GetDeletionTimestamp() != nil })
			r.become(at, strings.NewReplacer("name: first", "name: one", "[first]", "[one]", "name: config", "name: two").Replace(conf))
			waitsFor(t, widgets, ns, "a", "Deleting", "ConfigMap "+ns+"/a is terminating")
			<-time.After(time.Hour)
			mustExist(t, secretKind, ns, "a-first", "it was deleted before what comes after it is gone")
			letGo(t, ns, "a")
			waitGone(t, widgets, ns, "a")
		}))
	}
}

// What the API server answers may be ahead of the watch, and shows a deletion without what it asked for: the collector
// has taken its finalizer off. Nothing is begun before the watch has brought the deletion.
func TestDeletionAheadOfItsWatch(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, mark string }{
		{"the collector's change leads to a read", "before"},
		{"the answer to a status shows it", "elsewhere"},
	} {
		t.Run(row.name, spacedTwice(func(t *testing.T, ns, at, name string) {
			conf := elsewhere(fill(widgetConfig, ns, name), at, ns) + waiting
			if row.mark == "before" {
				conf, at = withBefore(ns, name), ns
			}
			lag, collected, counter := &held{resource: "widgets"}, &held{resource: "configmaps"}, testkit.NewCounter()
			start(t, counter.Wrap(collected.wrap(lag.wrap(testkit.Config(t)))), conf).ready()
			applyReady(t, ns, "a", `{namespace: `+at+`, data: {key: value}}`)
			quiet(t, counter)
			release, collectorIsHeard := lag.hold(), collected.hold()
			testkit.DeleteWith(t, widgets, ns, "a", metav1.DeletePropagationOrphan)
			waitThat(t, widgets, ns, "a", func(u *obj) bool { return len(u.GetFinalizers()) == 1 })
			collectorIsHeard()
			if row.mark == "elsewhere" { // it is made again, and the status has its new uid
				testkit.Delete(t, configMaps, at, "a")
				waitData(t, at, "a", "key", "value")
			}
			never(t, func() (bool, string) {
				return testkit.Find(t, widgets, ns, "a") == nil || testkit.Find(t, configMaps, ns, "a-drain") != nil,
					fmt.Sprintf("the deletion was begun: %v", counter.Snapshot())
			})
			release()
			waitGone(t, widgets, ns, "a")
			mustBeAbsent(t, configMaps, ns, "a-drain", "deletion.before was made")
			waitData(t, at, "a", "key", "value")
		}))
	}
}

const waiting = "deletion: {wait: true}\n"

func holdFor(t *testing.T, ns, name string) {
	t.Helper()
	testkit.Update(t, configMaps, ns, name, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"elsewhere.example.com/hold"}) })
}

func letGo(t *testing.T, ns, name string) {
	t.Helper()
	testkit.Update(t, configMaps, ns, name, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
}

// The upstream stays until what follows from it is gone, also what an owner reference would clean up; and its status
// says what it waits for.
func TestDeletionWaits(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"same namespace", "elsewhere"} {
		t.Run(row, spacedTwice(func(t *testing.T, ns, other, name string) {
			conf, at := fill(widgetConfig, ns, name), ns
			if row == "elsewhere" {
				conf, at = elsewhere(conf, other, ns), other
			}
			_, counter := startCounted(t, conf+waiting)
			applyReady(t, ns, "a", `{namespace: `+at+`, data: {key: value}}`)
			holdFor(t, at, "a")
			quiet(t, counter)
			testkit.Delete(t, widgets, ns, "a")
			up := waitsFor(t, widgets, ns, "a", "Deleting", "ConfigMap "+at+"/a is terminating")
			conditionIs(t, up, "Reconciling", "True")
			if item := downstreamsOf(up)["config"]; item["state"] != "Delete" || item["uid"] == nil {
				t.Errorf("recorded is %v", item)
			}
			quiet(t, counter)
			if testkit.Find(t, widgets, ns, "a") == nil {
				t.Fatal("the upstream went first")
			}
			letGo(t, at, "a")
			waitGone(t, widgets, ns, "a")
			mustBeAbsent(t, configMaps, at, "a", "the upstream went first")

			applyReady(t, ns, "a", `{namespace: `+at+`, data: {key: value}}`)
			settle(t, counter)
			deleteAndWait(t, widgets, ns, "a")
			mustBeAbsent(t, configMaps, at, "a", "the upstream went first")
			atMostRequests(t, counter, 4, "a deletion that waits")
		}))
	}
}

// What the watch has lost from sight is waited for all the same.
func TestDeletionWaitsForTheUnseen(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, faults := startFaulty(t, fill(widgetConfig, ns, name)+waiting)
		applyReady(t, ns, "a", `{data: {key: value}}`)
		holdFor(t, ns, "a")
		refusal := faults.Answer(500, testkit.On("PATCH", "configmaps"))
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"labels":{"`+name+`.example.com/managed":null}}}`)
		testkit.Eventually(t, patience, func() (bool, string) { return refusal.Hits() > 0, "not tried" })
		testkit.Delete(t, widgets, ns, "a")
		waitsFor(t, widgets, ns, "a", "Deleting", "ConfigMap "+ns+"/a")
		letGo(t, ns, "a")
		waitGone(t, widgets, ns, "a")
		mustBeAbsent(t, configMaps, ns, "a", "the upstream went first")
	})
}

// TestKeptInForeground: what deletionPolicy keeps since the config has changed stays when its upstream is deleted in
// the foreground, also if nothing else is done for the upstream.
func TestKeptInForeground(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		spec   string // of the upstream before the config changes
		first  func(conf string) string
		config func(conf string) string
		patch  string
		holds  bool // the process is not ready with the new config
	}{
		{name: "nothing in the way"},
		{name: "paused", patch: `{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`},
		{name: "invalid", spec: `{data: {bad: "yes"}}`},
		{name: "cannot be rendered", config: func(conf string) string {
			return strings.Replace(conf, "data: {{ .spec.data }}", `data: {key: "{{ fail "no" }}"}`, 1)
		}},
		{name: "an input is missing", config: func(conf string) string {
			return conf + "inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: '\"missing\"'}]\n"
		}},
		{name: "made once", config: func(conf string) string { return with(conf, "updatePolicy: CreateOnly") }},
		{name: "superseded", config: func(conf string) string {
			return strings.Replace(conf, `name: {{ .spec.name | default .metadata.name }}`, `name: "{{ fail "no" }}"`, 1)
		}},
		{name: "a match condition cannot be evaluated", config: func(conf string) string { return watched(conf, gold) + "parameters: {tier: gold}\n" }},
		{name: "the update is refused", first: func(conf string) string {
			return strings.Replace(conf, "      data: {{ .spec.data }}", "      immutable: true\n      data: {{ .spec.data }}", 1)
		}, config: func(conf string) string {
			return strings.Replace(conf, "data: {{ .spec.data }}", "data: {key: two}", 1)
		}},
		{name: "the config has errors", holds: true, config: func(conf string) string {
			return strings.Replace(conf, "data: {{ .spec.data }}", "data: {{ nosuch .spec.data }}", 1)
		}},
		{name: "guard holds the change", holds: true, config: func(conf string) string {
			return strings.NewReplacer("maxDeleted: 100%", "maxChanged: 0%", "data: {{ .spec.data }}", "data: {key: other}").Replace(conf)
		}},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name) + "validate: [{rule: \"self.spec.?data.?bad.orValue('') != 'yes'\", message: bad}]\nguard: {maxDeleted: 100%}\n"
			if row.first != nil {
				conf = row.first(conf)
			}
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			before := waitData(t, ns, "a", "key", "value")
			if row.patch != "" {
				testkit.Patch(t, widgets, ns, "a", "somebody", fill(row.patch, ns, name))
			}
			if row.spec != "" {
				testkit.Apply(t, ns, widget("a", row.spec))
				waitCondition(t, widgets, ns, "a", "Ready", "False")
			}
			r.halt()
			conf = with(conf, "deletionPolicy: Orphan")
			if row.config != nil {
				conf = row.config(conf)
			}
			counter := testkit.NewCounter()
			if r = startBroken(t, conf); !row.holds {
				r.ready()
			}
			bubble.Quiet(t, counter)
			r.halt() // the garbage collector may be quicker
			foreground := metav1.DeletePropagationForeground
			if err := testkit.Dynamic(t).Resource(widgets).Namespace(ns).Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			startBroken(t, conf)
			waitGone(t, widgets, ns, "a")
			if cm := testkit.Find(t, configMaps, ns, "a"); cm == nil || cm.GetUID() != before.GetUID() || cm.GetDeletionTimestamp() != nil {
				t.Error("what deletionPolicy keeps was deleted")
			}
		}))
	}
}
