package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// The upstream stays after deletion.before until its downstreams are gone, where the config says both; and the steps
// come in their order.
func TestBeforeThenWait(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(withBefore(ns, name, "onFailure: Proceed"), "deletion:\n", "deletion:\n  wait: true\n", 1)
		conf = strings.Replace(conf, "owner: {annotation", "owner: {reference: false, annotation", 1)
		_, counter := startMade(t, ns, conf)
		holdFor(t, ns, "a")
		settle(t, counter)
		testkit.Delete(t, widgets, ns, "a")
		waitBefore(t, ns, "a", "BeforeRunning")
		drain(t, ns, drainFailed)
		up := waitsFor(t, widgets, ns, "a", "Deleting", "ConfigMap "+ns+"/a is terminating")
		if _, _, message := condition(up, "Ready"); !strings.Contains(message, "failed, and onFailure is Proceed") || beforeItem(up)["state"] != "BeforeFailed" {
			t.Errorf("recorded is %v; Ready: %s", beforeItem(up), message)
		}
		if object := testkit.Get(t, configMaps, ns, "a-drain"); len(object.GetFinalizers()) > 0 || object.GetDeletionTimestamp() != nil {
			t.Errorf("the deletion.before object is held, or went before the downstreams: %v", object.Object["metadata"])
		}
		letGo(t, ns, "a")
		waitGone(t, widgets, ns, "a")
		for _, name := range []string{"a", "a-drain"} {
			mustBeAbsent(t, configMaps, ns, name, "it is left behind")
		}
		atMostRequests(t, counter, 13, "a deletion with deletion.before and wait, no owner references")
	})
}

// Between the record that it is about to be made and the one that it was, what is at the place is known to be ours.
func TestBeforeObjectCreatedThenCrash(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		r, faults := startFaulty(t, withBefore(ns, name))
		applyReady(t, ns, "a", `{data: {key: value}}`)
		refusal := faults.Answer(403, testkit.On("PATCH", "configmaps"))
		testkit.Delete(t, widgets, ns, "a")
		waitsFor(t, widgets, ns, "a", "Denied", "")
		lost := faults.Answer(500, testkit.On("PATCH", "widgets/status")) // made, and not recorded
		refusal.Off()
		var object *unstructured.Unstructured
		testkit.Eventually(t, patience, func() (bool, string) {
			object = testkit.Find(t, configMaps, ns, "a-drain")
			return object != nil && lost.Hits() > 0, "not made"
		})
		r.halt()
		if item := beforeItem(testkit.Get(t, widgets, ns, "a")); item["state"] != "Create" || item["uid"] != nil || item["objectName"] != "a-drain" {
			t.Fatalf("recorded is %v", item)
		}
		drain(t, ns, `{"data":{"note":"seen"}}`)
		start(t, testkit.Config(t), strings.Replace(withBefore(ns, name), "-drain", "-other", 1)).ready()
		if up := waitBefore(t, ns, "a", "BeforeRunning"); beforeItem(up)["uid"] != string(object.GetUID()) {
			t.Errorf("recorded is %v", beforeItem(up))
		}
		drain(t, ns, drainDone)
		waitGone(t, widgets, ns, "a")
		waitGone(t, configMaps, ns, "a-drain")
		mustBeAbsent(t, configMaps, ns, "a-other", "a second object was made")
	})
}

// Anyone who may create the kind could make the object in advance, done already, with all of our marks: it is not
// believed.
func TestBeforeForged(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		startMade(t, ns, withBefore(ns, name))
		up := testkit.Get(t, widgets, ns, "a")
		testkit.Apply(t, ns, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a-drain, labels: {%[1]s.example.com/managed: "yes"},
  annotations: {%[1]s.example.com/hash: before-v1-abc}, finalizers: [%[1]s.example.com/cleanup],
  ownerReferences: [{apiVersion: test.example.com/v1, kind: Widget, name: a, uid: %[2]s, controller: true}]}, data: {done: "yes"}}`, name, up.GetUID()))
		testkit.Delete(t, widgets, ns, "a")
		stalled(t, waitsFor(t, widgets, ns, "a", "Conflict", "was not made by deletion.before"))
		stays(t, ns)
		testkit.Update(t, configMaps, ns, "a-drain", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		testkit.Delete(t, configMaps, ns, "a-drain")
		waitBefore(t, ns, "a", "BeforeRunning")
		drain(t, ns, drainDone)
		waitGone(t, widgets, ns, "a")
	})
}

// An error in the template holds and is reported; a changed config, or an input that comes, fixes it.
func TestBeforeThatCannotBeRendered(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		inputs := "inputs: [{name: drain, apiVersion: v1, kind: ConfigMap, objectName: self.metadata.name + '-input'}]\n"
		conf := strings.Replace(withBefore(ns, name), `data: {for: "{{ .metadata.name }}"}`,
			`data: {for: {{ if eq (input "drain").data.how "badly" }}{{ fail "not so" }}{{ end }}{{ (input "drain").data.how }}}`, 1) + inputs
		startWidget(t, ns, conf)
		testkit.Delete(t, widgets, ns, "a")
		waitsFor(t, widgets, ns, "a", "Waiting", "input drain: ConfigMap "+ns+"/a-input does not exist")
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a-input}, data: {what: x}}")
		waitsFor(t, widgets, ns, "a", "Waiting", `input drain exists, but (input "drain").data.how is not set`)
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a-input}, data: {how: badly}}")
		stalled(t, waitsFor(t, widgets, ns, "a", "RenderFailed", "not so"))
		stays(t, ns)
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a-input}, data: {how: gently}}")
		waitBefore(t, ns, "a", "BeforeRunning")
		waitData(t, ns, "a-drain", "for", "gently")
		drain(t, ns, drainDone)
		waitGone(t, widgets, ns, "a")
	})
}

// An upstream that lost the label while it was being deleted is let go all the same, where deletion.before reads an
// input.
func TestBeforeOfTheUnselectedReadsInputs(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer("namespaces: ["+ns+"]}", "namespaces: ["+ns+"], labelSelector: {matchLabels: {pick: me}}}",
			`data: {for: "{{ .metadata.name }}"}`, `data: {for: {{ (input "settings").data.color }}}`).Replace(withInputs(ns, name) + beforeText)
		applySettings(t, ns, "blue", "navy")
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, strings.Replace(widget("a", `{name: blue}`), "{name: a}", "{name: a, labels: {pick: me}}", 1))
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		r.halt()
		testkit.Delete(t, widgets, ns, "a")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"pick":null}}}`)
		start(t, testkit.Config(t), conf).ready()
		waitBefore(t, ns, "a", "BeforeRunning")
		drain(t, ns, drainDone)
		waitGone(t, widgets, ns, "a")
		waitGone(t, configMaps, ns, "a-copy")
	})
}

// An upstream whose finalizer someone took off by force leaves nothing that our finalizer would keep forever.
func TestBeforeOfAnUpstreamGoneByForce(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"with a reference", "without", "while nothing runs"} {
		t.Run(row, spaced(func(t *testing.T, ns, name string) {
			conf := withBefore(ns, name)
			if row == "without" {
				conf = strings.Replace(conf, "owner: {annotation", "owner: {reference: false, annotation", 1)
			}
			r := start(t, testkit.Config(t), conf).ready()
			deleteUntilBefore(t, ns)
			if row == "while nothing runs" {
				r.halt()
			}
			testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
			waitGone(t, widgets, ns, "a")
			if row == "while nothing runs" {
				start(t, testkit.Config(t), conf).ready()
			}
			waitGone(t, configMaps, ns, "a-drain")
		}))
	}
}

// Anyone who may write the object of deletion.before cannot have it released, or deleted, by naming an upstream that
// does not exist: the status of the one that waits for it says whose it is.
func TestBeforeThatNamesAnother(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason       string
		hasReference bool
	}{{"beside the owner reference", true}, {"in its place", false}} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			_, counter := startCounted(t, withBefore(ns, name))
			deleteUntilBefore(t, ns)
			testkit.Update(t, configMaps, ns, "a-drain", func(u *unstructured.Unstructured) {
				annotate(u, name+".example.com/owner", ns+"/nobody/x")
				if !row.hasReference {
					u.SetOwnerReferences(nil)
				}
			})
			quiet(t, counter)
			if u := testkit.Find(t, configMaps, ns, "a-drain"); u == nil || len(u.GetFinalizers()) == 0 || u.GetDeletionTimestamp() != nil {
				t.Errorf("it was released: %v", u)
			}
			waitBefore(t, ns, "a", "BeforeRunning")
			drain(t, ns, drainDone)
			waitGone(t, widgets, ns, "a")
		}))
	}
}

// What happens to the deletion.before object is reported in events, each once.
func TestBeforeEvents(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		startWidget(t, ns, strings.Replace(withBefore(ns, name), "events: None", "events: All", 1))
		testkit.Delete(t, widgets, ns, "a")
		waitEvent(t, ns, "a", "Created", "a-drain created")
		waitBefore(t, ns, "a", "BeforeRunning")
		drain(t, ns, drainFailed)
		waitEvent(t, ns, "a", "BeforeFailed", "set deletion.before.onFailure: Proceed")
		drain(t, ns, drainDone)
		waitEvent(t, ns, "a", "BeforeFinished", "finished")
		waitGone(t, widgets, ns, "a")
	})
}

// passBefore lets the deletion of an upstream continue, by hand.
func passBefore(t *testing.T, ns, name string) {
	t.Helper()
	item := beforeItem(testkit.Get(t, widgets, ns, name))
	item["state"] = "BeforeFinished"
	text := must.Get(json.Marshal(map[string]any{"status": map[string]any{"downstreams": []any{item}}})).In(t)
	testkit.Patch(t, widgets, ns, name, "platform", string(text), "status")
}

// A config that changes in the middle of a deletion lets nothing go that is not backed up, and leaves nothing that our
// finalizer would keep forever.
func TestBeforeOfAnotherConfig(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		change       func(conf string) string
	}{
		{"none any more", "what has begun is waited for", func(conf string) string { before, _, _ := strings.Cut(conf, "deletion:"); return before }},
		{"of another kind", "likewise, whatever onFailure says of the other kind", func(conf string) string {
			return strings.NewReplacer("    apiVersion: v1\n    kind: ConfigMap\n    template: |\n      metadata: {name: \"", "    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: \"",
				"downstream.?data.?done", "downstream.?type").Replace(conf)
		}},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := withBefore(ns, name, "onFailure: Proceed")
			r := start(t, testkit.Config(t), conf).ready()
			deleteUntilBefore(t, ns)
			r.halt()
			changed := row.change(conf)
			if changed == conf {
				t.Fatal("the config is the same")
			}
			start(t, testkit.Config(t), changed).ready()
			stalled(t, waitsFor(t, widgets, ns, "a", "BeforeRunning", "only doneWhen knows whether ConfigMap "+ns+"/a-drain has finished"))
			stays(t, ns)
			passBefore(t, ns, "a")
			nothingIsLeft(t, ns)
		}))
	}
}

// TestBeforeOfAnotherOwner: what deletion.before has made is not deleted once it belongs to someone else, but our
// finalizer does not hold it. What has lost its marks is waited for all the same, and goes.
func TestBeforeOfAnotherOwner(t *testing.T) {
	t.Parallel()
	const annotated = "owner: {reference: false, annotation"
	for _, row := range []struct {
		reason, owner string
		change        func(u, b *unstructured.Unstructured, mark string)
		stays         bool
	}{
		{"another upstream controls it", "owner: {annotation", func(u, b *unstructured.Unstructured, _ string) {
			owner := ownerReference(b)
			owner.Controller = new(true)
			u.SetOwnerReferences([]metav1.OwnerReference{owner})
		}, true},
		{"kubectl delete --cascade=orphan has removed its references", "owner: {annotation", func(u, _ *unstructured.Unstructured, _ string) {
			u.SetOwnerReferences(nil)
		}, false},
		{"its mark names another upstream", annotated, func(u, b *unstructured.Unstructured, mark string) {
			annotate(u, mark, b.GetNamespace()+"/"+b.GetName()+"/"+string(b.GetUID()))
		}, true},
		{"its mark names nobody", annotated, func(u, b *unstructured.Unstructured, mark string) {
			annotate(u, mark, b.GetNamespace()+"/nobody/"+string(b.GetUID()))
		}, false},
		{"it has no mark", annotated, func(u, _ *unstructured.Unstructured, mark string) { annotate(u, mark, "") }, false},
	} {
		for _, at := range []string{"done", "of another kind"} {
			t.Run(row.reason+" "+at, spaced(func(t *testing.T, ns, name string) {
				conf := strings.Replace(withBefore(ns, name, "onFailure: Proceed"), "owner: {annotation", row.owner, 1)
				r := start(t, testkit.Config(t), conf).ready()
				other := applyReady(t, ns, "b", `{data: {key: value}}`)
				deleteUntilBefore(t, ns)
				testkit.Update(t, configMaps, ns, "a-drain", func(u *unstructured.Unstructured) { row.change(u, other, name+".example.com/owner") })
				if at == "done" {
					drain(t, ns, drainDone)
				} else {
					r.halt()
					before, _, _ := strings.Cut(conf, "deletion:")
					start(t, testkit.Config(t), before).ready()
					waitsFor(t, widgets, ns, "a", "BeforeRunning", "only doneWhen")
					passBefore(t, ns, "a")
				}
				waitGone(t, widgets, ns, "a")
				if !row.stays {
					waitGone(t, configMaps, ns, "a-drain")
					return
				}
				never(t, func() (bool, string) {
					u := testkit.Find(t, configMaps, ns, "a-drain")
					return u == nil || u.GetDeletionTimestamp() != nil, "it was deleted"
				})
				if f := testkit.Get(t, configMaps, ns, "a-drain").GetFinalizers(); len(f) > 0 {
					t.Errorf("its finalizers are %v", f)
				}
			}))
		}
	}
}

// annotate sets an annotation; "" removes it.
func annotate(u *unstructured.Unstructured, key, value string) {
	all := u.GetAnnotations()
	if all[key] = value; value == "" {
		delete(all, key)
	}
	u.SetAnnotations(all)
}

// In a namespace that is being deleted, the object of deletion.before cannot be created: the deletion does what
// onFailure says, at once.
func TestBeforeInTerminatingNamespace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		lines        []string
		end          func(t *testing.T, ns string) // what a person does about a deletion that is held
	}{
		{name: "proceeds", reason: "the failure is one like any other", lines: []string{"onFailure: Proceed"}},
		{name: "recorded by hand", reason: "the message says how", end: func(t *testing.T, ns string) {
			passBefore(t, ns, "a")
		}},
		{name: "switched off", reason: "the author of the upstream does not want it any more", lines: []string{`when: self.spec.?name.orValue("") != "none"`},
			end: func(t *testing.T, ns string) {
				testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"name":"none"}}`)
			}},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := withBefore(ns, name, row.lines...)
			startMade(t, ns, conf)
			testkit.Delete(t, namespaces, "", ns)
			testkit.Delete(t, widgets, ns, "a") // as the namespace controller does, which may take its time
			if row.end != nil {
				up := waitsFor(t, widgets, ns, "a", "BeforeFailed", "a-drain cannot be created: namespace "+ns+" is being deleted; nothing is deleted: ")
				stalled(t, up)
				if beforeItem(up)["state"] != "BeforeFailed" {
					t.Errorf("recorded is %v", beforeItem(up))
				}
				for _, f := range surveyAll(t, testkit.Config(t), survey.Options{}, conf) {
					if len(f.Changes) == 0 || f.Changes[0].Action != preview.Wait {
						t.Errorf("the survey says %+v", f.Changes)
					}
				}
				row.end(t, ns)
			}
			waitGone(t, widgets, ns, "a")
		}))
	}
}

// The object of deletion.before gets the labels that the watch selects by when they change, so that its end is seen at
// once. Whoever takes them off again is not fought.
func TestBeforeWhoseLabelsChange(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"reload", "restart"} {
		t.Run(how, spaced(func(t *testing.T, ns, name string) {
			conf := replaceOnce(t, withBefore(ns, name), "minDelay: 1s, maxDelay: 10s", "minDelay: 1h, maxDelay: 24h")
			changed := replaceOnce(t, conf, `managed: "yes"`, `managed: "again"`)
			r, counter := startMade(t, ns, conf)
			testkit.Delete(t, widgets, ns, "a")
			waitBefore(t, ns, "a", "BeforeRunning")
			if how == "reload" {
				r.changeTo(name, changed)
			} else {
				r.restart(counter, changed)
			}
			key := name + ".example.com/managed"
			waitThat(t, configMaps, ns, "a-drain", func(u *obj) bool { return u.GetLabels()[key] == "again" })
			settle(t, counter)
			for range 3 {
				testkit.Patch(t, configMaps, ns, "a-drain", "somebody", `{"metadata":{"labels":{"`+key+`":null}}}`)
				quiet(t, counter)
			}
			if n := counter.Mutating(); n > 1 {
				t.Errorf("%d writes: %v", n, counter.Snapshot())
			}
			testkit.Patch(t, configMaps, ns, "a-drain", "somebody", `{"metadata":{"labels":{"`+key+`":"again"}}}`)
			quiet(t, counter)
			drain(t, ns, drainDone)
			nothingIsLeft(t, ns)
		}))
	}
}
