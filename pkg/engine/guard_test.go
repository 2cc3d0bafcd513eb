package engine_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// guardedWidgets is how many upstreams the guard's tests have: a change of all of them is too much.
const guardedWidgets = 6

// guardedBy gives a config a guard that lets 2 changes pass.
func guardedBy(conf, more string) string {
	return conf + "guard: {maxChanged: 20%, minimum: 2" + more + "}\n"
}

// confirmKey has the guard wait for a key of a ConfigMap in the test's namespace.
func confirmKey(ns string) string {
	return ", confirm: {namespace: " + ns + ", configMap: confirmations, key: widgets}"
}

// runReady runs a config until all its upstreams are ready.
func runReady(t *testing.T, ns, conf string) *running {
	t.Helper()
	r := start(t, testkit.Config(t), conf).ready()
	applyGuarded(t, ns)
	return r
}

// neverGuarded watches for a while that nothing bad is said of any Widget of a guard's test.
func neverGuarded(t *testing.T, bad func(up string) string) {
	t.Helper()
	never(t, func() (bool, string) {
		for i := range guardedWidgets {
			if why := bad(named(i)); why != "" {
				return true, named(i) + " " + why
			}
		}
		return false, ""
	})
}

// untouched fails where any downstream has a key that only the changed config gives.
func untouched(t *testing.T, ns string) {
	t.Helper()
	neverGuarded(t, func(up string) string {
		cm := testkit.Find(t, configMaps, ns, up)
		if cm == nil {
			return "is gone"
		}
		if _, changed, _ := unstructured.NestedString(cm.Object, "data", "version"); changed {
			return "was changed before anybody confirmed"
		}
		return ""
	})
}

// become has the process go on with a changed config, at a start or a reload.
func (r *running) become(at, conf string) *running {
	r.t.Helper()
	if at == "start" {
		r.halt()
		return start(r.t, testkit.Config(r.t), conf)
	}
	r.reloadTo(conf)
	return r
}

// confirmGuarded writes a digest where confirmKey says.
func confirmGuarded(t *testing.T, ns, digest string) {
	t.Helper()
	confirmWith(t, ns, "widgets", digest)
}

func confirmWith(t *testing.T, ns, key, digest string) {
	t.Helper()
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: confirmations}, data: {"+key+": '"+digest+"'}}")
}

var digestRE = regexp.MustCompile(`--digest ([0-9a-f]{32})|guard.confirmed to ([0-9a-f]{32})`)

// digest is what confirms the change that waits.
func (r *running) digest() string {
	r.t.Helper()
	digest := ""
	testkit.Eventually(r.t, patience, func() (bool, string) {
		message := text(errors.Join(r.Ready(nil), r.Reloaded(nil)))
		if m := digestRE.FindStringSubmatch(message); m != nil {
			digest = m[1] + m[2]
		}
		return digest != "", "it says " + message
	})
	return digest
}

// At a reload the config from before goes on while the change waits, and the process stays ready.
func TestGuardAtReload(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := guardedBy(strings.Replace(fill(widgetConfig, ns, name), "events: None", "events: All", 1), confirmKey(ns))
		r := runReady(t, ns, conf)
		r.reloadTo(withKey(conf, "version", "two"))
		waitState(t, name, "GuardWaiting")
		testkit.Apply(t, ns, widget("new", `{data: {key: value}}`))
		waitData(t, ns, "new", "key", "value")
		untouched(t, ns)
		r.mustBeReady()
		says := "7 of 7 existing downstreams would be changed or deleted, and guard.maxChanged allows 2 without confirmation: " +
			ns + "/new (config: Update), " + ns + "/w-000 (config: Update), " + ns + "/w-001 (config: Update), and 4 more"
		r.waitSays(says, r.digest())
		waitEvent(t, "default", name, "GuardWaiting", "existing downstreams would be changed or deleted")
		if changes, all := metric(t, "corollary_guard_changes", name), metric(t, "corollary_guard_existing", name); changes != 7 || all != 7 {
			t.Errorf("the metrics count %v of %v", changes, all)
		}

		confirmGuarded(t, ns, "v1-somethingelse")
		untouched(t, ns)
		confirmGuarded(t, ns, r.digest())
		waitState(t, name, "Running")
		eachGuarded(func(up string) { waitData(t, ns, up, "version", "two") })
		if err := r.Reloaded(nil); err != nil {
			t.Errorf("all is well, but: %v", err)
		}
		metricIs(t, 0, "corollary_guard_changes", name)

		r.write("a.yaml", conf) // that one was never confirmed
		r.reload()
		waitState(t, name, "GuardWaiting")
		r.reloadTo(withKey(conf, "version", "two"))
		waitState(t, name, "Running")
	})
}

// At a start nothing is written but what a deletion asks for, and the process is not ready: a rollout stops. The
// confirmation may come in the config.
func TestGuardAtStart(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		// With owner annotations only the finalizer cleans up.
		conf := guardedBy(strings.Replace(fill(widgetConfig, ns, name), "owner: {", "owner: {reference: false, ", 1), "")
		runReady(t, ns, conf).halt()
		counter := testkit.NewCounter()
		r := start(t, counter.Wrap(testkit.Config(t)), withKey(conf, "version", "two"))
		waitState(t, name, "GuardWaiting")
		if err := r.Ready(nil); err == nil || !strings.Contains(err.Error(), "6 of 6 existing downstreams") || !strings.Contains(err.Error(), "guard.confirmed") {
			t.Errorf("readiness says %v", err)
		}
		testkit.Apply(t, ns, widget("new", `{data: {key: value}}`))
		untouched(t, ns)
		if n := counter.Mutating(); n != 0 {
			t.Errorf("%d writes while the guard waits: %v", n, counter.Snapshot())
		}
		deleteAndWait(t, widgets, ns, named(5))
		waitGone(t, configMaps, ns, named(5))
		waitMetric(t, 5, "corollary_guard_existing", name)

		r.write("a.yaml", withKey(conf, "version", "two"))
		confirmed := strings.Replace(withKey(conf, "version", "two"), "minimum: 2", "minimum: 2, confirmed: "+r.digest(), 1)
		r.reloadTo(confirmed)
		r.ready()
		waitData(t, ns, named(0), "version", "two")
		waitData(t, ns, "new", "version", "two")
		r.halt()
		for i := range guardedWidgets - 1 {
			testkit.Patch(t, configMaps, ns, named(i), "somebody", `{"data":{"version":"theirs"}}`)
		}
		start(t, testkit.Config(t), confirmed)
		waitState(t, name, "GuardWaiting") // the same config is not the same change
	})
}

// What a guard counts, and what it does not.
func TestGuardCounts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, from, to string
		waits            bool
	}{
		{"every object changes", "data: {{ .spec.data }}", `data: {version: "two"}`, true},
		{"every object gets another name", "name: {{ .spec.name | default .metadata.name }}", "name: other-{{ .metadata.name }}", true},
		{"every object gets the name of another one", "name: {{ .spec.name | default .metadata.name }}",
			`name: w-{{ printf "%03d" (mod (add 1 (.metadata.name | trimPrefix "w-" | atoi)) 6) }}`, true},
		{"no upstream is selected any more: what exists is left over", "namespaces: [NS]}", "namespaces: [NS], labelSelector: {matchLabels: {chosen: 'yes'}}}", false},
		{"none is wanted any more", "    template: |", "    when: 'false'\n    template: |", true},
		{"the labels by which they are found change", `managed: "yes"`, `managed: "really"`, true},
		{"all get another field manager", "fieldManager: NAME", "fieldManager: NAME-two", true},
		{"all get their hash under another name", "NAME.example.com/hash", "NAME.example.com/digest", true},
		{"all are marked under another name", "owner: {annotation: NAME.example.com/owner}", "owner: {reference: false, annotation: NAME.example.com/owner}", true},
		{"all get another field manager", "fieldManager: NAME", "previous: {fieldManager: NAME}\n  fieldManager: NAME-two", true},
		{"rules refuse all: existing objects are left alone", "downstreams:\n  - ", "validate: [{rule: 'false', message: none}]\ndownstreams:\n  - ", false},
		{"templates fail for all: existing objects are left alone", "data: {{ .spec.data }}", "data: {{ .spec.data.missing | upper }}", false},
		{"only another one is made", "    # downstream\n", `  - {name: second, apiVersion: v1, kind: Secret, template: "metadata: {name: {{ .metadata.name }}}"}` + "\n", false},
		{"nothing changes in them", "retry: {minDelay: 1s", "retry: {minDelay: 2s", false},
	} {
		t.Run(test.reason, spaced(func(t *testing.T, ns, name string) {
			conf := guardedBy(widgetConfig, "")
			runReady(t, ns, fill(conf, ns, name)).halt()
			if !strings.Contains(conf, test.from) {
				t.Fatalf("the config has no %q", test.from)
			}
			r := start(t, testkit.Config(t), fill(strings.Replace(conf, test.from, test.to, 1), ns, name))
			if test.waits {
				waitState(t, name, "GuardWaiting")
				metricIs(t, guardedWidgets, "corollary_guard_changes", name)
				untouched(t, ns)
				return
			}
			r.ready()
		}))
	}
}

// What the API server spells in its own way does not count as a change, at a start with the config as it was or at a
// reload: at a start the status says it, or, where it has no place for that, one dry run of each, which takes the place
// of the apply that would have shown it; at a reload it is known. What someone has added is one.
func TestGuardRaisesNoFalseAlarm(t *testing.T) {
	t.Parallel()
	for kind, dryRuns := range map[string]int{"Widget": 2, "Gadget": guardedWidgets + 1, "Pool": guardedWidgets + 1} {
		t.Run(kind, bubbled(func(t *testing.T) {
			guardRaisesNoFalseAlarm(t, kind, dryRuns)
		}))
	}
}

// guardRaisesNoFalseAlarm is TestGuardRaisesNoFalseAlarm with upstreams of a kind; dryRuns are those of a start.
func guardRaisesNoFalseAlarm(t *testing.T, kind string, dryRuns int) {
	t.Helper()
	gvr := map[string]schema.GroupVersionResource{"Widget": widgets, "Gadget": gadgets, "Pool": pools}[kind]
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := fill(widgetConfig, ns, name)
	conf = strings.NewReplacer("kind: Widget", "kind: "+kind, "apiVersion: v1\n    kind: ConfigMap", "apiVersion: apps/v1\n    kind: Deployment", "data: {{ .spec.data }}", `spec:
        replicas: 2
        selector: {matchLabels: {app: {{ .metadata.name }}}}
        template:
          metadata: {labels: {app: {{ .metadata.name }}}}
          spec:
            containers: [{name: app, image: "app:1", resources: {requests: {cpu: 1000m, memory: 1024Mi}}}]`,
		"    # downstream", "    drift: {initialFields: [.spec.replicas], exclusiveFields: [.spec.template.metadata.labels]}\n    # downstream").Replace(conf)
	conf += "guard: {maxChanged: 0%, minimum: 1}\n"
	if kind == "Pool" { // the number of an object is not that of its downstream, and the status has no objects
		conf = strings.Replace(strings.Replace(conf, "  downstreams: .status.downstreams\n", "", 1), "downstreams:\n", `downstreams:
  - name: two
    apiVersion: v1
    kind: ConfigMap
    forEach: {items: '["a", "b"]'}
    template: 'metadata: {name: "{{ .metadata.name }}-{{ item }}"}'
`, 1)
	}
	r, counter := startCounted(t, conf)
	for i := range guardedWidgets {
		testkit.Apply(t, ns, object(kind, named(i), `{}`))
		testkit.Eventually(t, patience, func() (bool, string) {
			return testkit.Find(t, deployments, ns, named(i)) != nil &&
				(kind == "Pool" || len(downstreamsOf(testkit.Get(t, gvr, ns, named(i)))) == 1), "not made"
		})
		testkit.Patch(t, deployments, ns, named(i), "autoscaler", `{"spec":{"replicas":5}}`)
	}
	cpu, _, _ := unstructured.NestedSlice(testkit.Get(t, deployments, ns, named(0)).Object, "spec", "template", "spec", "containers")
	if text := fmt.Sprint(cpu); !strings.Contains(text, "cpu:1 ") {
		t.Fatalf("the API server keeps the spelling: %s", text)
	}
	quiet(t, counter) // what the autoscaler did is in every status
	r.halt()
	testkit.Patch(t, deployments, ns, named(0), "somebody", `{"spec":{"template":{"metadata":{"labels":{"extra":"x"}}}}}`)
	counter.Reset()
	r = start(t, counter.Wrap(testkit.Config(t)), conf).ready()
	testkit.Eventually(t, patience, func() (bool, string) { return extraLabel(t, ns) == "", "what was added stays" })
	quiet(t, counter)
	dry := counter.Requests(func(r testkit.Request) bool { return r.Resource == "deployments" && r.DryRun })
	if written := counter.Requests(testkit.Request.Mutating); len(dry) != dryRuns || len(written) != 2 {
		t.Errorf("%d dry runs, want %d, one of them for what was added; and %v was written, want an apply and a removal", len(dry), dryRuns, written)
	}
	counter.Reset()
	r.changeTo(name, strings.Replace(conf, "minDelay: 1s", "minDelay: 2s", 1))
	quiet(t, counter)
	if n := questions(counter); n != 0 {
		t.Errorf("the reload cost %d requests: %v", n, counter.Snapshot())
	}
}

// extraLabel is what the first Deployment has of a label that nobody asked for.
func extraLabel(t *testing.T, ns string) string {
	t.Helper()
	extra, _, _ := unstructured.NestedString(testkit.Get(t, deployments, ns, named(0)).Object, "spec", "template", "metadata", "labels", "extra")
	return extra
}

// A guard that has nothing to say costs nothing: no request, and no second rendering.
func TestGuardCostsNothing(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := guardedBy(fill(widgetConfig, ns, name), confirmKey(ns))
		runReady(t, ns, conf).halt()
		before := metric(t, "corollary_renders_total", name)
		_, counter := startCounted(t, conf)
		waitMetric(t, guardedWidgets, "corollary_objects", name, "state", "InSync")
		quiet(t, counter)
		if n := questions(counter); n > 0 {
			t.Errorf("%d requests: %v", n, counter.Snapshot())
		}
		if n := metric(t, "corollary_renders_total", name) - before; n != guardedWidgets {
			t.Errorf("%v renderings, want %d", n, guardedWidgets)
		}
	})
}

// Where the ConfigMap may not be read, the message says so, and the confirmation may come in the config.
func TestGuardWithoutTheRightToRead(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := guardedBy(fill(widgetConfig, ns, name), strings.Replace(confirmKey(ns), ns, "kube-system", 1))
		runReady(t, ns, conf).halt()
		faults := testkit.NewFaults()
		faults.Answer(403, func(q *http.Request) bool { return strings.Contains(q.URL.Path, "/kube-system/") })
		r := start(t, faults.Wrap(testkit.Config(t)), withKey(conf, "version", "two"))
		r.waitUnready("watching ConfigMap kube-system/confirmations is forbidden")
	})
}

// A paused upstream says that it is paused, not that guard holds it: it would not be changed anyway.
func TestPausedIsNotHeld(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), dropKey) + "inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: '\"shared\"', missing: Allow}]\n"
		_, counter := startCounted(t, conf)
		for i := range guardedWidgets {
			testkit.Apply(t, ns, widget(named(i), `{data: {key: value}}`))
		}
		for i := range guardedWidgets {
			waitCondition(t, widgets, ns, named(i), "Ready", "True")
		}
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {drop: 'yes'}}")
		testkit.Patch(t, widgets, ns, named(0), "author", `{"metadata": {"annotations": {"`+name+`.example.com/paused": "true"}}}`)
		message := func(i int) string {
			_, _, message := condition(testkit.Find(t, widgets, ns, named(i)), "Ready")
			return message
		}
		testkit.Eventually(t, patience, func() (bool, string) { return strings.HasPrefix(message(1), "held: guard"), message(1) })
		bubble.Quiet(t, counter)
		if !strings.Contains(message(0), "paused") {
			t.Errorf("the paused one says %q", message(0))
		}
	})
}

// TestGuardCountsTheChain: a changed config that gives the upstreams of another operator of the process a label by which
// that one does not select them is held for what that one would delete. An edit by a user is not.
func TestGuardCountsTheChain(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		teams := strings.NewReplacer("kind: Widget", "kind: Pool", "apiVersion: v1\n    kind: ConfigMap", "apiVersion: test.example.com/v1\n    kind: Widget",
			"name: {{ .spec.name | default .metadata.name }}", "name: {{ .metadata.name }}\n        labels: {tier: gold, of: {{ .spec.of | default \"users\" }}}",
			"      data: {{ .spec.data }}\n", "      spec: {data: {key: value}}\n").Replace(fill(widgetConfig, ns, name)) + "guard: {maxDeleted: 0%, minimum: 0}\n"
		other := "other-" + name
		widgetsOf := replaceOnce(t, fill(widgetConfig, ns, other), "kind: Widget,", "kind: Widget, labelSelector: {matchLabels: {tier: gold, of: users}},")
		r := start(t, testkit.Config(t), teams, widgetsOf).ready()
		testkit.Apply(t, ns, object("Pool", "a", "{}"))
		cm := waitData(t, ns, "a", "key", "value")
		r.rewrite("a.yaml", replaceOnce(t, teams, "tier: gold", "tier: silver"))
		waitState(t, name, "GuardWaiting")
		<-time.After(time.Minute)
		mustBeSame(t, configMaps, cm, "guard holds the change that deselects its upstream")
		r.rewrite("a.yaml", teams)
		testkit.Apply(t, ns, object("Pool", "a", "{of: others}"))
		waitGone(t, configMaps, ns, "a")
	})
}
