package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// everyConfigMap changes each existing downstream as someone does who is not the operator.
func everyConfigMap(t *testing.T, ns, patch string) {
	t.Helper()
	eachGuarded(func(up string) { testkit.Patch(t, configMaps, ns, up, "somebody", patch) })
}

// waitsForAll expects a guard to wait since every downstream would be written.
func waitsForAll(t *testing.T, name string) {
	t.Helper()
	waitState(t, name, "GuardWaiting")
	testkit.Eventually(t, patience, func() (bool, string) {
		changes, all := metric(t, "corollary_guard_changes", name), metric(t, "corollary_guard_existing", name)
		return changes == guardedWidgets && all == guardedWidgets, fmt.Sprintf("it counts %v of %v", changes, all)
	})
}

// waitsForAllAt is waitsForAll at a start, where nothing is written meanwhile.
func waitsForAllAt(t *testing.T, name string, counter *testkit.Counter) {
	t.Helper()
	waitsForAll(t, name)
	if n := counter.Mutating(); n != 0 {
		t.Errorf("%d writes while the guard waits: %v", n, counter.Requests(testkit.Request.Mutating))
	}
}

// questions counts the requests that are about one object, other than those of some kinds.
func questions(c *testkit.Counter, other ...string) int {
	return len(c.Requests(func(r testkit.Request) bool {
		return r.Resource != "" && r.Resource != "leases" && r.Verb != "LIST" && r.Verb != "WATCH" && !slices.Contains(other, r.Key())
	}))
}

// What others did to objects, and a config left alone, is a change where another config would undo it.
func TestGuardCountsRepairs(t *testing.T) {
	t.Parallel()
	const theirs, more = `{"data":{"key":"theirs"}}`, `{"data":{"more":"theirs"}}`
	reports, enforces := "    drift: {policy: Report}\n    # downstream\n", "    # downstream\n"
	for _, row := range []struct {
		reason, before, after, patch string
		dryRuns                      int
	}{
		{"drift was reported only", reports, enforces, theirs, guardedWidgets},
		{"drift was ignored", "    drift: {policy: Ignore}\n    # downstream\n", enforces, theirs, guardedWidgets},
		{"what was made was left alone", "    updatePolicy: CreateOnly\n    # downstream\n", enforces, theirs, guardedWidgets},
		{"keys that others add were left alone", enforces, "    drift: {exclusiveFields: [.data]}\n    # downstream\n", more, 2 * guardedWidgets},
		{"drift came while nobody looked: which config left it so cannot be told", enforces, enforces, theirs, guardedWidgets},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := guardedBy(fill(widgetConfig, ns, name), "")
			runReady(t, ns, strings.Replace(conf, "    # downstream\n", row.before, 1)).halt()
			everyConfigMap(t, ns, row.patch)
			counter := testkit.NewCounter()
			start(t, counter.Wrap(testkit.Config(t)), strings.Replace(conf, "    # downstream\n", row.after, 1))
			waitsForAllAt(t, name, counter)
			if n := questions(counter); n != row.dryRuns {
				t.Errorf("counting cost %d requests, want %d dry runs: %v", n, row.dryRuns, counter.Snapshot())
			}
			eachGuarded(func(up string) { waitData(t, ns, up, strings.Split(row.patch, `"`)[3], "theirs") })
		}))
	}
}

// What others made is not seen by a watch that selects our own labels: it is read, and counts where it would be adopted.
func TestGuardCountsAdoptions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, from, to string
		waits            bool
	}{
		{"nobody owns them", "", "", true},
		{"their makers' fields become ours", "adoptionPolicy: IfUnowned", "adoptionPolicy: IfUnowned\n    adopt: {fieldManagers: [helm]}", true},
		{"they belong to somebody else: a conflict", "name: w-", "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: x, controller: true}], name: w-", false},
		{"they are not to be adopted: a conflict", "adoptionPolicy: IfUnowned", "adoptionPolicy: Never", false},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := guardedBy(with(fill(widgetConfig, ns, name), "adoptionPolicy: IfUnowned"), "")
			for i := range guardedWidgets {
				testkit.Apply(t, ns, widget(named(i), `{data: {key: value}}`))
				post(t, ns, "helm", strings.Replace("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+named(i)+"}, data: {key: theirs}}", row.from, row.to, 1))
			}
			conf = strings.Replace(conf, row.from, row.to, 1)
			counter := testkit.NewCounter()
			r := start(t, counter.Wrap(testkit.Config(t)), conf)
			if !row.waits {
				r.ready()
				return
			}
			waitsForAllAt(t, name, counter)
			if n := questions(counter, readDownstream); n != 0 { // what was found is read again in a while
				t.Errorf("counting takes a read for each and nothing else: %v", counter.Snapshot())
			}
			r.reloadTo(strings.Replace(conf, "minimum: 2", "minimum: 2, confirmed: "+r.digest(), 1))
			eachGuarded(func(up string) { waitData(t, ns, up, "key", "value") })
		}))
	}
}

// What no status records counts like anything else of ours, and costs no request. Without a status, what exists is found by reading what a
// create would meet.
func TestGuardCountsUnrecorded(t *testing.T) {
	t.Parallel()
	const recorded = "  downstreams: .status.downstreams\n"
	for status, written := range map[string]string{recorded: "", "  conditions: {ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled}\n" + recorded: "  enabled: false\n"} {
		t.Run(written, spaced(func(t *testing.T, ns, name string) {
			conf := replaceOnce(t, guardedBy(fill(widgetConfig, ns, name), ""), status, written)
			r := start(t, testkit.Config(t), conf).ready()
			eachGuarded(func(up string) { testkit.Apply(t, ns, widget(up, `{data: {key: value}}`)) })
			eachGuarded(func(up string) { waitData(t, ns, up, "key", "value") })
			if written != "" {
				r.reloadTo(strings.Replace(conf, `managed: "yes"`, `managed: "really"`, 1))
				waitsForAll(t, name)
				return
			}
			eachGuarded(func(up string) { waitCondition(t, widgets, ns, up, "Ready", "True") })
			r.halt()
			counter := testkit.NewCounter()
			start(t, counter.Wrap(testkit.Config(t)), withKey(conf, "version", "two"))
			waitsForAllAt(t, name, counter)
			if n := questions(counter); n != 0 {
				t.Errorf("counting cost %d requests: %v", n, counter.Snapshot())
			}
		}))
	}
}

// otherDigest waits until the digest that waits differs from the given one, and returns it.
func (r *running) otherDigest(digest string) string {
	r.t.Helper()
	other := ""
	testkit.Eventually(r.t, patience, func() (bool, string) {
		other = r.digest()
		return other != digest, "it is still " + digest
	})
	return other
}

// remove deletes rows, from and to included.
func (d *database) remove(from, to int) {
	d.t.Helper()
	d.exec("DELETE FROM apps WHERE id BETWEEN ? AND ?", from, to)
}

// TestConfirmationOfWhatWaits: what counts is whether the change that waits now is confirmed, whenever and in whatever order the
// confirmation was written.
func TestConfirmationOfWhatWaits(t *testing.T) {
	t.Parallel()
	const all, gone = 40, 10 // at most 5 go without confirmation
	for _, row := range []struct {
		reason string
		steps  func(t *testing.T, ns, name string, db *database, r *running, first string)
		stays  bool
	}{
		{"it was written while another change waited, and its own came back", func(t *testing.T, ns, _ string, db *database, r *running, first string) {
			db.remove(gone+1, all-1)
			r.otherDigest(first)
			confirmWith(t, ns, "rows", first)
			stayApps(t, ns, 1, all)
			db.add(gone+1, all-1)
		}, false},
		{"the larger change that it names never came back", func(t *testing.T, ns, _ string, db *database, r *running, first string) {
			db.remove(gone+1, all-1)
			larger := r.otherDigest(first)
			db.add(gone+1, all-1)
			testkit.Eventually(t, patience, func() (bool, string) { now := r.digest(); return now == first, now + " waits" })
			confirmWith(t, ns, "rows", larger)
		}, true},
		{"it names what waited before as many others were gone", func(t *testing.T, ns, _ string, db *database, r *running, first string) {
			back := fmt.Sprintf("DELETE FROM apps WHERE id BETWEEN %d AND %d;", gone+1, 2*gone)
			for i := 1; i <= gone; i++ {
				back += fmt.Sprintf(`INSERT INTO apps VALUES (%d, '%s', '{"key": "one"}');`, i, app(i))
			}
			db.exec("BEGIN;" + back + "COMMIT")
			r.otherDigest(first)
			confirmWith(t, ns, "rows", first)
		}, true},
		{"it was written before there was anything to confirm", func(t *testing.T, ns, name string, db *database, r *running, first string) {
			db.add(1, gone)
			waitState(t, name, "Running")
			confirmWith(t, ns, "rows", first)
			db.remove(1, gone)
		}, false},
		{"it was withdrawn before its change came back", func(t *testing.T, ns, _ string, db *database, r *running, first string) {
			db.remove(gone+1, all-1)
			r.otherDigest(first)
			confirmWith(t, ns, "rows", first)
			testkit.Delete(t, configMaps, ns, "confirmations")
			stayApps(t, ns, 1, all)
			db.add(gone+1, all-1)
			testkit.Eventually(t, patience, func() (bool, string) { now := r.digest(); return now == first, now + " waits" })
		}, true},
		{"it was written for more rows that guard would allow", func(t *testing.T, ns, name string, db *database, r *running, first string) {
			db.add(gone, gone)
			confirmWith(t, ns, "rows", first)
			waitApps(t, ns, name, gone, all)
			db.remove(gone, gone)
		}, false},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			db := newDatabase(t)
			db.add(1, all)
			r := start(t, testkit.Config(t), db.config(ns, name)).ready()
			waitApps(t, ns, name, 1, all)
			db.remove(1, gone)
			waitState(t, name, "GuardWaiting")
			row.steps(t, ns, name, db, r, r.digest())
			if row.stays {
				stayApps(t, ns, 1, all)
				return
			}
			for i := 1; i <= gone; i++ {
				waitGone(t, configMaps, ns, app(i))
			}
			stayApps(t, ns, gone+1, all)
		}))
	}
}

// TestDigestsAreLogged: whoever reads the log finds the digest of what waits now, and that nothing waits any more.
func TestDigestsAreLogged(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t)
		db.add(1, 40)
		logged := startLogged(t, db.config(ns, name))
		waitApps(t, ns, name, 1, 40)
		says := func(either ...string) {
			t.Helper()
			testkit.Eventually(t, patience, func() (bool, string) {
				said := slices.ContainsFunc(either, func(text string) bool { return strings.Contains(logged(), text) })
				return said, "the log does not say: " + strings.Join(either, " or ")
			})
		}
		db.remove(1, 10)
		says("10 of 40 existing downstreams would be deleted")
		db.remove(11, 30)
		says("30 of 40 existing downstreams would be deleted")
		db.add(1, 30)
		// Rows come back one by one: guard may allow the rest of what waited before the last one is back.
		says(`"no change waits for confirmation any more"`, `"because"="guard allows the rest"`)
		if digests := len(digestRE.FindAllString(logged(), -1)); digests < 2 {
			t.Errorf("the log has %d digests", digests)
		}
	})
}

// renamedAll has every ConfigMap get another name, so that guard counts as many deletions as there are Widgets.
func renamedAll(t *testing.T, conf string) string {
	t.Helper()
	return replaceOnce(t, conf, "name: {{ .spec.name | default .metadata.name }}", "name: new-{{ .metadata.name }}")
}

// TestGuardHoldsWhateverIsEdited: a change that waits for confirmation waits whatever anybody writes to the upstreams, and an edit from the
// time when no process ran counts: nobody knows it apart from what the config has changed.
func TestGuardHoldsWhateverIsEdited(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		meanwhile    string // a patch of each Widget while nothing runs
	}{
		{"a start", "the config has changed while nothing ran", `{}`},
		{"a start after edits", "a rollout often comes with edits of the same commit", `{"spec":{"data":{"other":"value"}}}`},
		{"a start of what is paused", "what the config does at the resumption is not counted then", `{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name)
			runReady(t, ns, conf).halt()
			each := func(patch string) {
				eachGuarded(func(up string) { testkit.Patch(t, widgets, ns, up, "somebody", fill(patch, ns, name)) })
			}
			each(row.meanwhile)
			start(t, testkit.Config(t), renamedAll(t, conf))
			for _, patch := range []string{`{}`, `{"metadata":{"annotations":{"NAME.example.com/paused":null,"example.com/seen":"yes"}}}`, `{"spec":{"data":{"more":"value"}}}`} {
				each(patch)
				waitState(t, name, "GuardWaiting")
				stayAll(t, ns)
			}
		}))
	}
}

// TestGuardCountsWhatComesLater: a renamed object that comes after another one, which is not ready, counts when the config is changed.
func TestGuardCountsWhatComesLater(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := replaceOnce(t, fill(widgetConfig, ns, name), "downstreams:\n", `downstreams:
  - name: first
    apiVersion: v1
    kind: Service
    ready: {rules: [{rule: "downstream.metadata.?annotations[?'test.example.com/up'].orValue('') == 'yes'", message: starting}]}
    template: |
      metadata: {name: {{ .metadata.name }}}
      spec: {ports: [{port: 80}]}
`)
		r := start(t, testkit.Config(t), conf).ready()
		eachGuarded(func(up string) { testkit.Apply(t, ns, widget(up, `{data: {key: value}}`)) })
		eachGuarded(func(up string) { waitData(t, ns, up, "key", "value") })
		r.halt()
		start(t, testkit.Config(t), with(renamedAll(t, conf), "after: [first]"))
		waitState(t, name, "GuardWaiting")
		stayAll(t, ns)
	})
}

// TestGuardHoldsWhatInputsDelete: what an input would delete stays held when the upstreams are annotated, and while they are paused.
func TestGuardHoldsWhatInputsDelete(t *testing.T) {
	t.Parallel()
	for _, paused := range []string{"null", `"true"`} {
		t.Run(paused, spaced(func(t *testing.T, ns, name string) {
			conf := with(fill(widgetConfig, ns, name), dropKey) +
				"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings, namespace: " + ns + ", missing: Allow}]\n"
			runReady(t, ns, conf)
			each := func(value string) {
				eachGuarded(func(up string) {
					testkit.Patch(t, widgets, ns, up, "somebody", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":`+value+`}}}`, ns, name))
				})
			}
			each(paused)
			testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {drop: 'yes'}}")
			waitMetric(t, guardedWidgets, "corollary_guard_deletions", name)
			each(`null, "example.com/seen": "yes"`)
			stayAll(t, ns)
		}))
	}
}

// TestGuardCountsInputsTogether: one act on many inputs counts as a whole, whether each upstream reads one of them or one reads all, and
// however fast they go.
func TestGuardCountsInputsTogether(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		upstreams    int // which share the inputs evenly
		all          bool
	}{
		{"one each", "no input has several readers", guardedWidgets, true},
		{"one for all", "no input has several readers, and those that go first are deleted before the others go", 1, false},
		{"one for all, at once", "a collection is deleted by one request", 1, true},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := withoutRecord(t, fill(widgetConfig, ns, name)) + "inputs: [{name: volumes, apiVersion: test.example.com/v1, kind: Gadget, list: {matching: 'object.spec.data.of == self.metadata.name'}}]\n"
			conf = replaceOnce(t, conf, "    # downstream\n", "    forEach: {items: inputs.volumes}\n")
			conf = replaceOnce(t, conf, "{{ .spec.name | default .metadata.name }}", `"{{ item.metadata.name }}"`)
			r := start(t, testkit.Config(t), conf).ready()
			for i := range guardedWidgets {
				testkit.Apply(t, ns, object("Gadget", named(i), fmt.Sprintf(`{data: {of: %s}}`, named(i%row.upstreams))))
			}
			for i := range row.upstreams {
				testkit.Apply(t, ns, widget(named(i), `{data: {key: value}}`))
			}
			eachGuarded(func(up string) { waitData(t, ns, up, "key", "value") })
			const allowed = 5 // guard.minimum
			for i := range guardedWidgets {
				testkit.Delete(t, gadgets, ns, named(i))
				if !row.all && i < allowed {
					waitGone(t, configMaps, ns, named(i))
				}
			}
			waitState(t, name, "GuardWaiting")
			never(t, func() (bool, string) {
				n := len(testkit.List(t, configMaps, ns, selector(name)))
				return n < guardedWidgets-allowed, fmt.Sprintf("%s: %d of %d objects are left", row.reason, n, guardedWidgets)
			})
			r.confirm(conf)
			eachGuarded(func(up string) { waitGone(t, configMaps, ns, up) })
		}))
	}
}

// TestGuardForgetsWhatItAllowed: inputs that change all the time, each at its own time, are not one change.
func TestGuardForgetsWhatItAllowed(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), dropKey) +
			"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: self.spec.anything.of, missing: Allow}]\n"
		start(t, testkit.Config(t), conf).ready()
		eachGuarded(func(up string) { testkit.Apply(t, ns, widget(up, `{data: {key: value}, anything: {of: of-`+up+`}}`)) })
		eachGuarded(func(up string) { waitData(t, ns, up, "key", "value") })
		for i := range guardedWidgets {
			testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-"+named(i)+"}, data: {drop: 'yes'}}")
			waitGone(t, configMaps, ns, named(i))
			deleted := time.Now()
			testkit.Eventually(t, patience, func() (bool, string) { return time.Since(deleted) > 20*time.Second, "time passes" })
		}
	})
}

// A reload after which upstreams fail to render that were rendered before waits, whatever guard allows: what fails is named. One that
// failed before does not count.
func TestGuardHoldsRenderFailures(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name) // less than guard.minimum, so that no deletion would be held
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("good", `{data: {key: value}}`))
		testkit.Apply(t, ns, widget("bad", `{}`))
		waitCondition(t, widgets, ns, "good", "Ready", "True")
		waitCondition(t, widgets, ns, "bad", "Ready", "False")
		r.waitError(r.ObjectsReady, []string{"operator " + name + ": 1 of 2 upstreams are not Ready: RenderFailed 1"})
		r.mustBeReady()

		needsMore := strings.Replace(conf, "data: {{ .spec.data }}", `data: {key: "{{ .spec.data.more }}"}`, 1)
		r.reloadTo(needsMore)
		waitState(t, name, "GuardWaiting")
		says := "1 upstream that the active config renders would be RenderFailed without confirmation: " + ns + "/good (config: RenderFailed: "
		r.waitSays(says, ".spec.data.more")
		waitData(t, ns, "good", "key", "value")
		r.mustBeReady()

		r.confirm(needsMore)
		waitState(t, name, "Running")
		r.waitError(r.ObjectsReady, []string{"RenderFailed 2"})

		r.reloadTo(strings.Replace(conf, "data: {{ .spec.data }}", "data: {{ .spec.data | default dict }}", 1)) // fewer fail: it does not wait
		waitCondition(t, widgets, ns, "bad", "Ready", "True")
	})
}

// TestGuardSaysWhatItHolds: an upstream that guard holds says so, once, also when it is edited, and no more once it continues. What the
// config has forgotten stays recorded.
func TestGuardSaysWhatItHolds(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), dropKey) + "inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: '\"shared\"', missing: Allow}]\n"
		conf = replaceOnce(t, conf, fill("  pause: {annotation: NAME.example.com/paused}\n", ns, name), "")
		const more = "  - {name: note, apiVersion: v1, kind: Secret, template: 'metadata: {name: {{ .metadata.name }}}'}\n"
		counter := testkit.NewCounter()
		r := start(t, counter.Wrap(testkit.Config(t)), strings.Replace(conf, "conventions:\n", more+"conventions:\n", 1)).ready()
		applyGuarded(t, ns)
		r.reloadTo(conf)
		recorded := func() string { return fmt.Sprint(testkit.Get(t, widgets, ns, named(0)).Object["status"]) }
		testkit.Eventually(t, patience, func() (bool, string) { return strings.Contains(recorded(), "Leftover"), recorded() })
		says := func(i int, held bool) {
			testkit.Eventually(t, patience, func() (bool, string) {
				status, _, message := condition(testkit.Find(t, widgets, ns, named(i)), "Ready")
				return status == "True" && strings.HasPrefix(message, "held: guard") == held, status + ": " + message
			})
		}
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {drop: 'yes'}}")
		for i := range guardedWidgets {
			says(i, true)
		}
		testkit.Apply(t, ns, widget(named(0), `{data: {key: other}}`))
		bubble.Quiet(t, counter)
		if !strings.Contains(recorded(), "Leftover") {
			t.Errorf("what the config has forgotten is not recorded any more: %s", recorded())
		}
		edited := testkit.Find(t, widgets, ns, named(0))
		if seen, _, _ := unstructured.NestedInt64(edited.Object, "status", "observedGeneration"); seen == edited.GetGeneration() {
			t.Errorf("the status is of generation %d, which nobody acted on", seen)
		}
		r.confirm(conf)
		for i := range guardedWidgets {
			waitGone(t, configMaps, ns, named(i))
			says(i, false)
		}
	})
}
