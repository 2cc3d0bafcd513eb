package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

var claims8 = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}

// Two variants of one object, by when: a change of the variant updates the object, and does not delete it with its
// data.
func TestVariantsKeepTheirObject(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, kind, body string
		gvr              schema.GroupVersionResource
	}{
		{"claim", "v1\n    kind: PersistentVolumeClaim", "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}", claims8},
		{"custom", "test.example.com/v1\n    kind: Gadget", "spec: {name: v%s}", gadgets},
		{"configmap", "v1\n    kind: ConfigMap", "data: {of: v%s}", configMaps},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			head, tail := around(t, fill(widgetConfig, ns, name))
			variant := func(n, when string) string {
				body := row.body
				if strings.Contains(body, "%s") {
					body = fmt.Sprintf(body, n)
				}
				return "\n  - name: v" + n + "\n    apiVersion: " + row.kind + "\n    when: \"" + when + "\"\n    template: |\n      metadata: {name: \"{{ .metadata.name }}\", annotations: {variant: \"" + n + "\"}}\n      " + body + "\n"
			}
			ha := "self.spec.?exposed.orValue(false)"
			start(t, testkit.Config(t), head+variant("one", "!"+ha)+variant("two", ha)+tail).ready()
			testkit.Apply(t, ns, widget("a", "{exposed: false}"))
			<-time.After(time.Minute)
			before := testkit.Get(t, row.gvr, ns, "a")
			testkit.Apply(t, ns, widget("a", "{exposed: true}"))
			<-time.After(2 * time.Minute)
			after := testkit.Find(t, row.gvr, ns, "a")
			switch {
			case after == nil:
				t.Errorf("gone")
			case after.GetUID() != before.GetUID():
				t.Errorf("it was deleted and created again, variant %s", after.GetAnnotations()["variant"])
			case after.GetAnnotations()["variant"] != "two":
				t.Errorf("not updated: %v", testkit.Get(t, widgets, ns, "a").Object["status"])
			}
		}))
	}
}

// What names an upstream that is gone does not keep a Namespace, also where the watch does not show all upstreams.
func TestHolderOfAGoneUpstreamGoes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, selection string }{{"all are shown", ""}, {"label", "labelSelector: {matchLabels: {tier: gold}}"}} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			ns := testkit.Namespace(t)
			conf := fill(widgetConfig, ns, testkit.Unique(t))
			conf = withRoom(t, conf)
			if row.selection != "" {
				conf = watched(conf, row.selection)
			}
			inTier := func(name string) string {
				return strings.Replace(widget(name, "{name: one}"), "{name: "+name+"}", "{name: "+name+", labels: {tier: gold}}", 1)
			}
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, inTier("a"))
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			testkit.Apply(t, ns, inTier("b"))
			testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, configMaps, "room-one", "b") != nil, "nothing of b" })
			<-time.After(time.Minute)
			r.halt()
			testkit.Patch(t, widgets, ns, "b", "somebody", `{"metadata":{"finalizers":null}}`) // by force
			testkit.Delete(t, widgets, ns, "b")
			<-time.After(time.Minute)
			start(t, testkit.Config(t), conf).ready()
			testkit.Delete(t, widgets, ns, "a")
			<-time.After(time.Hour)
			if u := testkit.Find(t, widgets, ns, "a"); u != nil {
				t.Errorf("a hangs: %v", u.Object["status"])
			}
		}))
	}
}

// An upstream of which nobody knows any more whether it is one does not count for guard.
func TestUnknownIsNotHeld(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", "deletion: {wait: true}\n"} {
		t.Run(more, spaced(func(t *testing.T, ns, name string) {
			conf := watched(with(fill(widgetConfig, ns, name), dropKey), gold) + "parameters: {tier: gold}\n" + more +
				"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings, namespace: " + ns + ", missing: Allow}]\nguard: {maxDeleted: 0%, minimum: 0}\n"
			start(t, testkit.Config(t), conf).ready()
			for _, up := range []string{"a", "b"} {
				testkit.Apply(t, ns, annotated(up, "tier: gold", "{data: {key: value}}"))
				waitData(t, ns, up, "key", "value")
				waitCondition(t, widgets, ns, up, "Ready", "True")
			}
			testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {drop: 'yes'}}")
			waitState(t, name, "GuardWaiting")
			for _, up := range []string{"a", "b"} {
				testkit.Patch(t, widgets, ns, up, "somebody", `{"metadata":{"annotations":null}}`)
			}
			<-time.After(5 * time.Minute)
			if n := metric(t, "corollary_guard_deletions", name); n != 0 {
				t.Errorf("guard still holds %v deletions of what is no upstream as far as anybody knows", n)
			}
		}))
	}
}

// An item that moves from one downstream to another keeps its object.
func TestItemMovesBetweenDownstreams(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		head, tail := around(t, strings.Replace(fill(widgetConfig, ns, name), "kind: Widget", "kind: Pool", 1))
		pools := func(which string) string {
			return "\n  - name: " + which + "\n    apiVersion: v1\n    kind: PersistentVolumeClaim\n    forEach: {items: \"self.spec.workers.filter(x, x.value == '" + which + "')\"}\n    template: |\n      metadata: {name: \"{{ item.name }}\", annotations: {variant: " + which + "}}\n      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
		}
		start(t, testkit.Config(t), head+pools("small")+pools("large")+tail).ready()
		testkit.Apply(t, ns, pool("a", "p1=small", "p2=small", "p3=large"))
		<-time.After(time.Minute)
		before := testkit.Get(t, claims8, ns, "p1")
		testkit.Apply(t, ns, pool("a", "p1=large", "p2=small", "p3=large"))
		<-time.After(2 * time.Minute)
		after := testkit.Find(t, claims8, ns, "p1")
		if after == nil || after.GetUID() != before.GetUID() || after.GetAnnotations()["variant"] != "large" {
			t.Errorf("it was deleted, or not updated")
		}
	})
}

// What was made while the object before it cannot be deleted, and another downstream waits for its name, is recorded
// too.
func TestValueMovesOnWhileTheLastIsThere(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint(restart), spaced(func(t *testing.T, ns, name string) {
			conf := siblingsConfig(t, ns, name, "")
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", `{name: s1, data: {second: s2}}`))
			two := secretText(t, ns, "s2", "password", anyText)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			testkit.Update(t, secretKind, ns, "s2", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/slow"}) })
			testkit.Apply(t, ns, widget("a", `{name: s2, data: {second: s3}}`))
			<-time.After(2 * time.Minute)
			keepsValue(t, ns, "s3", two)
			if restart {
				r.restart(nil, conf)
			}
			testkit.Apply(t, ns, widget("a", `{name: s2, data: {second: s4}}`))
			<-time.After(2 * time.Minute)
			keepsValue(t, ns, "s4", two)
		}))
	}
}

// An upstream for which a match condition cannot be evaluated costs no request if it has nothing that could be lost.
func TestUnknownCostsNothing(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := watched(with(fill(widgetConfig, ns, name), "deletionPolicy: Orphan"), gold) + "parameters: {tier: gold}\n"
		for _, up := range []string{"a", "b", "c"} {
			testkit.Apply(t, ns, widget(up, "{data: {key: value}}"))
		}
		_, counter := startCounted(t, conf)
		<-time.After(time.Minute)
		of := func(r testkit.Request) bool { return r.Resource == "widgets" && r.Verb == "GET" }
		t.Logf("at start: %d; %v", counter.Total(of), counter.Snapshot())
		for i := range 10 {
			testkit.Patch(t, widgets, ns, "a", "somebody", fmt.Sprintf(`{"metadata":{"labels":{"beat":"b%d"}}}`, i))
			<-time.After(10 * time.Second)
		}
		if n := counter.Total(of); n > 0 {
			t.Errorf("%d requests: %v", n, counter.Snapshot())
		}
	})
}

// Names that shift in one edit: the first takes the name that the second leaves, also where the second comes after the
// first.
func TestShiftedNames(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{"in any order": "", "the second after the first": "    after: [{name: config, until: Created}]\n"} {
		t.Run(name, spaced(func(t *testing.T, ns, name string) {
			head, tail := around(t, fill(widgetConfig, ns, name))
			one := func(n, at, after string) string {
				return "\n  - name: " + n + "\n    apiVersion: v1\n    kind: ConfigMap\n    updatePolicy: CreateOnly\n" + after +
					"    template: |\n      metadata: {name: \"" + at + "\"}\n      data: {of: " + n + "}\n"
			}
			start(t, testkit.Config(t), head+one("config", "{{ .spec.name }}", "")+one("second", "{{ .spec.data.second }}", after)+tail).ready()
			applyReady(t, ns, "a", "{name: s1, data: {second: s2}}")
			testkit.Apply(t, ns, widget("a", "{name: s2, data: {second: s3}}"))
			waitData(t, ns, "s3", "of", "second")
			waitData(t, ns, "s2", "of", "config")
		}))
	}
}
