package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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
func boardsIn(t testing.TB, ns string) func(operator string) shards.Board {
	client := kubernetes.NewForConfigOrDie(testkit.Config(t)).CoordinationV1().Leases(ns)
	return func(operator string) shards.Board {
		return shards.Board{Client: client, Name: "guard-" + operator}
	}
}

// member is one of two engines that share shards.
type member struct {
	*running
	*handMoved
	requests *testkit.Counter
}

func startMember(t *testing.T, boards func(operator string) shards.Board, n int, confs ...string) member {
	t.Helper()
	return startMemberAt(t, testkit.Config(t), boards, n, confs...)
}

func startMemberAt(t *testing.T, cfg *rest.Config, boards func(operator string) shards.Board, n int, confs ...string) member {
	t.Helper()
	m := member{handMoved: newHandMoved(n), requests: testkit.NewCounter()}
	m.running = startWith(t, m.requests.Wrap(cfg), func(_ *config.Operator, o *engine.Options) {
		o.Shards, o.Board = m.handMoved, boards
	}, confs...)
	return m
}

// startPair runs a config in two processes that share shards: those of the first, and all others.
func startPair(t *testing.T, boards func(operator string) shards.Board, n int, conf string, first ...int) (a, b member) {
	t.Helper()
	a, b = startMember(t, boards, n, conf), startMember(t, boards, n, conf)
	a.give(t.Context(), first...)
	for shard := range n {
		if !a.Has(shard) {
			b.give(t.Context(), shard)
		}
	}
	a.ready()
	b.ready()
	return a, b
}

// startAlone runs a config with shards that one process has.
func startAlone(t *testing.T, conf string) member {
	t.Helper()
	m := startMember(t, nil, 4, conf)
	m.ready()
	m.give(t.Context(), 0, 1, 2, 3)
	return m
}

// shardLabeled is a config that has a label for the shard.
func shardLabeled(conf, name string) string {
	return strings.Replace(conf, "  finalizer:", "  shard: {label: "+name+".example.com/shard}\n  finalizer:", 1)
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

// TestShardsMove: each object is written by the process that holds its shard, once, and by no other; when a shard
// moves, nothing is written, and nothing is lost.
func TestShardsMove(t *testing.T) {
	t.Parallel()
	for name, labeled := range map[string]bool{"by marks": false, "by label": true} {
		t.Run(name, spaced(func(t *testing.T, ns, name string) { shardsMove(t, ns, name, labeled) }))
	}
}

func shardsMove(t *testing.T, ns, name string, labeled bool) {
	const n, objects = 4, 40
	conf := fill(widgetConfig, ns, name)
	if labeled {
		conf = shardLabeled(conf, name)
	}
	a, b := startPair(t, nil, n, conf, 0, 1, 2, 3)
	applyMany(t, ns, objects, "{data: {key: old}}")
	if w := a.wrote(); len(w) != objects || len(b.wrote()) > 0 {
		t.Errorf("one holds all shards and wrote %d objects, the other %d", len(w), len(b.wrote()))
	}
	a.requests.Reset()
	a.take(0, 1)
	b.give(t.Context(), 0, 1)
	if n := a.requests.Mutating() + b.requests.Mutating(); n > 0 {
		t.Errorf("moving shards wrote %d times: %v, %v", n, a.requests.Snapshot(), b.requests.Snapshot())
	}
	applyMany(t, ns, objects, "{data: {key: new}}")
	waitMany(t, ns, objects, "key", "new")
	quiet(t, a.requests)
	quiet(t, b.requests)
	metricIs(t, 1, "corollary_shards_unfiltered", name)
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
		if labeled && labels[name+".example.com/shard"] != fmt.Sprint(shard) {
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

// TestShardsDeletionsWhileOneMoves: upstreams are deleted while a shard moves to and fro, its new owner lists objects,
// and the workers have enough to do. All are finalized, also those of shards that stay where they are.
func TestShardsDeletionsWhileOneMoves(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		const n, rounds, each = 4, 5, 30
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		conf := fill(strings.Replace(widgetConfig, "owner: {", "owner: {reference: false, ", 1), ns, name) // each has the finalizer
		isDelete := func(r *http.Request) bool { return r.Method == http.MethodDelete }
		a := startMemberAt(t, slowed(testkit.Config(t), 50*time.Millisecond, isDelete), nil, n, conf)
		b := startMemberAt(t, slowed(testkit.Config(t), 50*time.Millisecond, isDelete), nil, n, conf)
		a.ready()
		b.ready()
		a.give(t.Context(), 0, 1, 3)
		b.give(t.Context(), 2)
		applyMany(t, ns, rounds*each, "{data: {key: value}}")
		for round := range rounds {
			a.take(3)
			b.give(t.Context(), 3)
			a, b = b, a
			for i := range each {
				testkit.Delete(t, widgets, ns, named(round*each+i))
			}
		}
		for i := range rounds * each {
			waitGone(t, widgets, ns, named(i))
			waitGone(t, configMaps, ns, named(i))
		}
	})
}

// TestShardsOfAnOperatorThatCannotList: its shards count as being loaded for a bounded time. While they do, the shards
// of a process that has died are taken by nobody, also for operators that work.
func TestShardsOfAnOperatorThatCannotList(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		m := startMember(t, nil, 4, fill(widgetConfig, ns, name), acting(fill(widgetConfig, testkit.Namespace(t), testkit.Unique(t)), ns, "without-rights"))
		testkit.Apply(t, ns, widget("a", "{data: {key: value}}"))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if m.give(ctx, 0, 1, 2, 3); ctx.Err() != nil {
			t.Fatalf("the shards are still being loaded after %s", patience)
		}
		waitCondition(t, widgets, ns, "a", "Ready", "True")
	})
}

// TestShardsGainedBeforeAnOperatorStarts: a shard counts as being loaded until its objects are. A process that runs out
// of memory because of them may take its shards long before its operators begin to list.
func TestShardsGainedBeforeAnOperatorStarts(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		// What a process asks for before it opens watches takes long, and much less than the time after which its operators
		// are not waited for.
		cfg := slowed(testkit.Config(t), 500*time.Millisecond, func(r *http.Request) bool {
			return r.URL.Path == "/api" || r.URL.Path == "/apis" || strings.HasPrefix(r.URL.Path, "/openapi")
		})
		m := startMemberAt(t, cfg, nil, 4, fill(widgetConfig, ns, name))
		m.give(t.Context(), 0, 1, 2, 3)
		if m.requests.Snapshot()["WATCH widgets"] == 0 {
			t.Errorf("the shards count as loaded before their objects were listed: %v", m.requests.Snapshot())
		}
	})
}

// TestShardsOfEditedMarks: with shards, edited owner marks lead to what they lead to without: nothing is lost, or left
// behind.
func TestShardsOfEditedMarks(t *testing.T) {
	t.Parallel()
	const annotation = `{"metadata":{"annotations":{"NAME.example.com/owner":%s}},"data":{"key":"drifted"}}`
	for _, row := range []struct {
		name, owner, patch string
		ready              string // the reason afterwards; empty for Ready
	}{
		{"no reference", "", `{"metadata":{"ownerReferences":null},"data":{"key":"drifted"}}`, ""},
		{"no mark at all", "", `{"metadata":{"ownerReferences":null,"annotations":null},"data":{"key":"drifted"}}`, ""},
		{"no annotation", "reference: false, ", fmt.Sprintf(annotation, "null"), ""},
		{"nonsense", "reference: false, ", fmt.Sprintf(annotation, `"nonsense"`), ""},
		{"nobody", "reference: false, ", fmt.Sprintf(annotation, `"NS/nobody/1"`), ""},
		{"another one", "reference: false, ", fmt.Sprintf(annotation, `"NS/b/UID"`), "Conflict"},
	} {
		for _, sharded := range []string{"none", "by marks", "by label"} {
			t.Run(row.name+"/"+sharded, spaced(func(t *testing.T, ns, name string) {
				conf := strings.Replace(fill(widgetConfig, ns, name), "owner: {", "owner: {"+row.owner, 1)
				switch sharded {
				case "none":
					start(t, testkit.Config(t), conf).ready()
				case "by label":
					startAlone(t, shardLabeled(conf, name))
				default:
					startAlone(t, conf)
				}
				applyReady(t, ns, "a", "{data: {key: value}}")
				other := ""
				for ring, of := (shards.Ring{N: 4}), string(testkit.Get(t, widgets, ns, "a").GetUID()); other == "" || ring.Of(other) == ring.Of(of); {
					testkit.Delete(t, widgets, ns, "b") // it is to be in another shard
					bothGone(t, ns, ns, "b")
					other = string(testkit.Apply(t, ns, widget("b", "{data: {key: value}}")).GetUID())
					waitCondition(t, widgets, ns, "b", "Ready", "True")
				}
				edit := func() {
					testkit.Patch(t, configMaps, ns, "a", "somebody", strings.NewReplacer("NAME", name, "NS", ns, "UID", other).Replace(row.patch))
				}
				edit()
				if row.ready != "" {
					eventuallyCondition(t, ns, "a", "False", row.ready, "")
					return
				}
				waitData(t, ns, "a", "key", "value")
				testkit.Delete(t, configMaps, ns, "a")
				waitData(t, ns, "a", "key", "value")
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				if edit(); row.owner == "" { // the garbage collector goes by the reference at that moment
					waitData(t, ns, "a", "key", "value")
				}
				deleteBoth(t, ns, ns, "a")
			}))
		}
	}
}
