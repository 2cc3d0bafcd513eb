package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// A reload in the middle of deletion.before makes nothing twice, whatever the new template calls it, and the outcome of
// what was made counts.
func TestReloadDuringBefore(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := withBefore(ns, name)
		r, counter := startMade(t, ns, conf)
		testkit.Delete(t, widgets, ns, "a")
		waitBefore(t, ns, "a", "BeforeRunning")
		uid := testkit.Get(t, configMaps, ns, "a-drain").GetUID()
		for i := range 4 {
			r.changeTo(name, strings.Replace(conf, "-drain\"", fmt.Sprintf("-drain%d\"", i), 1))
			waitState(t, name, "Running")
			testkit.Patch(t, widgets, ns, "a", "somebody", fmt.Sprintf(`{"spec":{"name":"b%d"}}`, i))
		}
		quiet(t, counter)
		if n := len(testkit.List(t, configMaps, ns, selector(name))); n != 2 {
			t.Errorf("%d objects stand, want the downstream and one of deletion.before", n)
		}
		if item := beforeItem(testkit.Get(t, widgets, ns, "a")); item["uid"] != string(uid) {
			t.Errorf("recorded is %v, made %s", item, uid)
		}
		testkit.Patch(t, configMaps, ns, "a-drain", "worker", drainDone)
		waitGone(t, widgets, ns, "a")
		waitGone(t, configMaps, ns, "a", "a-drain")
	})
}

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
		deleteAndWait(t, widgets, ns, "a")
		waitGone(t, configMaps, other, "a")

		r.write("a.yaml", conf) // nobody has the other one any more
		r.reload()
		waitState(t, name, "Running")
		r.mustSay()
	})
}

// TestReloadKeepsAFieldManagerInUse: under another field manager, fields that leave a template would stay, since the one before
// owns them still. What does not own anything yet can be taken back.
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
