package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// contributing sets fields of a ConfigMap that someone else makes.
func contributing(ns, name, more string) string {
	text := strings.Replace(fill(widgetConfig, ns, name), "  labels: {"+name+".example.com/managed: \"yes\"}\n", "", 1)
	return strings.Replace(text, "    kind: ConfigMap\n", "    kind: ConfigMap\n    ownership: Fields\n"+more, 1)
}

// makeTheirs makes an object that has one key of someone else.
func makeTheirs(t *testing.T, ns, name string) {
	t.Helper()
	testkit.Apply(t, ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", labels: {app: theirs}}\ndata: {theirs: '1'}")
}

// waitUntouched waits until nothing of ours is left on an object: its labels, annotations and data are those that
// makeTheirs made.
func waitUntouched(t *testing.T, ns, name, operator string) {
	t.Helper()
	waitThat(t, configMaps, ns, name, func(u *obj) bool {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		managed := slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == operator })
		return len(data) == 1 && data["theirs"] == "1" && len(u.GetAnnotations()) == 0 && len(u.GetLabels()) == 1 && !managed
	})
}

func jsonOf(u *unstructured.Unstructured) string {
	text, _ := u.MarshalJSON()
	return string(text)
}

// Fields that a manager of conventions.previous has applied are removed, too, when the object is not wanted any more or
// the upstream goes, before any update has given them to the current manager.
func TestFieldsOfThePreviousManager(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"another target", "deleted"} {
		t.Run(how, spaced(func(t *testing.T, ns, name string) {
			conf := contributing(ns, name, "")
			makeTheirs(t, ns, "one")
			makeTheirs(t, ns, "two")
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("w", "{name: one, data: {a: one}}"))
			waitData(t, ns, "one", "a", "one")
			waitCondition(t, widgets, ns, "w", "Ready", "True")
			r.halt()
			testkit.Apply(t, ns, widget("w", "{name: two, data: {a: one}}"))
			if how == "deleted" {
				testkit.Delete(t, widgets, ns, "w")
			}
			start(t, testkit.Config(t), strings.Replace(conf, "  fieldManager: "+name, "  previous: {fieldManager: "+name+"}\n  fieldManager: "+name+"-two", 1))
			waitUntouched(t, ns, "one", name)
			if how == "deleted" {
				waitGone(t, widgets, ns, "w")
			} else {
				waitData(t, ns, "two", "a", "one")
			}
		}))
	}
}

// The fields of an object of others follow the upstream, whoever makes, changes or deletes the object; nothing else of
// it is touched, and at rest it costs nothing.
func TestFields(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		testkit.Apply(t, ns, widget("w", "{name: shared, data: {a: one}}"))
		counter := testkit.NewCounter()
		operator := start(t, counter.Wrap(testkit.Config(t)), contributing(ns, name, ""))
		eventuallyCondition(t, ns, "w", "False", "Waiting", "shared does not exist: somebody else has to create it")
		quiet(t, counter)

		counter.Reset()
		makeTheirs(t, ns, "shared")
		waitData(t, ns, "shared", "a", "one")
		eventuallyCondition(t, ns, "w", "True", "", "")
		if n := counter.Mutating(); n > 3 { // an apply, the status, and the status again where the watch was late
			t.Errorf("%d writes: %v", n, counter.Snapshot())
		}
		quiet(t, counter)

		testkit.Patch(t, configMaps, ns, "shared", "somebody", `{"data":{"more":"x"},"metadata":{"labels":{"new":"y"}}}`)
		quiet(t, counter)
		testkit.Patch(t, configMaps, ns, "shared", "somebody", `{"data":{"more":null,"a":null},"metadata":{"labels":{"new":null}}}`)
		waitData(t, ns, "shared", "a", "one")

		testkit.Apply(t, ns, widget("w", "{name: shared, data: {b: two}}"))
		waitData(t, ns, "shared", "b", "two")
		if _, has := testkit.Get(t, configMaps, ns, "shared").Object["data"].(map[string]any)["a"]; has {
			t.Error("a field that is no longer rendered stays")
		}

		operator.halt()
		counter = testkit.NewCounter()
		start(t, counter.Wrap(testkit.Config(t)), contributing(ns, name, ""))
		atMostWrites(t, counter, 0, "a restart")

		testkit.Delete(t, configMaps, ns, "shared")
		eventuallyCondition(t, ns, "w", "False", "Waiting", "shared does not exist")
		makeTheirs(t, ns, "shared")
		waitData(t, ns, "shared", "b", "two")

		makeTheirs(t, ns, "other")
		testkit.Apply(t, ns, widget("w", "{name: other, data: {b: two}}"))
		waitData(t, ns, "other", "b", "two")
		waitUntouched(t, ns, "shared", name)

		deleteAndWait(t, widgets, ns, "w")
		waitUntouched(t, ns, "other", name)
	})
}

// Fields that are given up and wanted again at once are set at once: the object was never gone, nor has it drifted.
func TestFieldsWantedAgain(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		makeTheirs(t, ns, "shared")
		testkit.Apply(t, ns, widget("w", "{name: shared, data: {a: one}}"))
		start(t, testkit.Config(t), contributing(ns, name, "    when: \"'a' in self.spec.data\"\n"))
		eventuallyCondition(t, ns, "w", "True", "", "")
		for range 3 {
			testkit.Apply(t, ns, widget("w", "{name: shared, data: {b: two}}"))
			waitUntouched(t, ns, "shared", name)
			before := time.Now()
			testkit.Apply(t, ns, widget("w", "{name: shared, data: {a: one}}"))
			waitData(t, ns, "shared", "a", "one")
			if took := time.Since(before); took > time.Second {
				t.Errorf("set after %s", took)
			}
			eventuallyCondition(t, ns, "w", "True", "", "")
		}
		for _, e := range testkit.List(t, events, ns, "") {
			if e.Object["type"] == "Warning" {
				t.Errorf("%v", e.Object["message"])
			}
		}
	})
}

// A field that another manager owns is a conflict, which ends when it gives the field up; with force, it is taken.
func TestFieldsOfOtherManagers(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		makeTheirs(t, ns, "shared")
		testkit.Apply(t, ns, widget("w", "{name: shared, data: {theirs: mine, a: one}}"))
		operator := start(t, testkit.Config(t), contributing(ns, name, ""))
		eventuallyCondition(t, ns, "w", "False", "Conflict", ".data.theirs")
		u := testkit.Get(t, configMaps, ns, "shared")
		if data, _, _ := unstructured.NestedStringMap(u.Object, "data"); len(data) != 1 || data["theirs"] != "1" {
			t.Errorf("it has %v", data)
		}
		testkit.Apply(t, ns, widget("w", "{name: shared, data: {a: one}}"))
		waitData(t, ns, "shared", "a", "one")
		eventuallyCondition(t, ns, "w", "True", "", "")

		testkit.Patch(t, configMaps, ns, "shared", "somebody", `{"data":{"a":"theirs"}}`)
		eventuallyCondition(t, ns, "w", "False", "Conflict", `conflict with "somebody"`)
		waitData(t, ns, "shared", "a", "theirs")
		testkit.Patch(t, configMaps, ns, "shared", "somebody", `{"data":{"a":null}}`)
		waitData(t, ns, "shared", "a", "one")
		eventuallyCondition(t, ns, "w", "True", "", "")

		operator.halt()
		testkit.Apply(t, ns, widget("w", "{name: shared, data: {theirs: mine, a: one}}"))
		start(t, testkit.Config(t), contributing(ns, name, "    force: true\n"))
		waitData(t, ns, "shared", "theirs", "mine")
		eventuallyCondition(t, ns, "w", "True", "", "")
	})
}

// Two upstreams that begin together see an object without a mark, both of them. Only one sets its fields, whichever is
// first, and nothing of the object's owner is lost.
func TestFieldsOfTwoUpstreamsAtOnce(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		const objects = 12
		for i := range objects {
			shared := fmt.Sprintf("shared-%d", i)
			testkit.Apply(t, ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+shared+"}\ndata: {theirs: '1', both: theirs}")
			testkit.Apply(t, ns, widget(fmt.Sprintf("x%d", i), "{name: "+shared+", data: {by-x: one, both: ours}}"))
			testkit.Apply(t, ns, widget(fmt.Sprintf("y%d", i), "{name: "+shared+", data: {by-y: two}}"))
		}
		start(t, testkit.Config(t), contributing(ns, name, "    force: true\n"))
		for i := range objects {
			won := ""
			testkit.Eventually(t, patience, func() (bool, string) {
				reasons := map[string]string{}
				for _, side := range []string{"x", "y"} {
					status, reason, _ := condition(testkit.Get(t, widgets, ns, side+fmt.Sprint(i)), "Ready")
					if reasons[side] = reason; status == "True" {
						won = side
					}
				}
				return won != "" && (reasons["x"] == "Conflict") != (reasons["y"] == "Conflict"), fmt.Sprint(i, reasons)
			})
			data, _, _ := unstructured.NestedStringMap(testkit.Get(t, configMaps, ns, fmt.Sprintf("shared-%d", i)).Object, "data")
			want := map[string]string{"theirs": "1", "both": "theirs", "by-y": "two"}
			if won == "x" {
				want = map[string]string{"theirs": "1", "both": "ours", "by-x": "one"}
			}
			if !maps.Equal(data, want) {
				t.Errorf("%s has set the fields of shared-%d: %v, want %v", won, i, data, want)
			}
			other := map[string]string{"x": "y", "y": "x"}[won] + fmt.Sprint(i)
			eventuallyCondition(t, ns, other, "False", "Conflict", fmt.Sprintf("has the fields of %s/%s%d", ns, won, i))
			deleteAndWait(t, widgets, ns, won+fmt.Sprint(i))
			eventuallyCondition(t, ns, other, "True", "", "")
			waitData(t, ns, fmt.Sprintf("shared-%d", i), "by-"+won, "")
		}
	})
}

// An object that was made immutable holds the deletion of the upstream, since our fields cannot be removed from it. The
// message says what to do, and that works.
func TestFieldsOfAnImmutableObject(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		for _, object := range []string{"kept", "deleted", "changed"} {
			makeTheirs(t, ns, object)
			testkit.Apply(t, ns, widget(object, "{name: "+object+", data: {a: one}}"))
		}
		start(t, testkit.Config(t), contributing(ns, name, ""))
		for _, object := range []string{"kept", "deleted", "changed"} {
			waitData(t, ns, object, "a", "one")
			eventuallyCondition(t, ns, object, "True", "", "")
			testkit.Patch(t, configMaps, ns, object, "somebody", `{"immutable":true}`)
		}
		testkit.Apply(t, ns, widget("changed", "{name: other, data: {a: one}}")) // the fields of "changed" are superseded
		makeTheirs(t, ns, "other")
		eventuallyCondition(t, ns, "changed", "False", "Rejected", "our fields of "+ns+"/changed cannot be removed")
		testkit.Delete(t, configMaps, ns, "changed")
		eventuallyCondition(t, ns, "changed", "True", "", "")
		testkit.Delete(t, widgets, ns, "kept")
		testkit.Delete(t, widgets, ns, "deleted")
		eventuallyCondition(t, ns, "kept", "False", "Rejected", "--cascade=orphan")
		eventuallyCondition(t, ns, "deleted", "False", "Rejected", "delete the object")

		testkit.DeleteWith(t, widgets, ns, "kept", metav1.DeletePropagationOrphan)
		waitGone(t, widgets, ns, "kept")
		u := testkit.Get(t, configMaps, ns, "kept")
		if data, _, _ := unstructured.NestedStringMap(u.Object, "data"); data["a"] != "one" || len(u.GetAnnotations()) > 0 {
			t.Errorf("it is %s", jsonOf(u))
		}
		testkit.Delete(t, configMaps, ns, "deleted")
		waitGone(t, widgets, ns, "deleted")
	})
}

// What the objects of Kubernetes' own controllers and of other teams are given, and given up again: exactly the fields
// of the template.
func TestFieldsOfKinds(t *testing.T) {
	t.Parallel()
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	for kind, row := range map[string]struct {
		gvr              schema.GroupVersionResource
		theirs, template string
		path             []string
		with             any // what is at path with both
		edit             string
		after            any // then, once someone has edited the object
	}{
		"Pod": {core("pods"), "spec: {containers: [{name: a, image: b}]}\nmetadata: {name: NAME, labels: {app: theirs}}",
			"metadata: {name: NAME, labels: {team: red}}", []string{"metadata", "labels"},
			map[string]any{"app": "theirs", "team": "red"}, `{"metadata":{"labels":{"app":"b","x":"y"}}}`, map[string]any{"app": "b", "team": "red", "x": "y"}},
		"Namespace": {core("namespaces"), "metadata: {name: NAME, labels: {a: b}}", "metadata: {name: NAME, labels: {team: red}, annotations: {contact: us}}",
			[]string{"metadata", "labels"},
			map[string]any{"a": "b", "kubernetes.io/metadata.name": "NAME", "team": "red"}, `{"metadata":{"labels":{"a":"c"}}}`,
			map[string]any{"a": "c", "kubernetes.io/metadata.name": "NAME", "team": "red"}},
		"ServiceAccount": {core("serviceaccounts"), "metadata: {name: NAME, labels: {a: theirs}}", "metadata: {name: NAME}\nimagePullSecrets: [{name: ours}]",
			[]string{"imagePullSecrets"}, []any{map[string]any{"name": "ours"}}, `{"metadata":{"labels":{"a":"c"}}}`, []any{map[string]any{"name": "ours"}}},
		"ConfigMap": {core("configmaps"), "metadata: {name: NAME}\ndata: {theirs: '1'}", "metadata: {name: NAME}\ndata: {ours: '2'}", []string{"data"},
			map[string]any{"theirs": "1", "ours": "2"}, `{"data":{"theirs":"3","x":"y"}}`,
			map[string]any{"theirs": "3", "ours": "2", "x": "y"}},
	} {
		t.Run(kind, spaced(func(t *testing.T, ns, name string) {
			at := ns
			if kind == "Namespace" {
				at = ""
			}
			with := func(text string) string { return strings.ReplaceAll(text, "NAME", name) }
			waitValue := func(want any) {
				t.Helper()
				want = replaceIn(want, "NAME", name)
				testkit.Eventually(t, patience, func() (bool, string) {
					have, _, _ := unstructured.NestedFieldNoCopy(testkit.Get(t, row.gvr, at, name).Object, row.path...)
					return cmp.Equal(have, want), cmp.Diff(have, want)
				})
			}
			testkit.Apply(t, at, "apiVersion: v1\nkind: "+kind+"\n"+with(row.theirs))
			testkit.Apply(t, ns, widget("w", "{}"))
			head, tail, _ := strings.Cut(contributing(ns, name, ""), "    template: |\n")
			_, tail, _ = strings.Cut(tail, "    # downstream\n")
			conf := strings.Replace(head, "kind: ConfigMap", "kind: "+kind, 1) + "    template: |\n      " +
				strings.ReplaceAll(with(row.template), "\n", "\n      ") + "\n" + tail
			_, counter := startCounted(t, conf)
			waitValue(row.with)
			eventuallyCondition(t, ns, "w", "True", "", "")
			testkit.Patch(t, row.gvr, at, name, "somebody", row.edit)
			waitValue(row.after)
			settle(t, counter)
			testkit.Patch(t, row.gvr, at, name, "somebody", `{"metadata":{"annotations":{"theirs":"x"}}}`)
			atMostRequests(t, counter, 0, "what others do")
			deleteAndWait(t, widgets, ns, "w")
			u := testkit.Get(t, row.gvr, at, name)
			if annotations := u.GetAnnotations(); len(annotations) != 1 || annotations["theirs"] != "x" {
				t.Errorf("it has the annotations %v", annotations)
			}
			if text := jsonOf(u); strings.Contains(text, `"ours"`) || strings.Contains(text, `"red"`) || !strings.Contains(text, "theirs") {
				t.Errorf("what is left is %s", text)
			}
		}))
	}
}

// replaceIn replaces text in the values of a map.
func replaceIn(value any, old, text string) any {
	m, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := map[string]any{}
	for k, v := range m {
		if s, isText := v.(string); isText {
			v = strings.ReplaceAll(s, old, text)
		}
		out[k] = v
	}
	return out
}

// TestForeignChanges: what others change of an object without touching what is ours costs no reconcile, also after a
// start; what is ours is repaired at once.
func TestForeignChanges(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, operator string) {
		conf := fill(widgetConfig, ns, operator) + "guard: {maxChanged: 100%, minimum: 1}\n"
		const n = 20
		r := start(t, testkit.Config(t), conf).ready()
		applyMany(t, ns, n, "{data: {key: old}}")
		patch := func(patch string) {
			for i := range n {
				testkit.Patch(t, configMaps, ns, named(i), "somebody", patch)
			}
		}
		change := func(to string) {
			t.Helper()
			reconciles := func() float64 { return metric(t, "corollary_reconcile_seconds", operator) }
			repaired := func(want float64) {
				waitMetricFrom(t, want, "corollary_reconcile_seconds", operator)
				for i := range n {
					waitData(t, ns, named(i), "key", "old")
					eventuallyCondition(t, ns, named(i), "True", "", "")
				}
			}
			before := reconciles()
			patch(`{"data":{"key":"` + to + `"}}`)
			repaired(before + n)
			for _, theirs := range []string{
				`{"metadata":{"labels":{"theirs":"` + to + `"}}}`, `{"metadata":{"annotations":{"theirs":"` + to + `"}}}`,
				`{"metadata":{"finalizers":["example.com/` + to + `"]}}`, `{"metadata":{"finalizers":null}}`,
				`{"data":{"theirs":"` + to + `"}}`, `{"data":{"theirs":null}}`,
			} {
				patch(theirs)
			}
			patch(`{"data":{"key":"again"}}`) // the last events of the same objects
			repaired(before + 2*n)
			// The first events may come while a reconcile has not noted yet that all is in sync.
			if now := reconciles() - before; now > 4*n {
				t.Errorf("%s: %v reconciles of %d upstreams whose objects had two changes of ours and six of others", to, now, n)
			}
		}
		change("running")
		r.restart(nil, conf)
		change("restarted")
	})
}
