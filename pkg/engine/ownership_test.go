//go:build controlplane

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Pausing an upstream whose target is somebody else's must not make it ours once the pause is over.
func TestPauseTakesNothingOver(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	start(t, testkit.Config(), fill(widgetConfig, ns, name)).ready()
	testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {`+name+`.example.com/managed: "yes"}}, data: {key: theirs}}`)
	testkit.Apply(t, ns, strings.Replace(widget("a", `{data: {key: value}}`), "{name: a}", `{name: a, annotations: {`+name+`.example.com/paused: "true"}}`, 1))
	testkit.Eventually(t, patience, func() (bool, string) {
		_, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
		return reason == "Paused", reason + ": " + message
	})
	if ids := downstreamsOf(testkit.Get(t, widgets, ns, "a")); len(ids) > 0 {
		t.Errorf("the status records what is not ours: %v", ids)
	}
	testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/paused":null}}}`)
	testkit.Eventually(t, patience, func() (bool, string) {
		_, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
		return reason == "Conflict", reason + ": " + message
	})
	waitData(t, ns, "a", "key", "theirs")
}

// An inspection that could not be made says nothing for the object.
func TestForgedMarkUninspected(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	faults := testkit.NewFaults()
	refusal := faults.Answer(500, testkit.On("CREATE", "configmaps"))
	up := testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {`+name+`.example.com/managed: "yes"}, ownerReferences: [
	  {apiVersion: test.example.com/v1, kind: Widget, name: a, uid: `+string(up.GetUID())+`, controller: true}]}, data: {key: theirs, evil: added}}`)
	start(t, faults.Wrap(testkit.Config()), fill(widgetConfig, ns, name)).ready()
	testkit.Eventually(t, patience, func() (bool, string) { return refusal.Hits() > 1, "not tried twice" })
	refusal.Off()
	testkit.Eventually(t, patience, func() (bool, string) {
		_, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
		return reason == "Conflict", reason + ": " + message
	})
	waitData(t, ns, "a", "key", "theirs")
}

// Where the status is a field that any author writes, what it records makes nothing ours.
func TestForgedStatus(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	start(t, testkit.Config(), strings.Replace(fill(widgetConfig, ns, name), "kind: Widget", "kind: Plain", 1)).ready()
	for _, object := range []string{"hidden", "seen"} {
		labels := ""
		if object == "seen" {
			labels = `, labels: {` + name + `.example.com/managed: "yes"}`
		}
		cm := testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+object+labels+`}, data: {key: theirs}}`)
		testkit.Apply(t, ns, strings.TrimSpace(fmt.Sprintf(`{apiVersion: test.example.com/v1, kind: Plain, metadata: {name: %s}, spec: {data: {key: value}},
		  status: {downstreams: [{name: config, apiVersion: v1, kind: ConfigMap, namespace: %s, objectName: %s, uid: %s}]}}`, object, ns, object, cm.GetUID())))
		testkit.Eventually(t, patience, func() (bool, string) {
			_, reason, message := condition(testkit.Get(t, plains, ns, object), "Ready")
			return reason == "Conflict", object + ": " + reason + ": " + message
		})
		waitData(t, ns, object, "key", "theirs")
	}
}

// Nor is anything deleted for it: not even what it says that a deletion.before of an earlier config has made.
func TestForgedStatusAtDeletion(t *testing.T) {
	t.Parallel()
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	start(t, testkit.Config(), strings.Replace(fill(widgetConfig, ns, name), "kind: Widget", "kind: Plain", 1)).ready()
	for object, as := range map[string]string{"downstream": "config", "hook": "deletion.before"} {
		cm := testkit.Apply(t, other, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+object+`}, data: {key: theirs}}`)
		testkit.Apply(t, ns, fmt.Sprintf(`{apiVersion: test.example.com/v1, kind: Plain, metadata: {name: %[1]s, finalizers: [%[2]s.example.com/cleanup],
		  annotations: {%[2]s.example.com/paused: "true"}}, spec: {data: {key: value}},
		  status: {downstreams: [{name: %[3]s, apiVersion: v1, kind: ConfigMap, namespace: %[4]s, objectName: %[1]s, uid: %[5]s, state: InSync}]}}`,
			object, name, as, other, cm.GetUID()))
		testkit.Delete(t, plains, ns, object)
		waitGone(t, plains, ns, object)
		if testkit.Find(t, configMaps, other, object) == nil {
			t.Errorf("%s: somebody else's object was deleted", object)
		}
	}
}

// Whoever may write the status of one upstream cannot have an object deleted by it that never bore a mark of ours.
func TestForgedRecordOfAHook(t *testing.T) {
	t.Parallel()
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	start(t, testkit.Config(), fill(widgetConfig, ns, name)).ready()
	cm := testkit.Apply(t, other, `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {key: theirs}}`)
	testkit.Apply(t, ns, fmt.Sprintf(`{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: a, finalizers: [%[1]s.example.com/cleanup],
	  annotations: {%[1]s.example.com/paused: "true"}}, spec: {data: {key: value}}}`, name))
	waitCondition(t, widgets, ns, "a", "Ready", "False") // else our own status would be written over theirs
	testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "deletion.before", "apiVersion": "v1", "kind": "ConfigMap",
			"namespace": other, "objectName": "theirs", "uid": string(cm.GetUID()), "state": "HookRunning"}}, "status", "downstreams")
	}, "status")
	testkit.Delete(t, widgets, ns, "a")
	waitGone(t, widgets, ns, "a")
	if testkit.Find(t, configMaps, other, "theirs") == nil {
		t.Error("somebody else's object was deleted")
	}
}

func ownerReference(u *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID()}
}

// Another upstream's object does not become ours to delete by a second owner reference.
func TestSecondOwnerReference(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	start(t, testkit.Config(), fill(widgetConfig, ns, name)).ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	b := testkit.Apply(t, ns, widget("b", `{data: {key: value}}`))
	cm := waitData(t, ns, "a", "key", "value")
	waitCondition(t, widgets, ns, "a", "Ready", "True")
	waitCondition(t, widgets, ns, "b", "Ready", "True")
	testkit.Update(t, configMaps, ns, "a", func(u *unstructured.Unstructured) {
		u.SetOwnerReferences(append(u.GetOwnerReferences(), ownerReference(b)))
	})
	testkit.Patch(t, widgets, ns, "b", "somebody", `{"spec":{"data":{"key":"new"}}}`)
	waitData(t, ns, "b", "key", "new")
	waitCondition(t, widgets, ns, "b", "Ready", "True") // told last, after what is left over was dealt with
	if u := testkit.Find(t, configMaps, ns, "a"); u == nil || u.GetUID() != cm.GetUID() {
		t.Error("the other one's object was deleted")
	}
}

// Two downstreams of a kind may change their names for each other's.
func TestSwappedNames(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := strings.NewReplacer("name: {{ .spec.name | default .metadata.name }}", `name: {{ ternary "y" "x" (.spec.exposed | default false) }}`,
		"    # downstream\n", `  - name: second
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: {{ ternary "x" "y" (.spec.exposed | default false) }}}
      data: {second: "yes"}
`).Replace(fill(widgetConfig, ns, name))
	start(t, testkit.Config(), conf).ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	waitData(t, ns, "y", "second", "yes")
	waitCondition(t, widgets, ns, "a", "Ready", "True")
	testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"exposed":true}}`)
	waitData(t, ns, "x", "second", "yes")
	waitData(t, ns, "y", "key", "value")
	waitCondition(t, widgets, ns, "a", "Ready", "True")
}
