package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// configMap is a ConfigMap as an item of a pool gives it, of someone else.
func configMap(name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {value: %q}}", name, value)
}

func uidsOf(t *testing.T, ns string, names ...string) (uids []string) {
	t.Helper()
	for _, name := range names {
		uids = append(uids, string(testkit.Get(t, configMaps, ns, name).GetUID()))
	}
	return uids
}

// Every policy is about each object by itself.
func TestForEachPolicies(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		config       func(conf string) string
		before       func(t *testing.T, ns string) // there is a Pool
		then         func(t *testing.T, ns, operator string)
		others       bool // its objects are not p-a and p-b
	}{
		{name: "conflict", others: true, reason: "an object of somebody else is in the way of one item: the others are created",
			before: func(t *testing.T, ns string) { testkit.Apply(t, ns, configMap("p-a", "theirs")) },
			then: func(t *testing.T, ns, operator string) {
				waitWorkers(t, ns, operator, "p-b=2")
				readyIs(t, pools, ns, "p", "False", "Conflict", "1 of 2 ready; not ready: p-a (")
				waitRecorded(t, ns, "p", "p-b InSync")
				deleteAndWait(t, pools, ns, "p")
				waitData(t, ns, "p-a", "value", "theirs")
			}},
		{name: "ready", reason: "each object has its own rule about readiness; the message counts, and names at most five",
			config: withLine("ready: {rules: [{rule: \"downstream.metadata.?annotations[?'up'].orValue('') == item.value\", message: it is down}]}"),
			then: func(t *testing.T, ns, operator string) {
				testkit.Apply(t, ns, pool("p", "a=1", "b=2", "c=3", "d=4", "e=5", "f=6", "g=7"))
				waitReady := func(text string) {
					t.Helper()
					waitThat(t, pools, ns, "p", func(u *obj) bool { _, _, message := condition(u, "Ready"); return message == text })
				}
				waitReady("worker: 0 of 7 ready; not ready: p-a (it is down), p-b, p-c, p-d, p-e, 2 more")
				for i, name := range []string{"p-a", "p-b", "p-c", "p-d", "p-e", "p-g"} {
					value := i + 1 + i/5 // that of its item
					testkit.Patch(t, configMaps, ns, name, "somebody", fmt.Sprintf(`{"metadata":{"annotations":{"up":"%d"}}}`, value))
				}
				waitReady("worker: 6 of 7 ready; not ready: p-f (it is down)")
				testkit.Patch(t, configMaps, ns, "p-f", "somebody", `{"metadata":{"annotations":{"up":"6"}}}`)
				waitCondition(t, pools, ns, "p", "Ready", "True")
			}},
		{name: "recreate", reason: "an immutable change recreates one object", config: func(conf string) string {
			return withLine("updatePolicy: Recreate")(strings.Replace(conf, "data: {value", "immutable: true\n      data: {value", 1))
		}, then: func(t *testing.T, ns, operator string) {
			kept := uidsOf(t, ns, "p-b")
			testkit.Apply(t, ns, pool("p", "a=3", "b=2"))
			waitWorkers(t, ns, operator, "p-a=3", "p-b=2")
			if !slices.Equal(kept, uidsOf(t, ns, "p-b")) {
				t.Error("an object that has not changed was recreated")
			}
		}},
		{name: "orphan", reason: "the object of an item that is gone stays, without our marks",
			config: withLine("deletionPolicy: Orphan"), then: func(t *testing.T, ns, operator string) {
				testkit.Apply(t, ns, pool("p", "b=2"))
				waitWorkers(t, ns, operator, "p-b=2")
				waitRecorded(t, ns, "p", "p-b InSync")
				if u := waitData(t, ns, "p-a", "value", "1"); len(u.GetAnnotations()) > 0 || len(u.GetOwnerReferences()) > 0 {
					t.Errorf("it has %v and %v", u.GetAnnotations(), u.GetOwnerReferences())
				}
			}},
		{name: "namespaces", others: true, reason: "one name in two namespaces is two objects, and an object that moves is created before it is deleted",
			config: func(conf string) string {
				conf = strings.Replace(conf, `{{ .metadata.name }}-{{ item.name }}"`, `{{ .metadata.name }}", namespace: "{{ item.name }}"`, 1)
				return with(conf, "targetNamespaces: {from: Any}")
			},
			then: func(t *testing.T, ns, operator string) {
				first, second := testkit.Namespace(t), testkit.Namespace(t)
				testkit.Apply(t, ns, pool("p", first+"=1", ns+"=2"))
				waitData(t, first, "p", "value", "1")
				waitData(t, ns, "p", "value", "2")
				u := waitCondition(t, pools, ns, "p", "Ready", "True")
				want := []string{first + "/p", ns + "/p"}
				slices.Sort(want)
				if names, _, _ := unstructured.NestedStringSlice(u.Object, "status", "names"); !slices.Equal(names, want) {
					t.Errorf("downstreams.worker has %v, not %v", names, want)
				}
				testkit.Apply(t, ns, pool("p", second+"=1", ns+"=2"))
				waitData(t, second, "p", "value", "1")
				waitGone(t, configMaps, first, "p")
				testkit.Delete(t, pools, ns, "p")
				waitGone(t, configMaps, second, "p")
				waitGone(t, configMaps, ns, "p")
			}},
		{name: "too many", reason: "more items than the config allows make the upstream invalid, and change nothing",
			config: func(conf string) string {
				return strings.Replace(conf, "items: self.spec.workers", "items: self.spec.workers\n      maxItems: 2", 1)
			}, then: func(t *testing.T, ns, operator string) {
				testkit.Apply(t, ns, pool("p", "b=3", "c=3", "d=3"))
				u := waitCondition(t, pools, ns, "p", "Valid", "False")
				if _, _, message := condition(u, "Valid"); !strings.Contains(message, "downstream worker has 3 items, more than maxItems: 2") {
					t.Error(message)
				}
				waitWorkers(t, ns, operator, "p-a=1", "p-b=2")
				waitRecorded(t, ns, "p", "p-a Invalid", "p-b Invalid")
			}},
		{name: "map", others: true, reason: "of a map each item has key and value", config: func(conf string) string {
			conf = strings.NewReplacer("item.name", "item.key", "item.?enabled", "item.?missing").Replace(conf)
			return strings.Replace(conf, "items: self.spec.workers", "items: self.spec.map", 1)
		}, then: func(t *testing.T, ns, operator string) {
			testkit.Apply(t, ns, object("Pool", "p", "{map: {z: u, x: v}}"))
			waitWorkers(t, ns, operator, "p-x=v", "p-z=u")
		}},
		{name: "stripped", reason: "marks that somebody removes are put back, or the object is found by its uid",
			then: func(t *testing.T, ns, operator string) {
				waitRecorded(t, ns, "p", "p-a InSync", "p-b InSync")
				testkit.Patch(t, configMaps, ns, "p-a", "somebody", fmt.Sprintf(`{"metadata":{"labels":{"%s.example.com/managed":null}}}`, operator))
				waitWorkers(t, ns, operator, "p-a=1", "p-b=2")
				testkit.Patch(t, configMaps, ns, "p-b", "somebody", `{"metadata":{"annotations":null,"ownerReferences":null}}`)
				testkit.Apply(t, ns, pool("p", "a=1"))
				waitGone(t, configMaps, ns, "p-b")
			}},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			if row.before != nil {
				row.before(t, ns)
			}
			testkit.Apply(t, ns, pool("p", "a=1", "b=2"))
			conf := fill(poolConfig, ns, name)
			if row.config != nil {
				conf = row.config(conf)
			}
			start(t, testkit.Config(t), conf).ready()
			if !row.others {
				waitWorkers(t, ns, name, "p-a=1", "p-b=2")
			}
			row.then(t, ns, name)
		}))
	}
}

// withLine adds a line to the downstream.
func withLine(line string) func(string) string {
	return func(conf string) string { return with(conf, line) }
}

// The object of an item that disappears is deleted, although an object of someone else is in the way of another item,
// and a third one cannot be created. What takes the place of an item holds it as long as it cannot be created.
func TestForEachRemovesDespiteOthers(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer(`{name: "{{ .metadata.name }}-{{ item.name }}"}`, `{name: "{{ .metadata.name }}-{{ item.name }}", namespace: "{{ item.value }}"}`,
			"# downstream", "targetNamespaces: {from: Any}").Replace(fill(poolConfig, ns, name))
		testkit.Apply(t, ns, configMap("p-theirs", "x"))
		start(t, testkit.Config(t), conf).ready()
		exist := func(want ...string) {
			t.Helper()
			for i := range want {
				want[i] += "=" + ns
			}
			waitWorkers(t, ns, name, want...)
		}
		testkit.Apply(t, ns, pool("p", "a="+ns, "b="+ns, "c="+ns, "theirs="+ns, "nowhere=no-such-namespace"))
		exist("p-a", "p-b", "p-c")
		waitsFor(t, pools, ns, "p", "", "3 of 5")

		testkit.Apply(t, ns, pool("p", "b="+ns, "c="+ns, "theirs="+ns, "nowhere=no-such-namespace"))
		exist("p-b", "p-c")

		testkit.Apply(t, ns, pool("p", "b2=no-such-namespace", "c="+ns, "theirs="+ns, "nowhere=no-such-namespace"))
		waitsFor(t, pools, ns, "p", "", "p-b2")
		exist("p-b", "p-c")
		testkit.Apply(t, ns, pool("p", "b2=no-such-namespace", "theirs="+ns, "nowhere=no-such-namespace")) // p-b stays, p-c has no successor
		exist("p-b")
		testkit.Apply(t, ns, pool("p", "b2="+ns, "theirs="+ns, "nowhere=no-such-namespace"))
		exist("p-b2")
		deleteAndWait(t, pools, ns, "p")
		exist()
	})
}

// Items that follow from the objects that they make are followed at growing intervals, though each of these objects is
// a new one.
func TestItemsOfOwnOutput(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, items string }{
		{"the object moves with each write", "size(inputs.own) == 0 ? ['1'] : [string(int(inputs.own[size(inputs.own) - 1].data.value) + 1)]"},
		{"one more object with each write", "inputs.own.map(o, o.data.value) + [string(size(inputs.own))]"},
	} {
		for _, status := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, with status %t", row.reason, status), bubbled(func(t *testing.T) {
				o := opponent{t, testkit.Namespace(t), testkit.Unique(t)}
				conf := strings.NewReplacer("downstreams:\n  - name", "inputs:\n  - {name: own, apiVersion: v1, kind: ConfigMap, list: {labelSelector: {matchLabels: {NAME.example.com/managed: \"yes\"}}}}\ndownstreams:\n  - name",
					"items: self.spec.workers", fmt.Sprintf("items: %q\n      maxItems: 1000", row.items), "    when: item.?enabled.orValue(true)\n", "",
					`{{ item.name }}"`, `{{ printf "%06d" (int item) }}"`, "{{ item.value }}", "{{ item }}", "events: None", "events: Warnings",
					"minDelay: 1s, maxDelay: 10s", "minDelay: 2s, maxDelay: 1h").Replace(poolConfig)
				if !status {
					conf = statusOff(conf)
				}
				_, counter := startCounted(t, fill(conf, o.ns, o.name))
				testkit.Apply(t, o.ns, object("Pool", "a", "{}"))
				loop{says: []string{"input own"}}.isReported(t, o)
				counter.Reset()
				over := time.Now().Add(6 * time.Second)
				<-time.After(time.Until(over))
				if n := counter.Total(testkit.Before(over), func(r testkit.Request) bool { return r.Resource != "events" }); n > 15 {
					t.Errorf("%d requests in 6 s: %v", n, counter.Snapshot())
				}
			}))
		}
	}
}

// What others write into an object that another downstream reads is followed at once, however often.
func TestBurstsOfSiblingsAreNotHeldBack(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer("events: None", "events: Warnings", "minDelay: 1s, maxDelay: 10s", "minDelay: 10m, maxDelay: 1h").Replace(related(ns, name))
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("w", "{data: {}}"))
		testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, configMaps, ns, "w-service") != nil, "missing" })
		for i := range 20 {
			patchData(t, ns, "w-service", fmt.Sprintf(`{"address":"x","port":"%d"}`, i))
			waitData(t, ns, "w-page", "port", strconv.Itoa(i))
		}
	})
}
