package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// TestShardsSwapNames: upstreams that take over each other's names do not wait for each other where different processes act for them. In
// each circle, the object goes first whose upstream closed it.
func TestShardsSwapNames(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason string
		names  []string
		change func(conf string) string
		moves  bool // shards move between the change of one and that of the next
	}{
		{"two", []string{"one", "two"}, nil, false},
		{"three in a circle", []string{"one", "two", "three"}, nil, false},
		{"nothing records them", []string{"one", "two"}, unrecorded, false},
		{"with labels", []string{"one", "two"}, func(conf string) string { return shardLabeled(conf, "shards") }, false},
		{"processes change places", []string{"one", "two"}, nil, true},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := replaceOnce(t, swapping(ns, name), "maxDelay: 10s", "maxDelay: 1s")
			if row.change != nil {
				conf = row.change(conf)
			}
			members := []member{}
			for i := range row.names {
				m := startMember(t, boardsIn(t, ns), len(row.names), conf)
				m.give(t.Context(), i)
				members = append(members, m)
			}
			for _, m := range members {
				m.ready()
			}
			for i, object := range row.names {
				inShard(t, ns, fmt.Sprintf("u%d", i), "{name: "+object+"}", members[i])
				waitData(t, ns, object, "of", fmt.Sprintf("u%d", i))
			}
			last := len(row.names) - 1
			for i := range row.names {
				if i == last {
					for _, m := range members {
						m.requests.Reset()
					}
				}
				testkit.Apply(t, ns, widgetAt(fmt.Sprintf("u%d", i), row.names[(i+1)%len(row.names)]))
				if i < last && row.reason != "nothing records them" {
					eventuallyCondition(t, ns, fmt.Sprintf("u%d", i), "False", "Conflict", "")
				}
				if i < last {
					waitBoard(t, boardsIn(t, ns)(engine.SwapsBoard, name), i+1)
				}
				if i == 0 && row.moves {
					members[0].take(0)
					members[1].take(1)
					members[0].give(t.Context(), 1)
					members[1].give(t.Context(), 0)
					members[0], members[1] = members[1], members[0]
				}
			}
			for i := range row.names {
				waitData(t, ns, row.names[(i+1)%len(row.names)], "of", fmt.Sprintf("u%d", i))
			}
			waitBoard(t, boardsIn(t, ns)(engine.SwapsBoard, name), 0)
			for i, m := range members {
				first, want := "", "PATCH"
				if i == last {
					want = "DELETE"
				}
				for _, request := range m.requests.Requests(testkit.Request.Mutating, func(r testkit.Request) bool {
					return r.Resource == "configmaps" && r.Code < 300 && !strings.Contains(r.Query, "dryRun")
				}) {
					if first == "" {
						first = request.Verb
					}
				}
				if first != want {
					t.Errorf("u%d begins with a %s, want %s", i, first, want)
				}
			}
			for _, m := range members {
				quiet(t, m.requests)
			}
		}))
	}
}

// TestShardsSwapRows is TestShardsSwapNames for rows.
func TestShardsSwapRows(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t)
		const n, rows = 8, 6
		db.add(1, rows)
		db.exec(`UPDATE apps SET data = json_object('of', 'row ' || id)`)
		conf := replaceOnce(t, db.config(ns, name), "maxDelay: 10s", "maxDelay: 1s")
		startPair(t, boardsIn(t, ns), n, conf, 0, 2, 4, 6)
		for i := 1; i <= rows; i++ {
			waitData(t, ns, app(i), "of", fmt.Sprintf("row %d", i))
		}
		db.exec(`UPDATE apps SET name = 'app-' || (id % 6 + 1)`)
		for i := 1; i <= rows; i++ {
			waitData(t, ns, app(i%rows+1), "of", fmt.Sprintf("row %d", i))
		}
		waitBoard(t, boardsIn(t, ns)(engine.SwapsBoard, name), 0)
	})
}

// TestShardsSwapNothing: what a process has put on the board, and that is no longer so under a new process, takes nothing from anybody.
func TestShardsSwapNothing(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := replaceOnce(t, swapping(ns, name), "maxDelay: 10s", "maxDelay: 1s") +
			"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings, missing: Allow}]\n"
		// The input says that each upstream wants the name of old.
		conf = replaceOnce(t, conf, "{{ .spec.name | default .metadata.name }}",
			`{{ ((input "settings").data | default dict).back | default .spec.name }}`)
		a, b := startPair(t, boardsIn(t, ns), 2, conf, 0)
		inShard(t, ns, "u0", "{name: one}", a)
		inShard(t, ns, "u1", "{name: two}", b)
		waitData(t, ns, "one", "of", "u0")
		waitData(t, ns, "two", "of", "u1")
		testkit.Apply(t, ns, widgetAt("u0", "two"))
		board := boardsIn(t, ns)(engine.SwapsBoard, name)
		waitBoard(t, board, 1)
		a.halt()
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {back: one}}")
		a = startMember(t, boardsIn(t, ns), 2, conf)
		a.give(t.Context(), 0)
		a.ready()
		waitCondition(t, widgets, ns, "u0", "Ready", "True")
		eventuallyCondition(t, ns, "u1", "False", "Conflict", "")
		keep(t, ns, map[string]string{"one": "u0", "two": "u1"})
	})
}

// inShard makes a Widget in a shard of a member.
func inShard(t *testing.T, ns, name, spec string, m member) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		if u := testkit.Find(t, widgets, ns, name); u != nil {
			if u.GetDeletionTimestamp() == nil && m.Has(m.ring.Of(string(u.GetUID()))) {
				return true, ""
			}
			testkit.Delete(t, widgets, ns, name)
			return false, "it is in another shard"
		}
		testkit.Apply(t, ns, widget(name, spec))
		return false, "it was just made"
	})
}

// waitBoard waits until a board has as many entries.
func waitBoard(t *testing.T, board shards.Board, want int) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		entries, err := board.Update(t.Context(), func(map[string]string) bool { return false })
		return err == nil && len(entries) == want, fmt.Sprint("on the board are ", entries, err)
	})
}

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
