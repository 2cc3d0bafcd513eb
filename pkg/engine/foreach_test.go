package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
)

var pools = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "pools"}

// poolConfig makes a ConfigMap for each worker of a Pool.
var poolConfig = strings.NewReplacer("kind: Widget", "kind: Pool", `  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata:
        name: {{ .spec.name | default .metadata.name }}
      data: {{ .spec.data }}
`, `  - name: worker
    apiVersion: v1
    kind: ConfigMap
    forEach:
      items: self.spec.workers
    when: item.?enabled.orValue(true)
    template: |
      metadata: {name: "{{ .metadata.name }}-{{ item.name }}"}
      data: {value: "{{ item.value }}"}
`, "  downstreams: .status.downstreams\n", `  downstreams: .status.downstreams
  fields:
    - {path: .status.names, value: "downstreams.worker.map(n, n)"}
`).Replace(widgetConfig)

// pool is a Pool with workers, each NAME=VALUE.
func pool(name string, workers ...string) string {
	var list []string
	for _, w := range workers {
		key, value, _ := strings.Cut(w, "=")
		list = append(list, fmt.Sprintf("{name: %s, value: %q}", key, value))
	}
	return object("Pool", name, "{workers: ["+strings.Join(list, ", ")+"]}")
}

// waitWorkers waits until the ConfigMaps of an operator are those, each NAME=VALUE.
func waitWorkers(t *testing.T, ns, operator string, want ...string) {
	t.Helper()
	slices.Sort(want)
	testkit.Eventually(t, patience, func() (bool, string) {
		var have []string
		for _, u := range testkit.List(t, configMaps, ns, selector(operator)) {
			value, _, _ := unstructured.NestedString(u.Object, "data", "value")
			have = append(have, u.GetName()+"="+value)
		}
		slices.Sort(have)
		return slices.Equal(have, want), fmt.Sprintf("there are %v", have)
	})
}

// recordedObjects are the objects that the status of a Pool records, each with its state.
func recordedObjects(u *unstructured.Unstructured) (list []string) {
	items, _, _ := unstructured.NestedSlice(u.Object, "status", "downstreams")
	for _, item := range items {
		m := item.(map[string]any)
		list = append(list, fmt.Sprintf("%v %v", m["objectName"], m["state"]))
	}
	return list
}

func waitRecorded(t *testing.T, ns, name string, want ...string) {
	t.Helper()
	waitThat(t, pools, ns, name, func(u *obj) bool { return slices.Equal(recordedObjects(u), want) })
}

func TestForEach(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startCounted(t, fill(poolConfig, ns, name))

		testkit.Apply(t, ns, pool("p", "b=1", "a=2"))
		u := waitCondition(t, pools, ns, "p", "Ready", "True")
		waitWorkers(t, ns, name, "p-a=2", "p-b=1")
		waitRecorded(t, ns, "p", "p-a InSync", "p-b InSync")
		if names, _, _ := unstructured.NestedStringSlice(u.Object, "status", "names"); !slices.Equal(names, []string{"p-a", "p-b"}) {
			t.Errorf("downstreams.worker has %v", names)
		}
		quiet(t, counter)

		counter.Reset()
		testkit.Apply(t, ns, pool("p", "a=2", "b=1"))             // the order means nothing
		atMostRequests(t, counter, 1, "items that change places") // the generation

		counter.Reset()
		testkit.Apply(t, ns, pool("p", "a=2", "b=1", "c=3"))
		waitWorkers(t, ns, name, "p-a=2", "p-b=1", "p-c=3")
		waitRecorded(t, ns, "p", "p-a InSync", "p-b InSync", "p-c InSync")
		atMostRequests(t, counter, 2, "one more item")

		counter.Reset()
		testkit.Patch(t, configMaps, ns, "p-b", "somebody", `{"data":{"value":"tampered"}}`)
		waitWorkers(t, ns, name, "p-a=2", "p-b=1", "p-c=3")
		exactly(t, counter, 1, "a repair")

		testkit.Apply(t, ns, pool("p", "a=2", "c=3")) // one that disappears
		waitWorkers(t, ns, name, "p-a=2", "p-c=3")
		waitRecorded(t, ns, "p", "p-a InSync", "p-c InSync")

		testkit.Apply(t, ns, pool("p", "a=2", "d=4", "a=5")) // two of one name: neither counts, and all that exists stays
		readyIs(t, pools, ns, "p", "False", "RenderFailed", "items 0, 2 all give "+ns+"/p-a")
		waitWorkers(t, ns, name, "p-a=2", "p-c=3", "p-d=4")

		testkit.Apply(t, ns, object("Pool", "p", "{workers: 7}")) // no list at all: everything is left alone
		waitCondition(t, pools, ns, "p", "Ready", "False")
		waitWorkers(t, ns, name, "p-a=2", "p-c=3", "p-d=4")
		waitRecorded(t, ns, "p", "p-a RenderFailed", "p-c RenderFailed", "p-d RenderFailed")

		testkit.Apply(t, ns, pool("p")) // no items
		waitWorkers(t, ns, name)
		waitCondition(t, pools, ns, "p", "Ready", "True")
		waitRecorded(t, ns, "p")

		testkit.Apply(t, ns, pool("p", "a=1", "b=2"))
		waitWorkers(t, ns, name, "p-a=1", "p-b=2")
		testkit.Delete(t, pools, ns, "p")
		waitWorkers(t, ns, name)
		waitGone(t, pools, ns, "p")
	})
}

// A reconcile has as much time as a stop waits for it. What it cannot do in that time is done by the next one, and
// nothing has failed.
func TestForEachTakesLongerThanOneReconcile(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		slow := slowed(testkit.Config(t), 50*time.Millisecond, isWrite) // what a busy API server takes
		short := func(_ *config.Operator, o *engine.Options) { o.DrainTimeout = 4 * time.Second }
		startWith(t, slow, short, fill(poolConfig, ns, name)).ready()
		var items []string
		for i := range 100 {
			items = append(items, fmt.Sprintf("w%03d=v", i))
		}
		testkit.Apply(t, ns, pool("p", items...))
		testkit.Eventually(t, patience, func() (bool, string) {
			u := testkit.Find(t, pools, ns, "p")
			status, _, message := condition(u, "Ready")
			return len(recordedObjects(u)) == 100 && status == "True", message
		})
		deleteAndWait(t, pools, ns, "p")
		waitWorkers(t, ns, name)
		metricIs(t, 0, "corollary_failures_total", name)
	})
}

// Items of any kind get a clear condition; what exists stays, what can be made is made, and others are served
// meanwhile.
func TestForEachBadInput(t *testing.T) {
	t.Parallel()
	many := func(n int, item func(int) string) string {
		var list []string
		for i := range n {
			list = append(list, item(i))
		}
		return strings.Join(list, ", ")
	}
	long := strings.Repeat("x", 500<<10)
	for _, row := range []struct {
		name, spec         string
		ready, valid, says string   // condition Ready's reason, Valid's status, and what the message of Ready has
		want               []string // the ConfigMaps then
	}{
		{"ten thousand items", "{workers: [" + many(10000, func(i int) string { return fmt.Sprintf("{name: w%d, value: x}", i) }) + "]}",
			"Invalid", "False", "downstream worker has 10000 items, more than maxItems: 100", []string{"p-old=x"}},
		{"items of several types", "{workers: [{name: old, value: z}, text, 7, null, [1], {name: {a: b}, value: x}, {value: x}, true]}",
			"RenderFailed", "True", "1 of 8 ready; not ready: item 1 (", []string{"p-old=z"}},
		{"names that are no DNS names", "{workers: [{name: Not_DNS, value: x}, {name: old, value: z}, {name: '', value: x}]}",
			"RenderFailed", "True", "item 0 (", []string{"p-old=z"}},
		{"names twice", "{workers: [{name: b, value: x}, {name: b, value: x}, {name: b, value: z}, {name: a, value: x}]}",
			"RenderFailed", "True", "items 0, 1, 2 all give ", []string{"p-a=x", "p-old=x"}},
		{"the largest map that the API server stores", "{workers: {" + many(16000, func(i int) string { return fmt.Sprintf("key-%032d: x", i) }) + "}}",
			"Invalid", "False", "downstream worker has 16000 items, more than maxItems: 100", []string{"p-old=x"}},
		{"two names of half a MiB", "{workers: [{name: a" + long + ", value: x}, {name: b" + long + ", value: x}]}",
			"RenderFailed", "True", "0 of 2 ready; not ready: item 0 (", []string{"p-old=x"}},
		{"text", "{workers: " + long + "}", "RenderFailed", "True", "its items are not known: forEach.items gives no list and no map, but string", []string{"p-old=x"}},
		{"nothing", "{other: x}", "RenderFailed", "True", "its items are not known: evaluating forEach.items", []string{"p-old=x"}},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(fill(poolConfig, ns, name), "item.name", "item.name | default item.key", 1)
			start(t, testkit.Config(t), strings.Replace(conf, "when: item.?enabled.orValue(true)", "when: 'true'", 1)).ready()
			testkit.Apply(t, ns, pool("p", "old=x"))
			waitWorkers(t, ns, name, "p-old=x")
			waitCondition(t, pools, ns, "p", "Ready", "True")
			testkit.Apply(t, ns, object("Pool", "p", row.spec))
			testkit.Eventually(t, patience, func() (bool, string) {
				u := testkit.Get(t, pools, ns, "p")
				_, reason, message := condition(u, "Ready")
				valid, _, _ := condition(u, "Valid")
				if len(message) > 4096 {
					t.Fatalf("the message has %d bytes", len(message))
				}
				return reason == row.ready && valid == row.valid && strings.Contains(message, row.says), reason + ", Valid " + valid + ": " + message
			})
			waitWorkers(t, ns, name, row.want...)
			testkit.Apply(t, ns, pool("q", "fine=x"))
			waitWorkers(t, ns, name, append(row.want, "q-fine=x")...)
			deleteAndWait(t, pools, ns, "p")
		}))
	}
}

// What one tenant writes neither stops the process nor keeps others waiting, and each gets to know why.
func TestHostileUpstreams(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		text := strings.Replace(fill(widgetConfig, ns, name), "data: {{ .spec.data }}", `data: {key: {{ .spec.data.key | default "none" }}, text: "{{ range until (.spec.data.count | default 0 | int) }}x{{ end }}"}`, 1)
		start(t, testkit.Config(t), text).ready()
		for i, n := range []string{"-9223372036854775808", "9223372036854775807", "1000000000", "400000"} {
			testkit.Apply(t, ns, widget(fmt.Sprint("hostile", i), fmt.Sprintf("{data: {count: %q}}", n)))
		}
		applyReady(t, ns, "innocent", "{data: {key: value}}")
		waitData(t, ns, "innocent", "key", "value")
		for i := range 4 {
			up := waitCondition(t, widgets, ns, fmt.Sprint("hostile", i), "Ready", "False")
			if _, reason, message := condition(up, "Ready"); reason != "RenderFailed" || !strings.Contains(message, "more than") && !strings.Contains(message, "longer than") {
				t.Errorf("%s: Ready says %s: %s", up.GetName(), reason, message)
			}
		}
	})
}
