package engine_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestShardsResize: processes that start with another number of shards move the labels of objects, which guard does not
// hold. No object is created again, what was deleted meanwhile is finalized, and drift is repaired wherever shards move.
func TestShardsResize(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		label   bool
		guarded bool
		most    int // writes to each object: a create that is refused, and an apply
	}{
		"by marks nothing changes":    {},
		"by label the label moves":    {label: true, most: 2},
		"guard does not hold a label": {label: true, guarded: true, most: 2},
	} {
		t.Run(name, spaced(func(t *testing.T, ns, name string) { shardsResize(t, ns, name, c.label, c.guarded, c.most) }))
	}
}

func shardsResize(t *testing.T, ns, name string, label, guarded bool, most int) {
	const before, after, objects = 3, 8, 12
	conf := fill(widgetConfig, ns, name)
	if label {
		conf = shardLabeled(conf, name)
	}
	if guarded {
		conf = guardedBy(conf, "")
	}
	first := startMember(t, nil, before, conf)
	first.ready()
	first.give(t.Context(), 0, 1, 2)
	uids := map[string]types.UID{}
	for i := range objects {
		testkit.Apply(t, ns, widget(named(i), "{data: {key: old}}"))
	}
	for i := range objects {
		waitCondition(t, widgets, ns, named(i), "Ready", "True")
		uids[named(i)] = testkit.Get(t, configMaps, ns, named(i)).GetUID()
	}
	first.halt()
	gone := named(objects - 1)
	testkit.Delete(t, widgets, ns, gone)

	a, b := startPair(t, nil, after, conf, 0, 1, 2, 3)
	waitGone(t, configMaps, ns, gone)
	waitGone(t, widgets, ns, gone)
	quiet(t, a.requests)
	quiet(t, b.requests)
	for i := range objects - 1 {
		wrote, uid := a.wrote()[named(i)]+b.wrote()[named(i)], testkit.Get(t, configMaps, ns, named(i)).GetUID()
		if wrote > most || uid != uids[named(i)] {
			t.Errorf("%s was written %d times, and has uid %s; want at most %d, and %s", named(i), wrote, uid, most, uids[named(i)])
		}
	}
	// A label may still name another shard of the same process. Once that shard is another process's, it must not.
	a.take(0, 1)
	b.give(t.Context(), 0, 1)
	quiet(t, a.requests)
	quiet(t, b.requests)
	for i := range objects - 1 {
		testkit.Patch(t, configMaps, ns, named(i), "editor", `{"data": {"key": "edited"}}`)
		waitData(t, ns, named(i), "key", "old")
	}
}
