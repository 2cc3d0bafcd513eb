package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Items of any kind get a clear condition; what exists stays, what can be made is made, and others are served meanwhile.
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
