//go:build controlplane

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// handMoved are shards that the test gives and takes by hand.
type handMoved struct {
	ring    shards.Ring
	mu      sync.Mutex
	held    map[int]bool
	handler shards.Handler
	// quarantined is a shard in quarantine; -1 for none.
	quarantined int
}

func newHandMoved(n int) *handMoved {
	return &handMoved{ring: shards.Ring{N: n}, held: map[int]bool{}, quarantined: -1}
}

func (h *handMoved) Ring() shards.Ring { return h.ring }

func (h *handMoved) Has(shard int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[shard]
}

func (h *handMoved) Quarantined(shard int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.quarantined == shard
}

func (h *handMoved) quarantine(shard int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.quarantined = shard
}

func (h *handMoved) Within(ctx context.Context, _ int) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func (h *handMoved) Subscribe(handler shards.Handler) { h.handler = handler }

func (h *handMoved) set(shard int, held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[shard] = held
}

// give gives shards, and returns when they are loaded and reconciled.
func (h *handMoved) give(ctx context.Context, list ...int) {
	var all sync.WaitGroup
	for _, shard := range list {
		h.set(shard, true)
		all.Go(func() { h.handler.Gained(ctx, shard) })
	}
	all.Wait()
}

// take takes shards, and returns when nothing of them runs.
func (h *handMoved) take(list ...int) {
	for _, shard := range list {
		h.set(shard, false)
		h.handler.Lost(shard)
	}
}

// boardsIn are boards in a namespace.
func boardsIn(ns string) func(board, operator string) shards.Board {
	client := kubernetes.NewForConfigOrDie(testkit.Config()).CoordinationV1().Leases(ns)
	return func(board, operator string) shards.Board {
		return shards.Board{Client: client, Name: board + "-" + operator}
	}
}

// member is one of two engines that share shards.
type member struct {
	*running
	*handMoved
	requests *testkit.Counter
}

func startMember(t *testing.T, boards func(board, operator string) shards.Board, n int, conf string) member {
	t.Helper()
	m := member{handMoved: newHandMoved(n), requests: testkit.NewCounter()}
	m.running = startWith(t, m.requests.Wrap(testkit.Config()), func(_ *config.Operator, o *engine.Options) {
		o.Shards, o.Board = m.handMoved, boards
	}, conf)
	return m
}

// wrote are how often each ConfigMap was written.
func (m member) wrote() map[string]int {
	counts := map[string]int{}
	for _, r := range m.requests.Requests(testkit.Request.Mutating) {
		if r.Resource == "configmaps" {
			counts[r.Name]++
		}
	}
	return counts
}

// TestShardsMove: each object is written by the process that holds its shard, once, and by no other; when a shard moves, nothing is
// written, and nothing is lost.
func TestShardsMove(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"by marks": "", "by label": "  shard: {label: NAME.example.com/shard}\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shardsMove(t, more)
		})
	}
}

func shardsMove(t *testing.T, more string) {
	const n, objects = 4, 40
	ns := testkit.Namespace(t)
	name := testkit.Unique(t)
	conf := fill(widgetConfig, ns, name)
	if more = fill(more, ns, name); more != "" {
		conf = strings.Replace(conf, "  finalizer:", more+"  finalizer:", 1)
	}
	a, b := startMember(t, nil, n, conf), startMember(t, nil, n, conf)
	a.ready()
	b.ready()
	a.give(t.Context(), 0, 1, 2, 3)
	for i := range objects {
		testkit.Apply(t, ns, widget(named(i), "{data: {key: old}}"))
	}
	for i := range objects {
		waitCondition(t, widgets, ns, named(i), "Ready", "True")
	}
	if w := a.wrote(); len(w) != objects || len(b.wrote()) > 0 {
		t.Errorf("one holds all shards and wrote %d objects, the other %d", len(w), len(b.wrote()))
	}
	a.requests.Reset()
	a.take(0, 1)
	b.give(t.Context(), 0, 1)
	if n := a.requests.Mutating() + b.requests.Mutating(); n > 0 {
		t.Errorf("moving shards wrote %d times: %v, %v", n, a.requests.Snapshot(), b.requests.Snapshot())
	}
	for i := range objects {
		testkit.Apply(t, ns, widget(named(i), "{data: {key: new}}"))
	}
	for i := range objects {
		waitData(t, ns, named(i), "key", "new")
		waitCondition(t, widgets, ns, named(i), "Ready", "True")
	}
	quiet(t, a.requests)
	quiet(t, b.requests)
	if n := metric(t, "corollary_shards_unfiltered", name); n != 1 {
		t.Errorf("corollary_shards_unfiltered is %v though the API server sends objects of other shards", n)
	}
	for i := range objects {
		shard := a.ring.Of(string(testkit.Get(t, widgets, ns, named(i)).GetUID()))
		want := [2]int{1, 0}
		if shard < 2 {
			want = [2]int{0, 1}
		}
		if got := [2]int{a.wrote()[named(i)], b.wrote()[named(i)]}; got != want {
			t.Errorf("%s in shard %d was written %v times by the two, wanted %v", named(i), shard, got, want)
		}
		labels := testkit.Get(t, configMaps, ns, named(i)).GetLabels()
		if more != "" && labels[name+".example.com/shard"] != fmt.Sprint(shard) {
			t.Errorf("%s in shard %d has the labels %v", named(i), shard, labels)
		}
	}
	a.requests.Reset()
	b.requests.Reset()
	b.take(0, 1)
	a.give(t.Context(), 0, 1)
	for i := range objects {
		testkit.Delete(t, widgets, ns, named(i))
	}
	for i := range objects {
		waitGone(t, configMaps, ns, named(i))
	}
	if b.requests.Mutating() > 0 {
		t.Errorf("the one without shards wrote: %v", b.requests.Snapshot())
	}
}

// TestShardsGuard: what guard allows each process alone, and not both together, waits in both.
func TestShardsGuard(t *testing.T) {
	t.Parallel()
	const n = 4
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := guardedBy(fill(widgetConfig, ns, name), "")
	first := standing(t, ns, conf)
	first.halt()
	changed := strings.Replace(conf, "data: {{ .spec.data }}", "data: {key: value, version: two}", 1)
	boards := boardsIn(ns)
	counts := boards(engine.GuardBoard, name)
	a, b := startMember(t, boards, n, changed), startMember(t, boards, n, changed)
	in := map[int]int{}
	for _, w := range testkit.List(t, widgets, ns, "") {
		in[a.ring.Of(string(w.GetUID()))]++
	}
	order := []int{0, 1, 2, 3}
	slices.SortFunc(order, func(x, y int) int { return in[y] - in[x] })
	a.give(t.Context(), order[:2]...)
	testkit.Eventually(t, patience, func() (bool, string) {
		lease, err := counts.Client.Get(t.Context(), counts.Name, metav1.GetOptions{})
		return err == nil && len(lease.Annotations) == 2, fmt.Sprint("the Lease is ", lease)
	})
	untouched(t, ns) // two shards are not counted yet
	// Nobody waits for one in quarantine. It is the one with the fewest objects: what is left is more than guard allows.
	a.quarantine(order[3])
	b.quarantine(order[3])
	b.give(t.Context(), order[2])
	if x, y := a.digest(), b.digest(); x != y {
		t.Errorf("one wants %s confirmed, the other %s", x, y)
	}
	untouched(t, ns)
}

// TestShardsGuardLeaseDeleted: where a person deletes the Lease of counts, a process that starts waits no longer than until the others see it.
func TestShardsGuardLeaseDeleted(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := guardedBy(fill(widgetConfig, ns, name), "")
	standing(t, ns, conf).halt()
	a, b := startMember(t, boardsIn(ns), 2, conf), startMember(t, boardsIn(ns), 2, conf)
	a.give(t.Context(), 0)
	b.give(t.Context(), 1)
	a.ready()
	b.ready()
	board := boardsIn(ns)(engine.GuardBoard, name)
	waitBoard(t, board, 2)
	leases := kubernetes.NewForConfigOrDie(testkit.Config()).CoordinationV1().Leases(ns)
	if err := leases.Delete(t.Context(), board.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.halt()
	a = startMember(t, boardsIn(ns), 2, conf)
	a.give(t.Context(), 0)
	b.handler.MembersChanged()
	a.ready()
}

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
		{"with labels", []string{"one", "two"}, func(conf string) string {
			return strings.Replace(conf, "  finalizer:", "  shard: {label: shards.example.com/shard}\n  finalizer:", 1)
		}, false},
		{"processes change places", []string{"one", "two"}, nil, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := replaceOnce(t, swapping(ns, name), "maxDelay: 10s", "maxDelay: 1s")
			if row.change != nil {
				conf = row.change(conf)
			}
			members := []member{}
			for i := range row.names {
				m := startMember(t, boardsIn(ns), len(row.names), conf)
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
					waitBoard(t, boardsIn(ns)(engine.SwapsBoard, name), i+1)
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
			waitBoard(t, boardsIn(ns)(engine.SwapsBoard, name), 0)
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
		})
	}
}

// TestShardsSwapRows is TestShardsSwapNames for rows.
func TestShardsSwapRows(t *testing.T) {
	t.Parallel()
	ns, name, db := testkit.Namespace(t), testkit.Unique(t), newDatabase(t)
	const n, rows = 8, 6
	db.add(1, rows)
	db.exec(`UPDATE apps SET data = json_object('of', 'row ' || id)`)
	conf := replaceOnce(t, db.config(ns, name), "maxDelay: 10s", "maxDelay: 1s")
	a, b := startMember(t, boardsIn(ns), n, conf), startMember(t, boardsIn(ns), n, conf)
	a.give(t.Context(), 0, 2, 4, 6)
	b.give(t.Context(), 1, 3, 5, 7)
	a.ready()
	b.ready()
	for i := 1; i <= rows; i++ {
		waitData(t, ns, app(i), "of", fmt.Sprintf("row %d", i))
	}
	db.exec(`UPDATE apps SET name = 'app-' || (id % 6 + 1)`)
	for i := 1; i <= rows; i++ {
		waitData(t, ns, app(i%rows+1), "of", fmt.Sprintf("row %d", i))
	}
	waitBoard(t, boardsIn(ns)(engine.SwapsBoard, name), 0)
}

// TestShardsSwapNothing: what a process has put on the board, and that is no longer so under a new process, takes nothing from anybody.
func TestShardsSwapNothing(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := replaceOnce(t, swapping(ns, name), "maxDelay: 10s", "maxDelay: 1s") +
		"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings, missing: Allow}]\n"
	// The input says that each upstream wants the name of old.
	conf = replaceOnce(t, conf, "{{ .spec.name | default .metadata.name }}",
		`{{ ((input "settings").data | default dict).back | default .spec.name }}`)
	a, b := startMember(t, boardsIn(ns), 2, conf), startMember(t, boardsIn(ns), 2, conf)
	a.give(t.Context(), 0)
	b.give(t.Context(), 1)
	a.ready()
	b.ready()
	inShard(t, ns, "u0", "{name: one}", a)
	inShard(t, ns, "u1", "{name: two}", b)
	waitData(t, ns, "one", "of", "u0")
	waitData(t, ns, "two", "of", "u1")
	testkit.Apply(t, ns, widgetAt("u0", "two"))
	board := boardsIn(ns)(engine.SwapsBoard, name)
	waitBoard(t, board, 1)
	a.halt()
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {back: one}}")
	a = startMember(t, boardsIn(ns), 2, conf)
	a.give(t.Context(), 0)
	a.ready()
	waitCondition(t, widgets, ns, "u0", "Ready", "True")
	eventuallyCondition(t, ns, "u1", "False", "Conflict", "")
	never(t, func() (bool, string) {
		for object, of := range map[string]string{"one": "u0", "two": "u1"} {
			if cm := testkit.Find(t, configMaps, ns, object); cm == nil || fmt.Sprint(cm.Object["data"]) != "map[of:"+of+"]" {
				return true, object + " went"
			}
		}
		return false, ""
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

// TestShardsGuardBatch: a changed input waits in all processes if guard allows what each counts, and not what all count. What waits does so
// wherever its shard moves.
func TestShardsGuardBatch(t *testing.T) {
	t.Parallel()
	for _, moves := range []bool{false, true} {
		t.Run(fmt.Sprintf("shards move: %t", moves), func(t *testing.T) {
			t.Parallel()
			const n, each = 4, 6
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := with(fill(widgetConfig, ns, name), dropKey) +
				"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: self.spec.anything.of, missing: Allow}]\n" +
				"guard: {maxDeleted: 20%, minimum: 4" + confirmKey(ns) + "}\n"
			conf = replaceOnce(t, conf, "data: {{ .spec.data }}", "data: {key: value}")
			a, b := startMember(t, boardsIn(ns), n, conf), startMember(t, boardsIn(ns), n, conf)
			a.give(t.Context(), 0, 1)
			b.give(t.Context(), 2, 3)
			a.ready()
			b.ready()
			var many []string // read one object, three in each process
			for i := range 2 * each {
				m, of := map[bool]member{true: a, false: b}[i < each], "none"
				if i%each < 3 {
					of = "many"
					many = append(many, named(i))
				} else if i%each == 3 {
					of = fmt.Sprintf("few-%d", i/each)
				}
				inShard(t, ns, named(i), "{data: {}, anything: {of: "+of+"}}", m)
			}
			for i := range 2 * each {
				waitCondition(t, widgets, ns, named(i), "Ready", "True")
			}
			drop := func(input string) {
				testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+input+"}, data: {drop: 'yes'}}")
			}
			drop("few-0") // one object of twelve
			waitGone(t, configMaps, ns, named(3))
			held := func() {
				t.Helper()
				never(t, func() (bool, string) {
					for _, of := range many {
						if testkit.Find(t, configMaps, ns, of) == nil {
							return true, of + " is gone before anybody confirmed"
						}
					}
					return false, ""
				})
			}
			drop("many")
			digest := b.digest()
			if !moves && digest != a.digest() {
				t.Errorf("one wants %s confirmed, the other %s", a.digest(), digest)
			}
			held()
			if moves {
				a.take(0)
				b.give(t.Context(), 0)
				held()
				drop("nothing") // so that the digest is not that of before
				testkit.Eventually(t, patience, func() (bool, string) {
					digest = b.digest()
					return digest == a.digest(), "one wants " + a.digest() + " confirmed, the other " + digest
				})
			}
			testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: confirmations}, data: {widgets: "+digest+"}}")
			for _, of := range many {
				waitGone(t, configMaps, ns, of)
			}
			drop("few-1") // what was confirmed counts no more
			waitGone(t, configMaps, ns, named(each+3))
		})
	}
}
