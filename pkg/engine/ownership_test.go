package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// mustBeSame fails if an object is gone, or another one.
func mustBeSame(t *testing.T, gvr schema.GroupVersionResource, was *unstructured.Unstructured, why string) {
	t.Helper()
	if now := testkit.Find(t, gvr, was.GetNamespace(), was.GetName()); now == nil || now.GetUID() != was.GetUID() {
		t.Errorf("%s %s is gone, or another one: %s", gvr.Resource, was.GetName(), why)
	}
}

// recordsNothing fails if the status of an upstream records a downstream.
func recordsNothing(t *testing.T, up *unstructured.Unstructured) {
	t.Helper()
	if ids := downstreamsOf(up); len(ids) > 0 {
		t.Errorf("the status records what is not ours: %v", ids)
	}
}

// Anyone who may create ConfigMaps can write our mark on one, whatever else it has and whatever it says of its writers.
// It is not ours for that: nothing of it is changed, and the message says how to go on.
func TestForgedMark(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, reason, data, fields string }{
		{"more", "it has more than we would give it", `{key: value, evil: added}`, ""},
		{"nothing-more", "it is what we would make, but for who made it", `{key: value}`, ""},
		{"forged-fields", "the API server does not take over who a client says has written a new object", `{key: value}`,
			`managedFields: [{manager: NAME, operation: Apply, apiVersion: v1, time: "2024-01-01T00:00:00Z", fieldsType: FieldsV1,
			  fieldsV1: {"f:metadata": {"f:ownerReferences": {".": {}, 'k:{"uid":"UID"}': {}}}, "f:data": {"f:none": {}}}}],`},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			up := testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			cm := post(t, ns, name, strings.NewReplacer("NAME", name, "UID", string(up.GetUID())).Replace(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, `+row.fields+`
			  labels: {NAME.example.com/managed: "yes"}, ownerReferences: [
			  {apiVersion: test.example.com/v1, kind: Widget, name: a, uid: UID, controller: true}]}, data: `+row.data+`}`))
			r, counter := startCounted(t, fill(widgetConfig, ns, name))
			readyIs(t, widgets, ns, "a", "False", "Conflict", "has our owner mark, but was not created by this operator: delete it")
			u := readyIs(t, widgets, ns, "a", "False", "Conflict", "IfUnowned")
			if now := testkit.Get(t, configMaps, ns, "a"); now.GetResourceVersion() != cm.GetResourceVersion() {
				t.Errorf("%s: it was written to: %v", row.reason, now.Object)
			}
			recordsNothing(t, u)
			if n := counter.Snapshot(); n[writeDownstream]+n[readDownstream] > 0 {
				t.Errorf("%s: it costs requests: %v", row.reason, n)
			}
			r.restart(nil, with(fill(widgetConfig, ns, name), "adoptionPolicy: IfUnowned"))
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			mustBeSame(t, configMaps, cm, "with IfUnowned it is adopted: "+row.reason)
			if row.name == "more" { // without adopt.fieldManagers, what another writer set stays
				waitData(t, ns, "a", "evil", "added")
			}
		}))
	}
}

// Where the status is a field that any author writes, what it records makes nothing ours, and nothing is deleted for
// it: not even what it says that a deletion.before of an earlier config has made.
func TestForgedStatus(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, as, meta, labels string
		deleted                  bool // while it is paused
	}{
		{"the watch does not show the object", "config", "", "", false},
		{"the watch shows the object", "config", "", `labels: {NAME.example.com/managed: "yes"}`, false},
		{"a downstream, at deletion", "config", `finalizers: [NAME.example.com/cleanup], annotations: {NAME.example.com/paused: "true"}`, "", true},
		{"deletion.before, at deletion", "deletion.before", `finalizers: [NAME.example.com/cleanup], annotations: {NAME.example.com/paused: "true"}`, "", true},
	} {
		t.Run(row.reason, spacedTwice(func(t *testing.T, ns, other, name string) {
			start(t, testkit.Config(t), strings.Replace(fill(widgetConfig, ns, name), "kind: Widget", "kind: Plain", 1)).ready()
			at := ns
			if row.deleted {
				at = other
			}
			cm := testkit.Apply(t, at, fill(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, `+row.labels+`}, data: {key: theirs}}`, ns, name))
			testkit.Apply(t, ns, fill(fmt.Sprintf(`{apiVersion: test.example.com/v1, kind: Plain, metadata: {name: a, %s}, spec: {data: {key: value}},
			  status: {downstreams: [{name: %s, apiVersion: v1, kind: ConfigMap, namespace: %s, objectName: a, uid: %s, state: InSync}]}}`, row.meta, row.as, at, cm.GetUID()), ns, name))
			if row.deleted {
				deleteAndWait(t, plains, ns, "a")
			} else {
				waitsFor(t, plains, ns, "a", "Conflict")
			}
			waitData(t, at, "a", "key", "theirs")
			mustBeSame(t, configMaps, cm, "it is somebody else's")
		}))
	}
}

// TestForgedBeforeRecord: anyone who may write the status of one upstream can hold its deletion, and cannot have an
// object deleted by it that never had a mark of ours.
func TestForgedBeforeRecord(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		start(t, testkit.Config(t), fill(widgetConfig, ns, name)).ready()
		cm := testkit.Apply(t, other, `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {key: theirs}}`)
		testkit.Apply(t, ns, fmt.Sprintf(`{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: a, finalizers: [%[1]s.example.com/cleanup],
	  annotations: {%[1]s.example.com/paused: "true"}}, spec: {data: {key: value}}}`, name))
		waitCondition(t, widgets, ns, "a", "Ready", "False") // else our own status would be written over theirs
		testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "deletion.before", "apiVersion": "v1", "kind": "ConfigMap",
				"namespace": other, "objectName": "theirs", "uid": string(cm.GetUID()), "state": "BeforeRunning"}}, "status", "downstreams")
		}, "status")
		testkit.Delete(t, widgets, ns, "a")
		eventuallyCondition(t, ns, "a", "False", "", "theirs disappeared before it finished")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"status":{"downstreams":[{"name":"deletion.before","state":"BeforeFinished"}]}}`, "status")
		waitGone(t, widgets, ns, "a")
		mustExist(t, configMaps, other, "theirs", "somebody else's object was deleted")
	})
}

// Another upstream's object does not become ours to delete by a second owner reference.
func TestSecondOwnerReference(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		start(t, testkit.Config(t), fill(widgetConfig, ns, name)).ready()
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		b := testkit.Apply(t, ns, widget("b", `{data: {key: value}}`))
		cm := waitData(t, ns, "a", "key", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		waitCondition(t, widgets, ns, "b", "Ready", "True")
		testkit.Update(t, configMaps, ns, "a", func(u *unstructured.Unstructured) {
			u.SetOwnerReferences(append(u.GetOwnerReferences(), metav1.OwnerReference{APIVersion: b.GetAPIVersion(), Kind: b.GetKind(), Name: "b", UID: b.GetUID()}))
		})
		testkit.Patch(t, widgets, ns, "b", "somebody", `{"spec":{"data":{"key":"new"}}}`)
		waitData(t, ns, "b", "key", "new")
		waitCondition(t, widgets, ns, "b", "Ready", "True") // reported last, after what is left over was dealt with
		mustBeSame(t, configMaps, cm, "it is the other one's")
	})
}

// Whoever copies a namespace with all that the API server records of its objects has copies that belong to nobody: they
// are not deleted, not with their upstream either, and an upstream that wants one says whose it seems to be.
func TestCopiedNamespace(t *testing.T) {
	t.Parallel()
	for row, more := range map[string]string{"deleted": "", "waits": waiting, "not wanted": "", "renamed": ""} {
		t.Run(row, spacedTwice(func(t *testing.T, ns, other, name string) {
			conf := strings.NewReplacer("namespaces: ["+ns+"]", "namespaces: ["+ns+", "+other+"]", "owner: {", "owner: {reference: false, ").
				Replace(with(fill(widgetConfig, ns, name), "when: \"!('none' in self.spec.data)\"")) + more
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", `{data: {key: value}}`)
			copied := testkit.Get(t, configMaps, ns, "a").DeepCopy()
			records := must.Get(json.Marshal(copied.GetManagedFields())).In(t)
			<-time.After(2 * time.Minute)
			copied.SetNamespace(other)
			copied.SetUID("")
			copied.SetResourceVersion("")
			copied.SetManagedFields(nil)
			must.Get(testkit.Dynamic(t).Resource(configMaps).Namespace(other).Create(t.Context(), copied, metav1.CreateOptions{FieldManager: "restore"})).In(t)
			testkit.Patch(t, configMaps, other, "a", "restore", fmt.Sprintf(`{"metadata":{"managedFields":%s}}`, records))
			testkit.Apply(t, other, widget("a", `{data: {key: copied}}`))
			waitsFor(t, widgets, other, "a", "Conflict", "belongs to "+ns+"/a")
			r = r.restart(nil, conf)
			testkit.Apply(t, ns, widget("a", `{data: {key: new}}`))
			waitData(t, ns, "a", "key", "new")
			switch row {
			case "not wanted":
				testkit.Apply(t, ns, widget("a", `{data: {none: more}}`))
			case "renamed":
				testkit.Apply(t, ns, widget("a", `{name: a2, data: {key: value}}`))
			default:
				deleteAndWait(t, widgets, ns, "a")
			}
			waitGone(t, configMaps, ns, "a")
			r = r.restart(nil, conf)
			never(t, func() (bool, string) {
				u := testkit.Find(t, configMaps, other, "a")
				return u == nil || u.GetDeletionTimestamp() != nil, "the copy is deleted"
			})
			r.halt()
		}))
	}
}

// An object that a second owner keeps when its upstream is deleted is listed as left over, and the next upstream of that
// name says what keeps it.
func TestKeptByASecondOwner(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", `{data: {key: value}}`)
		theirs := testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}")
		testkit.Update(t, configMaps, ns, "a", func(u *unstructured.Unstructured) {
			u.SetOwnerReferences(append(u.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: theirs.GetUID()}))
		})
		deleteAndWait(t, widgets, ns, "a")
		testkit.Update(t, configMaps, ns, "a", func(u *unstructured.Unstructured) { // as the garbage collector does
			u.SetOwnerReferences(u.GetOwnerReferences()[1:])
		})
		left := leftOf(t, conf)
		if len(left) != 1 || left[0].Target.Name != "a" {
			t.Errorf("a survey finds left of upstreams that are gone: %v", left)
		}
		testkit.Apply(t, ns, widget("a", `{data: {key: new}}`))
		waitsFor(t, widgets, ns, "a", "Conflict", "ConfigMap theirs")
		waitData(t, ns, "a", "key", "value")
	})
}

// Two downstreams of a kind may change their names for each other's.
func TestSwappedNames(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer("name: {{ .spec.name | default .metadata.name }}", `name: {{ ternary "y" "x" (.spec.exposed | default false) }}`,
			"    # downstream\n", `  - name: second
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: {{ ternary "x" "y" (.spec.exposed | default false) }}}
      data: {second: "yes"}
`).Replace(fill(widgetConfig, ns, name))
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitData(t, ns, "y", "second", "yes")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"exposed":true}}`)
		waitData(t, ns, "x", "second", "yes")
		waitData(t, ns, "y", "key", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
	})
}

// A downstream whose upstream was made to go by force is left over: the next upstream of that name says so, and takes
// it over where the config allows it. One that another operator marks for an upstream of the same name and another kind
// is not taken.
func TestLeftByAnEarlierUpstream(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, policy, says string
		again              func(t *testing.T, other, name, mark string)
		adopted            bool
	}{
		{name: "never", policy: "Never", says: ", and there is no such Widget: if no other operator has these conventions, delete it"},
		{name: "adopted", policy: "IfUnowned", adopted: true},
		{name: "restored", policy: "IfUnowned", adopted: true, again: func(t *testing.T, other, name, mark string) {
			testkit.Delete(t, configMaps, other, "a")
			post(t, other, "restore", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {`+name+`.example.com/managed: "yes"}, annotations: {`+name+`.example.com/owner: `+mark+`}}, data: {key: old}}`)
		}},
		{name: "another operator's", policy: "IfUnowned", says: "exists and belongs to another NS/a", again: func(t *testing.T, other, name, mark string) {
			testkit.Delete(t, configMaps, other, "a")
			testkit.Apply(t, other, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {`+name+`.example.com/owner: `+mark+`}}, data: {key: old}}`)
		}},
	} {
		t.Run(row.name, spacedTwice(func(t *testing.T, ns, other, name string) {
			conf := replaceOnce(t, elsewhere(fill(widgetConfig, ns, name), other, ns), "    targetNamespaces:", "    adoptionPolicy: "+row.policy+"\n    targetNamespaces:")
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: old}}`)
			r.halt()
			testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
			testkit.Delete(t, widgets, ns, "a")
			cm := waitData(t, other, "a", "key", "old")
			if row.again != nil {
				row.again(t, other, name, cm.GetAnnotations()[name+".example.com/owner"])
			}
			left := testkit.Get(t, configMaps, other, "a")
			if rest := leftOf(t, conf); row.says != "exists and belongs to another NS/a" && (len(rest) != 1 || rest[0].Target.Name != "a") {
				t.Errorf("a survey finds left of upstreams that are gone: %v", rest)
			}
			testkit.Apply(t, ns, widget("a", `{namespace: `+other+`, data: {key: new}}`))
			start(t, testkit.Config(t), conf).ready()
			if row.adopted {
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				waitData(t, other, "a", "key", "new")
				mustBeSame(t, configMaps, left, "it is adopted")
				testkit.Delete(t, widgets, ns, "a")
				waitGone(t, configMaps, other, "a")
				return
			}
			waitsFor(t, widgets, ns, "a", "Conflict", strings.ReplaceAll(row.says, "NS", ns))
			waitData(t, other, "a", "key", "old")
		}))
	}
}

// leftOf are the objects that a survey finds left of upstreams that are gone.
func leftOf(t *testing.T, conf string) []preview.Change {
	t.Helper()
	var left []preview.Change
	for _, f := range surveyAll(t, testkit.Config(t), survey.Options{Left: true}, conf) {
		left = append(left, f.Left...)
	}
	return left
}

// With a record or without, a restart over objects in sync costs nothing for each of them; and what someone adds to an
// object does not keep us from enforcing what is ours, though no status can record that it is.
func TestRestartWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]string{"recorded": "  downstreams: .status.downstreams\n", "unrecorded": "", "no status": "off"} {
		t.Run(name, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(fill(widgetConfig, ns, name), "  downstreams: .status.downstreams\n", strings.TrimPrefix(status, "off"), 1)
			if status == "off" {
				conf = replaceOnce(t, conf, "  conditions: {ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled}\n", "  enabled: false\n")
			}
			r := start(t, testkit.Config(t), conf).ready()
			const objects = 20
			for i := range objects {
				testkit.Apply(t, ns, widget(named(i), `{data: {key: value}}`))
			}
			waitMany(t, ns, objects, "key", "value")
			if status != "off" {
				for i := range objects {
					waitCondition(t, widgets, ns, named(i), "Ready", "True")
				}
			}
			r.halt()
			for i := range objects { // another writer's key, label and finalizer
				testkit.Patch(t, configMaps, ns, named(i), "tenant", `{"metadata":{"labels":{"theirs":"x"},"finalizers":["tenant.example.com/hold"]},"data":{"theirs":"x"}}`)
			}
			r, counter := startCounted(t, conf)
			exactly(t, counter, 0, "a restart", func(r testkit.Request) bool { return r.Resource == "configmaps" && r.Verb != "LIST" || r.Mutating() })
			r.halt()
			testkit.Patch(t, configMaps, ns, named(0), "tenant", `{"data":{"key":"tampered"}}`)
			start(t, testkit.Config(t), conf).ready()
			cm := waitData(t, ns, named(0), "key", "value")
			if have, _, _ := unstructured.NestedString(cm.Object, "data", "theirs"); have != "x" {
				t.Error("what is theirs was taken away")
			}
			for i := range objects {
				testkit.Patch(t, configMaps, ns, named(i), "tenant", `{"metadata":{"finalizers":null}}`)
			}
		}))
	}
}

// An object whose owner mark someone has removed stays ours: it goes when nothing wants it any more, when its successor
// exists, and with its upstream. The mark goes while no process runs, or while one runs that leaves drift alone.
func TestStrippedMarks(t *testing.T) {
	t.Parallel()
	endings := map[string]string{"unwanted": `{"spec":{"exposed":true}}`, "renamed": `{"spec":{"name":"b"}}`, "deleted": ""}
	const when, report = "    when: '!has(self.spec.exposed) || !self.spec.exposed'\n", "    drift: {policy: Report}\n"
	const recorded = "  downstreams: .status.downstreams\n"
	for _, row := range []struct {
		reason, downstream, status, stripped string
		running                              bool
	}{
		{"nothing runs", when, recorded, "", false},
		{"nothing runs, and the label goes too", when, recorded, `,"labels":null`, false},
		{"nothing runs, and the object is to be released", when + "    deletionPolicy: Orphan\n", recorded, "", false},
		{"drift is reported", when + report, recorded, "", true},
		{"the process alone remembers", when + report, "", "", true},
	} {
		for ending, patch := range endings {
			t.Run(row.reason+"/"+ending, spaced(func(t *testing.T, ns, name string) {
				at, conf := ns, strings.NewReplacer("    # downstream\n", row.downstream+"    # downstream\n", recorded, row.status).Replace(fill(widgetConfig, ns, name))
				if ending == "deleted" { // a reference to another namespace is none: the finalizer cleans up
					at = testkit.Namespace(t)
					conf = elsewhere(conf, at, ns)
				}
				r := start(t, testkit.Config(t), conf).ready()
				applyReady(t, ns, "a", `{namespace: `+at+`, data: {key: value}}`)
				cm := waitData(t, at, "a", "key", "value")
				if !row.running {
					r.halt()
				}
				testkit.Patch(t, configMaps, at, "a", "somebody",
					fmt.Sprintf(`{"metadata":{"ownerReferences":null,"annotations":{"%s.example.com/owner":null}%s}}`, name, row.stripped))
				if ending == "deleted" {
					testkit.Delete(t, widgets, ns, "a")
				} else {
					testkit.Patch(t, widgets, ns, "a", "somebody", patch)
				}
				if !row.running {
					start(t, testkit.Config(t), conf).ready()
				}
				testkit.Eventually(t, patience, func() (bool, string) {
					u := testkit.Find(t, configMaps, at, "a")
					if strings.Contains(row.downstream, "Orphan") {
						return u != nil && u.GetUID() == cm.GetUID() && len(u.GetLabels())+len(u.GetAnnotations()) == 0, "it is not released"
					}
					return u == nil, "it still exists"
				})
				if ending == "deleted" {
					waitGone(t, widgets, ns, "a")
				}
			}))
		}
	}
}

// An upstream that is deleted and made again at once meets the downstream of the earlier one, which the garbage
// collector has not deleted yet, or which a finalizer keeps: that does not count as a conflict, and is not reported as
// one.
func TestMadeAgainUnderItsName(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		start(t, testkit.Config(t), fill(widgetConfig, ns, name)).ready()
		var mu sync.Mutex
		reported := map[string]string{}
		testkit.NewMirror(t, widgets, func(u *unstructured.Unstructured) {
			mu.Lock()
			defer mu.Unlock()
			if u.GetNamespace() == ns {
				_, reason, message := condition(u, "Ready")
				reported[reason] = message
			}
		})
		for i := range 3 {
			applyReady(t, ns, "a", `{data: {key: value}}`)
			before := testkit.Get(t, configMaps, ns, "a").GetUID()
			testkit.Patch(t, configMaps, ns, "a", "tenant", `{"metadata":{"finalizers":["tenant.example.com/hold"]}}`)
			deleteAndWait(t, widgets, ns, "a")
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitsFor(t, widgets, ns, "a", "Waiting", "is being deleted and is recreated")
			testkit.Patch(t, configMaps, ns, "a", "tenant", `{"metadata":{"finalizers":null}}`)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			if testkit.Get(t, configMaps, ns, "a").GetUID() == before {
				t.Fatalf("round %d: it is the earlier object", i)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if message, ok := reported["Conflict"]; ok {
			t.Errorf("a conflict is reported: %s", message)
		}
	})
}

// Objects with a forged mark at a place that is not a target are not deleted, nor do they hold the deletion of their
// upstream.
func TestForgedLeftover(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		start(t, testkit.Config(t), replaceOnce(t, elsewhere(fill(widgetConfig, ns, name), other, ns), "status:\n", "deletion: {wait: true}\nstatus:\n")).ready()
		up := applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
		forged := post(t, other, name, strings.NewReplacer("NAME", name, "UID", string(up.GetUID()), "NS", ns).Replace(`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs,
	  managedFields: [{manager: NAME, operation: Apply, apiVersion: v1, time: "2024-01-01T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:none": {}}}}],
	  labels: {NAME.example.com/managed: "yes"}, annotations: {NAME.example.com/owner: NS/a/UID}}, data: {key: theirs}}`))
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"new"}}}`)
		waitData(t, other, "a", "key", "new")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		deleteAndWait(t, widgets, ns, "a")
		mustBeSame(t, configMaps, forged, "it is somebody else's")
		mustBeAbsent(t, configMaps, other, "a", "our own object was left behind")
	})
}

// What a changed config has forgotten stays when its upstream goes, and a survey finds it: the downstream has another
// name, and its object, too.
func TestForgottenIsFound(t *testing.T) {
	t.Parallel()
	for name, suffix := range map[string]string{"downstream": "", "object": "-new"} {
		t.Run(name, spacedTwice(func(t *testing.T, ns, other, name string) {
			conf := elsewhere(fill(widgetConfig, ns, name), other, ns)
			renamed := strings.NewReplacer("- name: config\n", "- name: renamed\n", "{{ .metadata.name }}", "{{ .metadata.name }}"+suffix).Replace(conf)
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: old}}`)
			r.halt()
			testkit.Delete(t, widgets, ns, "a")
			start(t, testkit.Config(t), renamed).ready()
			waitGone(t, widgets, ns, "a")
			if left := leftOf(t, renamed); len(left) != 1 || left[0].Target.Name != "a" {
				t.Errorf("a survey finds left of upstreams that are gone: %v", left)
			}
			testkit.Get(t, configMaps, other, "a")
		}))
	}
}
