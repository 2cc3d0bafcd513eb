package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

const dropKey = `when: '!(inputs.settings.?data.?drop.orValue("") == "yes")'`

// stayAll fails where any downstream goes.
func stayAll(t *testing.T, ns string) {
	t.Helper()
	neverGuarded(t, func(up string) string {
		if cm := testkit.Find(t, configMaps, ns, up); cm == nil || cm.GetDeletionTimestamp() != nil {
			return "is gone"
		}
		return ""
	})
}

// What guard holds are changes of downstreams: the finalizer, without which a deletion loses what the config keeps, is
// added all the same.
func TestGuardLetsFinalizerPass(t *testing.T) {
	t.Parallel()
	const claim = "\n  - name: claim\n    apiVersion: v1\n    kind: ConfigMap\n    template: |\n      metadata: {name: \"{{ .metadata.name }}-claim\"}\n"
	both := func(conf string) string {
		return strings.Replace(conf, "conventions:", strings.TrimLeft(claim, "\n")+"conventions:", 1)
	}
	for _, at := range []string{"start", "namespace"} {
		t.Run(at, spaced(func(t *testing.T, ns, name string) {
			conf := both(fill(widgetConfig, ns, name))
			finalizers := func() []string { return testkit.Get(t, widgets, ns, "w-000").GetFinalizers() }
			if at == "start" {
				runReady(t, ns, conf).halt()
				start(t, testkit.Config(t), strings.Replace(with(conf, "when: 'false'"), "-claim\"}\n", "-claim\"}\n    deletionPolicy: Orphan\n", 1))
			} else {
				key := name + ".example.com/on"
				testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"`+key+`":"yes"}}}`)
				runReady(t, ns, watched(conf, "namespaceSelector: {matchLabels: {"+key+": \"yes\"}}")+"deletion: {wait: true}\n")
				testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"`+key+`":null}}}`)
			}
			waitState(t, name, "GuardWaiting")
			if at != "start" { // someone else removes it
				testkit.Patch(t, widgets, ns, "w-000", "somebody", `{"metadata":{"finalizers":null}}`)
			}
			testkit.Eventually(t, patience, func() (bool, string) { return len(finalizers()) == 1, "w-000 has no finalizer" })
			stayAll(t, ns)
			if at == "start" {
				deleteBoth(t, ns, ns, "w-000")
				mustExist(t, configMaps, ns, "w-000-claim", "what deletionPolicy Orphan keeps was deleted with its upstream")
			}
		}))
	}
}

// An object that is deleted to be made again counts as deleted: the objects of a config cannot all go at once since a
// field of them is immutable.
func TestGuardCountsRecreations(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"start", "reload", "input"} {
		t.Run(at, spaced(func(t *testing.T, ns, name string) {
			conf := with(fill(widgetConfig, ns, name), "updatePolicy: Recreate")
			conf = strings.Replace(conf, "data: {{ .spec.data }}", `data: {version: {{ ((input "settings").data | default dict).version | default "one" }}}`+"\n      immutable: true", 1) +
				"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings, missing: Allow}]\n" +
				"guard: {confirm: {namespace: " + ns + ", configMap: confirmations, key: widgets}}\n"
			changed := strings.Replace(conf, `default "one"`, `default "two"`, 1)
			r := runReady(t, ns, conf)
			uids := map[string]any{}
			eachGuarded(func(up string) { uids[up] = testkit.Get(t, configMaps, ns, up).GetUID() })
			if at == "input" {
				testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {version: two}}")
			} else {
				r = r.become(at, changed)
			}
			waitState(t, name, "GuardWaiting")
			neverGuarded(t, func(up string) string {
				if cm := testkit.Find(t, configMaps, ns, up); cm == nil || cm.GetUID() != uids[up] {
					return "was deleted before anybody confirmed"
				}
				return ""
			})
			metricIs(t, guardedWidgets, "corollary_guard_deletions", name)
			confirmGuarded(t, ns, r.digest())
			eachGuarded(func(up string) { waitData(t, ns, up, "version", "two") })
		}))
	}
}

// The labels of many namespaces that change one after another count as one change, also where each has one upstream.
func TestGuardHoldsNamespaces(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		key := name + ".example.com/on"
		spaces := []string{ns}
		for len(spaces) < guardedWidgets {
			spaces = append(spaces, testkit.Namespace(t))
		}
		label := func(value string) {
			for _, ns := range spaces {
				testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"`+key+`":`+value+`}}}`)
			}
		}
		label(`"yes"`)
		conf := strings.Replace(fill(widgetConfig, ns, name), "namespaces: ["+ns+"]",
			"namespaces: ["+strings.Join(spaces, ", ")+"], namespaceSelector: {matchLabels: {"+key+": \"yes\"}}", 1)
		r := start(t, testkit.Config(t), conf).ready()
		for _, ns := range spaces {
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		}
		for _, ns := range spaces {
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}
		label("null")
		waitState(t, name, "GuardWaiting")
		n := 0
		for _, ns := range spaces {
			if testkit.Find(t, configMaps, ns, "a") == nil {
				n++
			}
		}
		if n > 5 {
			t.Errorf("%d objects were deleted before anybody confirmed", n)
		}
		r.confirm(conf)
		for _, ns := range spaces {
			waitGone(t, configMaps, ns, "a")
		}
	})
}

// One edit of an input that all read, or of the labels of their namespace, is counted before any of it is done. What an
// author does meanwhile is done.
func TestGuardHoldsBatches(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"input", "input, changes", "namespace"} {
		for what, reloaded := range map[string]bool{"": false, ", and the config is reloaded": true} {
			t.Run(by+what, bubbled(func(t *testing.T) { testGuardHoldsBatch(t, by, reloaded) }))
		}
	}
}

func testGuardHoldsBatch(t *testing.T, by string, reloaded bool) {
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	key := name + ".example.com/on"
	conf := fill(widgetConfig, ns, name) + "inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings, missing: Allow}]\n"
	confirm := "guard: {confirm: {namespace: " + ns + ", configMap: confirmations, key: widgets}}\n"
	drop := func() {
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {drop: 'yes'}}")
	}
	done := func(up string) bool { return testkit.Find(t, configMaps, ns, up) == nil }
	switch by {
	case "input":
		conf = with(conf, dropKey)
	case "input, changes":
		conf = strings.Replace(conf, "data: {{ .spec.data }}", `data: {drop: {{ ((input "settings").data | default dict).drop | default "no" }}}`, 1)
		confirm = strings.Replace(confirm, "{confirm", "{maxChanged: 20%, confirm", 1)
		done = func(up string) bool {
			return fmt.Sprint(testkit.Get(t, configMaps, ns, up).Object["data"]) == "map[drop:yes]"
		}
	case "namespace":
		conf = watched(conf, "namespaceSelector: {matchLabels: {"+key+": \"yes\"}}")
		testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"`+key+`":"yes"}}}`)
		drop = func() {
			testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"`+key+`":null}}}`)
		}
	}
	r, counter := startCounted(t, conf+confirm)
	applyGuarded(t, ns)
	settle(t, counter)
	drop()
	waitState(t, name, "GuardWaiting")
	digest := r.digest()
	isHeld := func() {
		neverGuarded(t, func(up string) string {
			if done(up) {
				return "was done before anybody confirmed"
			}
			return ""
		})
	}
	isHeld()
	statuses := counter.Mutating(func(r testkit.Request) bool { return r.Resource == "widgets/status" }) // which say that it is held
	if n := counter.Mutating(); n > statuses || n > guardedWidgets {
		t.Errorf("%d writes: %v", n, counter.Snapshot())
	}
	r.mustBeReady()
	if reloaded {
		r.reloadTo(conf + confirm + "resyncPeriod: 9h\n")
		isHeld()
	}
	testkit.Delete(t, widgets, ns, named(5)) // by its author
	waitGone(t, widgets, ns, named(5))
	waitGone(t, configMaps, ns, named(5))
	confirmGuarded(t, ns, digest)
	for i := range guardedWidgets - 1 {
		testkit.Eventually(t, patience, func() (bool, string) { return done(named(i)), named(i) + " is as before" })
	}
	waitState(t, name, "Running")
}

// What was confirmed does not count for what comes after it: neither for a change that guard allows by itself, nor
// where another input is edited while what was confirmed is still being done.
func TestGuardCountsWhatIsConfirmedOnce(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), dropKey) +
			"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: self.spec.anything.of, missing: Allow}, {name: all, apiVersion: v1, kind: ConfigMap, fixedName: all, missing: Allow}]\n" +
			"guard: {confirm: {namespace: " + ns + ", configMap: confirmations, key: widgets}}\n"
		conf = replaceOnce(t, conf, "data: {{ .spec.data }}", `data: {all: {{ ((input "all").data | default dict).all | default "no" }}}`)
		r, faults := startFaulty(t, conf)
		of := func(i int) string { return map[bool]string{true: "few", false: "many"}[i < 3] }
		for i := range guardedWidgets + 3 {
			testkit.Apply(t, ns, widget(named(i), `{data: {}, anything: {of: `+of(i)+`}}`))
		}
		for i := range guardedWidgets + 3 {
			waitCondition(t, widgets, ns, named(i), "Ready", "True")
		}
		drop := func(input string) {
			testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+input+"}, data: {drop: 'yes'}}")
		}
		drop("many")
		waitState(t, name, "GuardWaiting")
		first := r.digest()
		refused := faults.Answer(500, testkit.On("DELETE", "configmaps"))
		confirmGuarded(t, ns, first)
		testkit.Eventually(t, patience, func() (bool, string) { return refused.Hits() > 0, "nothing is deleted" })
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: all}, data: {all: 'yes'}}") // which all read
		waitData(t, ns, named(0), "all", "yes")
		drop("few")
		refused.Off()
		for i := range guardedWidgets + 3 {
			waitGone(t, configMaps, ns, named(i))
		}
		waitState(t, name, "Running")
	})
}

// An edit of a config leaves what it no longer names or selects; it is shown.
func TestConfigEditsLeave(t *testing.T) {
	t.Parallel()
	second := "  - name: second\n    apiVersion: v1\n    kind: KIND\n    template: |\n      metadata: {name: \"{{ .metadata.name }}-second\"}\n"
	for _, row := range []struct {
		reason, from, to string
		recorded         bool
	}{
		{"a selector is added", "namespaces: [NS]}", "namespaces: [NS], labelSelector: {matchLabels: {chosen: 'yes'}}}", true},
		{"a namespace selector is added", "namespaces: [NS]}", "namespaces: [NS], namespaceSelector: {matchLabels: {chosen: 'yes'}}}", true},
		{"the namespace is left out", "namespaces: [NS]", "namespaces: [default]", true},
		{"a downstream is removed", strings.Replace(second, "KIND", "Secret", 1), "", true},
		{"a downstream is removed, and another of its kind stays", strings.Replace(second, "KIND", "ConfigMap", 1), "", true},
	} {
		for _, at := range []string{"start", "reload"} {
			t.Run(row.reason+", "+at, spaced(func(t *testing.T, ns, name string) {
				conf := strings.Replace(widgetConfig, "    # downstream\n", "    # downstream\n"+row.from, 1)
				kind := configMaps
				if strings.Contains(row.from, "Secret") {
					kind = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
				}
				if !strings.Contains(row.from, "second") {
					conf = strings.Replace(widgetConfig, "    # downstream\n", "    # downstream\n"+strings.Replace(second, "KIND", "ConfigMap", 1), 1)
				}
				r, counter := startMade(t, ns, fill(conf, ns, name))
				changed := fill(strings.Replace(conf, row.from, row.to, 1), ns, name)
				if at == "start" {
					r.halt()
					start(t, counter.Wrap(testkit.Config(t)), changed).ready()
				} else {
					r.changeTo(name, changed)
				}
				quiet(t, counter)
				testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"annotations":{"look":"again"}}}`)
				quiet(t, counter)
				for at, what := range map[string]schema.GroupVersionResource{"a": configMaps, "a-second": kind} {
					if o := testkit.Find(t, what, ns, at); o == nil || o.GetDeletionTimestamp() != nil {
						t.Errorf("%s is gone", at)
					}
				}
				testkit.Eventually(t, patience, func() (bool, string) { // however busy the machine is
					item := downstreamsOf(testkit.Get(t, widgets, ns, "a"))["second"]
					return item != nil && (row.to != "" || item["state"] == "Leftover"), fmt.Sprintf("the status records %v", item)
				})
			}))
		}
	}
}
