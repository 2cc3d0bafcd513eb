package engine_test

import (
	"fmt"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestUpstreamsChangeHands: a label, of theirs or of their namespace, moves upstreams from one operator to another one,
// which writes the same conditions, and in two processes the same records. Each deletes, or releases, what it has made,
// once.
func TestUpstreamsChangeHands(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ policy, selector string }{{"Delete", "labelSelector"}, {"Orphan", "labelSelector"}, {"Delete", "namespaceSelector"}, {"Orphan", "namespaceSelector"}} {
		for _, processes := range []int{1, 2} {
			t.Run(fmt.Sprint(row.policy, " ", row.selector, " ", processes), bubbled(func(t *testing.T) {
				testChangeOfHands(t, row.policy, row.selector, processes)
			}))
		}
	}
}

func testChangeOfHands(t *testing.T, policy, selector string, processes int) {
	const n = 5
	ns, counter := testkit.Namespace(t), testkit.NewCounter()
	conf := func(name string) string {
		text := watched(fill(widgetConfig, ns, name), selector+": {matchLabels: {of: "+name+"}}")
		if name == "two" && processes == 1 {
			text = replaceOnce(t, text, ".status.downstreams", ".status.other")
		}
		return replaceOnce(t, text, "# downstream", "deletionPolicy: "+policy+"\n    adoptionPolicy: IfUnowned")
	}
	give := func(to string) {
		patch := `{"metadata":{"labels":{"of":"` + to + `"}}}`
		testkit.Patch(t, namespaces, "", ns, "somebody", patch)
		for i := range n {
			testkit.Patch(t, widgets, ns, fmt.Sprint("a", i), "somebody", patch)
		}
	}
	for i := range n {
		testkit.Apply(t, ns, widget(fmt.Sprint("a", i), `{data: {key: value}}`))
	}
	give("one")
	if cfg := counter.Wrap(testkit.Config(t)); processes == 1 {
		start(t, cfg, conf("one"), conf("two")).ready()
	} else {
		start(t, cfg, conf("one")).ready()
		start(t, cfg, conf("two")).ready()
	}
	for round, to := range []string{"one", "two", "one", "two"} {
		give(to)
		quiet(t, counter)
		deleted := counter.Total(func(r testkit.Request) bool { return r.Verb == "DELETE" && r.Resource == "configmaps" && r.Code == 200 })
		if most := map[string]int{"Delete": n * min(round, 1)}[policy]; deleted > most {
			t.Errorf("%d were deleted for %s, want %d at most", deleted, to, most)
		}
		counter.Reset()
		for i := range n {
			waitCondition(t, widgets, ns, fmt.Sprint("a", i), "Ready", "True")
			if cm := waitData(t, ns, fmt.Sprint("a", i), "key", "value"); cm.GetLabels()[to+".example.com/managed"] != "yes" {
				t.Errorf("%s has %v", to, cm.GetLabels())
			}
		}
	}
}
