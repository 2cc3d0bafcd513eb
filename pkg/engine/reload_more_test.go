package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Reloads leave nothing behind: after many there and back, as much runs as before.
func TestReloadsLeaveNothingBehind(t *testing.T) {
	inTurn(t, func(t *testing.T) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		conf := withBefore(ns, name)
		applySettings(t, ns, "blue", "navy")
		other := guardedBy(withInputs(ns, name, "NAME.example.com/managed", "NAME.example.com/other"), confirmKey(ns))
		r := start(t, testkit.Config(t), conf).ready()
		waitState(t, name, "Running")
		round := func() {
			for _, conf := range []string{other, conf} {
				r.changeTo(name, conf)
				waitState(t, name, "Running")
			}
		}
		round()
		<-time.After(time.Second)
		before := runtime.NumGoroutine()
		for range 10 { // of two reloads each, all of which have taken over: one that is left behind of five would show
			round()
		}
		testkit.Eventually(t, patience, func() (bool, string) {
			n := runtime.NumGoroutine()
			return n <= before+3, fmt.Sprintf("%d goroutines, %d before", n, before)
		})
	})
}

// TestReloadKeepsAFinalizerInUse: a config that drops the finalizer that upstreams have would leave them undeletable.
func TestReloadKeepsAFinalizerInUse(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		conf := elsewhere(fill(widgetConfig, ns, name), other, ns)
		old := name + ".example.com/cleanup"
		renamed := replaceOnce(t, conf, "finalizer: "+old, "finalizer: "+name+".example.com/renamed")
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("a", `{namespace: `+other+`, data: {key: value}}`))
		waitData(t, other, "a", "key", "value")

		r.reloadTo(renamed)
		waitState(t, name, "ReloadFailed")
		r.mustSay("1 upstreams still have", "conventions.previous.finalizer: "+old)
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/paused":"true"}}}`) // keeps the earlier names
		r.reloadTo(replaceOnce(t, renamed, "conventions:\n", "conventions:\n  previous: {finalizer: "+old+"}\n"))
		waitState(t, name, "Running")
		r.reloadTo(renamed)
		waitState(t, name, "ReloadFailed")
		if err := r.Reloaded(nil); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("it says more than that: %v", err)
		}
		deleteBoth(t, ns, other, "a")

		r.write("a.yaml", conf) // nobody has the other one any more
		r.reload()
		waitState(t, name, "Running")
		r.mustSay()
	})
}

// TestReloadKeepsAFieldManagerInUse: under another field manager, fields that leave a template would stay, since the
// one before owns them still. What does not own anything yet can be taken back.
func TestReloadKeepsAFieldManagerInUse(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		renamed := replaceOnce(t, conf, "fieldManager: "+name, "fieldManager: "+name+"-new")
		carrying := replaceOnce(t, renamed, "conventions:\n", "conventions:\n  previous: {fieldManager: "+name+"}\n")
		r, counter := startMade(t, ns, conf)
		made := testkit.Get(t, configMaps, ns, "a")
		refuses := func(conf string) {
			t.Helper()
			r.reloadTo(conf)
			waitState(t, name, "ReloadFailed")
			r.mustSay("owns fields of 1 downstreams", "conventions.previous.fieldManager: "+name)
		}
		takes := func(conf string) {
			t.Helper()
			before := metric(t, "corollary_config_reloads_total", name, "result", "Applied")
			r.write("a.yaml", conf)
			testkit.Eventually(t, patience, func() (bool, string) {
				r.reload() // again, as the command does: the watch may be behind
				return metric(t, "corollary_config_reloads_total", name, "result", "Applied") > before, text(r.Reloaded(nil))
			})
		}
		refuses(renamed)
		takes(observing(carrying))
		onlyStatus(t, counter)
		refuses(observing(renamed)) // nothing has been renamed yet
		takes(conf)
		takes(carrying)
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":null,"other":"value"}}}`)
		waitData(t, ns, "a", "other", "value")
		waitData(t, ns, "a", "key", "")
		mustBeSame(t, configMaps, made, "it is not made again")
		takes(renamed) // all has been
		testkit.Delete(t, widgets, ns, "a")
		waitGone(t, configMaps, ns, "a")
		takes(conf) // nothing is under the other one any more
	})
}

// badConfigs are ways in which a config can be wrong, some of which only the API server knows of.
var badConfigs = []struct{ reason, from, to, says string }{
	{"an unknown key", "events: None", "evints: None", "evints"},
	{"a template that does not parse", "data: {{ .spec.data }}", "data: {{ .spec.data", "downstreams[0].template"},
	{"a field that the schema lacks", "data: {{ .spec.data }}", "data: {{ .spec.dta }}", "the schema has no .spec.dta: did you mean data?"},
	{"a type that only the API server's schema shows", "downstreams:\n", "validate: [{rule: self.spec.data == 3}]\ndownstreams:\n", "validate[0].rule"},
}

// gadgetsOf is a config for the other kind.
func gadgetsOf(ns, name string) string {
	return strings.Replace(fill(widgetConfig, ns, name), "kind: Widget", "kind: Gadget", 1)
}

// TestReloadOfABadNewFile: a process that is ready stays so, whatever is wrong with a file that is added. The error is
// reported until it is fixed.
func TestReloadOfABadNewFile(t *testing.T) {
	t.Parallel()
	for _, test := range append(badConfigs, struct{ reason, from, to, says string }{"no YAML at all", "downstreams:\n", "downstreams: [\n", "b.yaml"}) {
		t.Run(test.reason, bubbled(func(t *testing.T) {
			ns, name, second := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
			r := start(t, testkit.Config(t), fill(widgetConfig, ns, name)).ready()
			good := gadgetsOf(ns, second)
			r.rewrite("b.yaml", replaceOnce(t, good, test.from, test.to))
			testkit.Eventually(t, patience, func() (bool, string) {
				r.mustBeReady()
				err := text(r.Reloaded(nil))
				return strings.Contains(err, test.says), err
			})
			metricIs(t, 0, "corollary_config_reloads_total", second, "result", "Applied")
			r.rewrite("b.yaml", good)
			waitState(t, second, "Running")
			r.mustSay()
			metricIs(t, 0, "corollary_config_reload_failed", second)
			metricIs(t, 1, "corollary_config_reloads_total", second, "result", "Applied")
		}))
	}
}

// TestReloadRenamesWithErrors: an operator works on as long as the config that is to take its place cannot be put to
// work, though that has another name.
func TestReloadRenamesWithErrors(t *testing.T) {
	t.Parallel()
	for _, test := range append(badConfigs,
		struct{ reason, from, to, says string }{"a kind that is not served", "kind: Widget", "kind: Wodget", "Wodget"},
		struct{ reason, from, to, says string }{"it drops the finalizer in use", "finalizer: NAME.example.com/cleanup", "finalizer: NAME.example.com/renamed", "upstreams still have"},
	) {
		for _, file := range []string{"a.yaml", "b.yaml"} {
			t.Run(test.reason+" in "+file, bubbled(func(t *testing.T) {
				ns, other, name, renamed := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
				conf := elsewhere(fill(widgetConfig, ns, name), other, ns)
				r := start(t, testkit.Config(t), conf).ready()
				applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
				before := testkit.Get(t, configMaps, other, "a")

				good := replaceOnce(t, conf, "name: "+name+"}", "name: "+renamed+"}")
				r.write("a.yaml", "")
				r.rewrite(file, replaceOnce(t, good, strings.ReplaceAll(test.from, "NAME", name), strings.ReplaceAll(test.to, "NAME", name)))
				waitState(t, name, "ReloadFailed")
				if err := r.Reloaded(nil); err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "choose another") {
					t.Errorf("it says %v", err)
				}
				r.mustBeReady()
				metricIs(t, 0, "corollary_operator_state", renamed)
				testkit.Apply(t, ns, widget("b", `{namespace: `+other+`, data: {key: value}}`))
				waitData(t, other, "b", "key", "value")

				r.rewrite(file, good)
				waitState(t, renamed, "Running")
				r.mustSay()
				metricIs(t, 0, "corollary_operator_state", name)
				testkit.Patch(t, configMaps, other, "a", "somebody", `{"data":{"key":"changed"}}`)
				waitData(t, other, "a", "key", "value")
				mustBeSame(t, configMaps, before, "the downstream is not made anew")
			}))
		}
	}
}

// TestReloadChecksAgainstWhatRuns: what a file says counts once its operator works by it. Until then nothing else may
// claim the names that it works by.
func TestReloadChecksAgainstWhatRuns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, from, to string
		runs             bool // whether the operator that claims the names runs already
	}{
		{"the change does not fit the schema, and a new file claims its field manager", "downstreams:\n", "validate: [{rule: self.spec.data == 3}]\ndownstreams:\n", false},
		{"the change waits for a kind, and a new file claims its field manager", "kind: Widget", "kind: Wodget", false},
		{"the change does not fit the schema, and another operator claims its field manager", "downstreams:\n", "validate: [{rule: self.spec.data == 3}]\ndownstreams:\n", true},
		{"the file is broken, and a new one claims its field manager", "apiVersion: corollary.dev/v1alpha1\nkind: Operator\n", "not: an operator\n", false},
	} {
		t.Run(test.reason, bubbled(func(t *testing.T) {
			ns, name, second := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
			conf, before := fill(widgetConfig, ns, name), gadgetsOf(ns, second)
			texts := []string{conf}
			if test.runs {
				texts = append(texts, before)
			}
			r := start(t, testkit.Config(t), texts...).ready()

			moved := replaceOnce(t, conf, "fieldManager: "+name, "fieldManager: "+name+"-new")
			claims := replaceOnce(t, before, "fieldManager: "+second, "fieldManager: "+name)
			r.write("a.yaml", replaceOnce(t, moved, test.from, test.to))
			r.rewrite("b.yaml", claims)
			waitState(t, name, "ReloadFailed")
			r.waitSays("b.yaml:", "field manager")
			testkit.Apply(t, ns, object("Gadget", "g", `{data: {key: value}}`))
			if test.runs {
				waitState(t, second, "ReloadFailed")
				if by := waitData(t, ns, "g", "key", "value").GetManagedFields(); by[0].Manager != second {
					t.Errorf("it was written by %s", by[0].Manager)
				}
			} else {
				metricIs(t, 0, "corollary_operator_state", second)
			}
			testkit.Delete(t, gadgets, ns, "g")
			waitGone(t, configMaps, ns, "g")

			r.write("a.yaml", moved)
			testkit.Eventually(t, patience, func() (bool, string) {
				r.reload() // again, as the command does
				err := r.Reloaded(nil)
				return err == nil, text(err)
			})
			waitState(t, second, "Running")
		}))
	}
}

// While everything changes the config changes too, again and again, its views and so its watches included. Nothing is
// lost, nothing doubled, nothing orphaned.
func TestReloadWhileAllChanges(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		conf := replaceOnce(t, elsewhere(fill(widgetConfig, ns, name), other, ns), "name: {{ .metadata.name }}", "name: {{ .spec.name }}")
		r := start(t, testkit.Config(t), conf).ready()
		end := churn(t, rand.New(rand.NewPCG(3, 4)), ns, other)
		for i := range 12 {
			next := replaceOnce(t, conf, "conventions:\n", fmt.Sprintf("conventions:\n  annotations: {version: \"%d\"}\n", i))
			if i%3 == 1 {
				next = replaceOnce(t, next, "    targetNamespaces:", "    drift: {exclusiveFields: [.data]}\n    targetNamespaces:")
			}
			if i%2 == 0 { // the others are overtaken by the next
				r.changeTo(name, next)
			} else {
				r.reloadTo(next)
			}
		}
		end()
		testkit.Eventually(t, patience, func() (bool, string) {
			for _, cm := range append(testkit.List(t, configMaps, ns, selector(name)), testkit.List(t, configMaps, other, selector(name))...) {
				if version := cm.GetAnnotations()["version"]; version != "11" {
					return false, cm.GetName() + " is of version " + version
				}
			}
			return allInPlace(t, ns, other, name, func(string) bool { return false })
		})
		r.ready()
	})
}

// churn creates, changes, renames, moves and deletes Widgets until the function that it returns is called, or the test
// ends.
func churn(t *testing.T, random *rand.Rand, ns, other string) (end func()) {
	where, i := []string{ns, other}, 0
	end = again(10*time.Millisecond, func() {
		i++
		name := fmt.Sprintf("w-%d", random.IntN(25))
		if random.IntN(6) == 0 {
			testkit.Delete(t, widgets, ns, name)
			return
		}
		spec := fmt.Sprintf(`{name: %s-%d, namespace: %s, data: {key: "%d"}}`, name, random.IntN(2), where[random.IntN(2)], i)
		_, _ = testkit.TryApply(t, ns, widget(name, spec)) // it may be being deleted
	})
	t.Cleanup(end)
	return end
}

// allInPlace reports whether every Widget has exactly its own ConfigMap, and every ConfigMap its Widget. unheld are
// uids for whose finalizer the API server did not wait.
func allInPlace(t *testing.T, ns, other, name string, unheld func(uid string) bool) (bool, string) {
	made := map[string]unstructured.Unstructured{}
	for _, namespace := range []string{ns, other} {
		for _, cm := range testkit.List(t, configMaps, namespace, selector(name)) {
			mark := cm.GetAnnotations()[name+".example.com/owner"]
			if unheld(mark[strings.LastIndex(mark, "/")+1:]) && len(cm.GetOwnerReferences()) == 0 {
				t.Logf("cleaning up by hand after Widget %s, whose deletion the API server did not hold", mark)
				testkit.Delete(t, configMaps, namespace, cm.GetName())
				return false, cm.GetName() + " is being deleted"
			}
			made[namespace+"/"+cm.GetName()] = cm
		}
	}
	list := testkit.List(t, widgets, ns, "")
	if len(list) == 0 {
		return false, "nothing is left to look at"
	}
	for _, w := range list {
		spec, _, _ := unstructured.NestedMap(w.Object, "spec")
		key := fmt.Sprintf("%s/%s", spec["namespace"], spec["name"])
		cm, ok := made[key]
		if !ok {
			return false, fmt.Sprintf("%s has no ConfigMap %s: %v", w.GetName(), key, w.Object)
		}
		want, _, _ := unstructured.NestedString(w.Object, "spec", "data", "key")
		if have, _, _ := unstructured.NestedString(cm.Object, "data", "key"); have != want {
			return false, fmt.Sprintf("%s has %s, not %s: %v; %v", key, have, want, cm.Object["metadata"], w.Object)
		}
		if status, reason, message := condition(&w, "Ready"); status != "True" || w.GetDeletionTimestamp() != nil {
			return false, fmt.Sprintf("%s: Ready is %s, %s: %s", w.GetName(), status, reason, message)
		}
		if ids := downstreamsOf(&w)["config"]; ids["uid"] != string(cm.GetUID()) {
			return false, fmt.Sprintf("%s names %v, not %s", w.GetName(), ids, cm.GetUID())
		}
		delete(made, key)
	}
	for key, cm := range made {
		return false, fmt.Sprintf("nobody wants %s: %v", key, cm.Object["metadata"])
	}
	return true, ""
}
