package engine_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// adopting is widgetConfig that takes ConfigMaps over from a manager.
func adopting(ns, name, manager string) string {
	return with(fill(widgetConfig, ns, name), "adoptionPolicy: IfUnowned", "adopt: {fieldManagers: ["+manager+"]}")
}

// theirs is a ConfigMap as another manager made it, with a key that the template has and one that it has not.
const theirs = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {theirs: "1"}}, data: {key: old, theirs: "1"}}`

// post creates an object as anybody does who does not apply.
func post(t *testing.T, ns, manager, yaml string) *unstructured.Unstructured {
	t.Helper()
	out, err := testkit.Dynamic(t).Resource(configMaps).Namespace(ns).Create(t.Context(), testkit.Parse(t, yaml), metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An adoption that the API server refuses takes nothing over, whether it would refuse the apply or only what would be
// removed by then. It is said, and once it can be, the object is adopted.
func TestAdoptRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"a key changes": "{key: old}", "a key goes": "{key: value, more: '1'}"} {
		t.Run(name, spaced(func(t *testing.T, ns, name string) {
			maps := testkit.Dynamic(t).Resource(configMaps).Namespace(ns)
			apply := func(text string) error {
				_, err := maps.Apply(t.Context(), "a", testkit.Parse(t, text), metav1.ApplyOptions{FieldManager: "ci"})
				return err
			}
			must.Do(t, apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: `+data+`}`))
			before := testkit.Get(t, configMaps, ns, "a")
			start(t, testkit.Config(t), adopting(ns, name, "ci")).ready()
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitsFor(t, widgets, ns, "a", "Rejected", "immutable")
			mustBeSame(t, configMaps, before, "it cannot be adopted")
			if after := testkit.Get(t, configMaps, ns, "a"); !reflect.DeepEqual(before.GetManagedFields(), after.GetManagedFields()) {
				t.Errorf("its managers are %v", after.GetManagedFields())
			}
			must.Do(t, apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: "yes"}}, immutable: true, data: `+data+`}`))
			testkit.Delete(t, configMaps, ns, "a")
			must.Do(t, apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: `+data+`}`))
			waitData(t, ns, "a", "key", "value")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			if _, has := testkit.Get(t, configMaps, ns, "a").Object["data"].(map[string]any)["more"]; has {
				t.Error("what only ci had is left")
			}
		}))
	}
}

// What another tool made is taken over with its fields: what the template does not have goes, at once and later. What a
// writer set that is not named stays.
func TestAdoptFrom(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		manager, reason string
		make            func(t *testing.T, ns, manager string, up *unstructured.Unstructured)
	}{
		{"kubectl-create", "a plain create", func(t *testing.T, ns, manager string, _ *unstructured.Unstructured) { post(t, ns, manager, theirs) }},
		{"kubectl-client-side-apply", "the record of what was applied is theirs, too", func(t *testing.T, ns, manager string, _ *unstructured.Unstructured) {
			post(t, ns, manager, strings.Replace(theirs, "annotations: {", "annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}', ", 1))
		}},
		{"helm", "helm marks its objects by labels and annotations", func(t *testing.T, ns, manager string, _ *unstructured.Unstructured) {
			post(t, ns, manager, strings.Replace(theirs, "annotations: {", "labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: a, ", 1))
		}},
		{"kubectl", "another server-side apply", func(t *testing.T, ns, manager string, _ *unstructured.Unstructured) {
			_, err := testkit.Dynamic(t).Resource(configMaps).Namespace(ns).Apply(t.Context(), "a", testkit.Parse(t, theirs), metav1.ApplyOptions{FieldManager: manager})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"manager", "an operator that is replaced marks its objects with the very same upstream", func(t *testing.T, ns, manager string, up *unstructured.Unstructured) {
			post(t, ns, manager, strings.Replace(theirs, "annotations: {", "ownerReferences: [{apiVersion: test.example.com/v1, kind: Widget, name: a, uid: "+string(up.GetUID())+
				", controller: true, blockOwnerDeletion: true}], annotations: {", 1))
		}},
	} {
		t.Run(row.manager, spaced(func(t *testing.T, ns, name string) {
			up := testkit.Apply(t, ns, widget("a", `{data: {key: value, more: value}}`))
			row.make(t, ns, row.manager, up)
			uid := testkit.Patch(t, configMaps, ns, "a", "other", `{"data":{"other":"stays"}}`).GetUID()
			_, counter := startCounted(t, adopting(ns, name, row.manager))
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			quiet(t, counter)
			t.Logf("%s: %v", row.manager, counter.Snapshot())
			if n := counter.Snapshot(); n[writeDownstream] != 6 || n[readDownstream] != 3 || n[writeStatus] != 1 {
				t.Errorf("want a create that is refused, a patch of the fields' owners and an apply, three dry runs, three reads and a status: %v", n)
			}
			cm := testkit.Get(t, configMaps, ns, "a")
			data, _, _ := unstructured.NestedStringMap(cm.Object, "data")
			if cm.GetUID() != uid || fmt.Sprint(data) != "map[key:value more:value other:stays]" || len(cm.GetAnnotations()) != 1 || len(cm.GetLabels()) != 1 {
				t.Errorf("%s: labels %v, annotations %v, data %v", row.reason, cm.GetLabels(), cm.GetAnnotations(), data)
			}
			if refs := cm.GetOwnerReferences(); len(refs) != 1 || refs[0].BlockOwnerDeletion != nil {
				t.Errorf("references are %v", refs)
			}
			testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":null}}}`)
			waitData(t, ns, "a", "key", "")
			waitData(t, ns, "a", "other", "stays")
		}))
	}
}

// A write that comes in between costs another attempt, which takes that one over, too.
func TestAdoptRace(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		post(t, ns, "helm", theirs)
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		faults, counter := testkit.NewFaults(), testkit.NewCounter()
		var once sync.Once
		faults.Drop(func(r *http.Request) bool {
			if r.Header.Get("Content-Type") == "application/json-patch+json" && strings.Contains(r.URL.Path, "/configmaps/") {
				once.Do(func() { testkit.Patch(t, configMaps, ns, "a", "helm", `{"data":{"late":"1"}}`) })
			}
			return false
		})
		start(t, counter.Wrap(faults.Wrap(testkit.Config(t))), adopting(ns, name, "helm")).ready()
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		cm := waitData(t, ns, "a", "key", "value")
		if data, _, _ := unstructured.NestedStringMap(cm.Object, "data"); len(data) != 1 {
			t.Errorf("data is %v", data)
		}
		if metric(t, "corollary_failures_total", name, "reason", "Changed") != 1 {
			t.Error("no attempt was lost, so there was no race")
		}
	})
}

// If a manager continues to write a field that is not in the template, its field stays until the next apply removes it.
func TestAdoptFromWriterThatContinues(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		post(t, ns, "helm", theirs)
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		_, counter := startCounted(t, adopting(ns, name, "helm"))
		waitData(t, ns, "a", "key", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		settle(t, counter)
		testkit.Patch(t, configMaps, ns, "a", "helm", `{"data":{"again":"1"}}`)
		atMostRequests(t, counter, 0, "a key that is not ours")
		testkit.Patch(t, configMaps, ns, "a", "helm", `{"data":{"key":"theirs"}}`)
		waitData(t, ns, "a", "key", "value")
		waitData(t, ns, "a", "again", "")
	})
}

// An initial field that they set and someone else has not touched keeps its value: it becomes ours, and leaving it out
// would take it away.
func TestAdoptInitialFields(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		post(t, ns, "helm", strings.Replace(theirs, "key: old", "key: old, scaled: '7'", 1))
		testkit.Apply(t, ns, widget("a", `{data: {key: value, scaled: "1"}}`))
		start(t, testkit.Config(t), strings.Replace(adopting(ns, name, "helm"), "    # downstream\n", "    drift: {initialFields: [.data.scaled]}\n", 1)).ready()
		waitData(t, ns, "a", "key", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		waitData(t, ns, "a", "scaled", "7")
	})
}

// A survey shows what would go along with a takeover, though dry runs do not add up, in either mode.
func TestSurveyOfAdoption(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		post(t, ns, "helm", theirs)
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		for _, conf := range []string{adopting(ns, name, "helm"), observing(adopting(ns, name, "helm"))} {
			found := surveyAll(t, testkit.Config(t), survey.Options{Documents: true}, conf)
			c := found.expect(t, "a", "update a").Changes[0]
			data, _, _ := unstructured.NestedStringMap(c.After.Object, "data")
			if fmt.Sprint(data) != "map[key:value]" || c.After.GetAnnotations()["theirs"] != "" || len(c.After.GetOwnerReferences()) != 1 {
				t.Errorf("after it the object would be %v, want theirs gone", c.After.Object)
			}
		}
		waitData(t, ns, "a", "theirs", "1")
	})
}

// TestAdoptedFromAnotherOperator: what one operator has forgotten and another one has taken over is said to be that
// one's, in the preview of the first.
func TestAdoptedFromAnotherOperator(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		first := fill(widgetConfig, ns, name)
		moved := replaceOnce(t, first, "- name: config", "- name: other")
		moved = replaceOnce(t, moved, "| default .metadata.name }}", "| default .metadata.name }}-other")
		r := startWidget(t, ns, first)
		r.halt()
		second := replaceOnce(t, adopting(ns, name+"-two", name), "downstreams: .status.downstreams", "downstreams: .status.more")
		second = replaceOnce(t, second, "ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled", "ready: Two")
		start(t, testkit.Config(t), moved, second).ready()
		waitCondition(t, widgets, ns, "a", "Two", "True")
		f := surveyAll(t, testkit.Config(t), survey.Options{}, moved).expect(t, "a", "none a-other, forgotten a")
		if by := f.Forgotten[0].AppliedBy; by != name+"-two" {
			t.Errorf("it is applied by %q", by)
		}
	})
}
