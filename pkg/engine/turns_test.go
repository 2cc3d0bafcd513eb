package engine

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/shards"
)

func refNamed(name string) operator.Ref { return operator.Ref{Name: name} }

// TestTurns: while upstreams change faster than they are reconciled, what waits at a low priority has its turns, in its order, once.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		add := func(priority int, after time.Duration, names ...string) {
			var refs []operator.Ref
			for _, name := range names {
				refs = append(refs, refNamed(name))
			}
			turns.add(priority, after, refs, func() {})
		}
		// changing reconciles upstreams that change, and returns those that had a turn.
		changing := func(reconciles int) (had []string) {
			for range reconciles {
				if next, ok := turns.begin(refNamed("changes"), false); ok {
					had = append(had, next.Name)
				}
			}
			return had
		}
		expect := func(reason string, had []string, want ...string) {
			t.Helper()
			if !slices.Equal(had, want) {
				t.Errorf("these had a turn: %q, want %q: %s", had, want, reason)
			}
		}
		expect("nothing waits", changing(100))
		add(informers.PriorityNow, 0, "now")
		expect("the queue comes to it by itself", changing(100))

		add(informers.PriorityBulk, 0, "a", "b", "c")
		add(informers.PriorityReaders, 0, "a", "d")
		turns.begin(refNamed("b"), false)
		expect("in the order of their arrival, without what was reconciled", changing(5*turnEvery), "a", "c", "d")

		add(informers.PriorityAgain, time.Minute, "late")
		add(informers.PriorityAgain, time.Second, "soon")
		add(informers.PriorityBulk, 0, "bulk")
		expect("those with a delay wait for it", changing(5*turnEvery), "bulk")
		<-time.After(2 * time.Second)
		expect("its time has come", changing(5*turnEvery), "soon")
		add(informers.PriorityAgain, time.Second, "late")
		<-time.After(2 * time.Second)
		expect("the earlier of two times", changing(5*turnEvery), "late")
		<-time.After(2 * time.Minute)
		expect("it had its turn", changing(5*turnEvery))

		for i := range 1000 {
			add(informers.PriorityAgain, time.Second, fmt.Sprint(i%10))
			turns.begin(refNamed(fmt.Sprint(i%10)), false)
			<-time.After(time.Second)
		}
		if n := len(turns.order) + len(turns.waiting); n > 2*mostGone {
			t.Errorf("it keeps %d entries of what was reconciled", n)
		}

		add(informers.PriorityBulk, 0, "oldest")
		for i := range 1000 {
			<-time.After(time.Second)
			add(informers.PriorityAgain, time.Millisecond, fmt.Sprintf("fails-%d", i%50))
		}
		expect("what is tried again does not go before what has waited for longer", changing(turnEvery), "oldest")

		add(informers.PriorityAgain, time.Hour, "last")
		for range 100_000 {
			turns.begin(refNamed("one"), false)
			add(informers.PriorityAgain, 2*time.Hour, "one")
		}
		if n := len(turns.order); n > 2*len(turns.waiting)+mostGone {
			t.Errorf("it keeps %d entries for %d that wait", n, len(turns.waiting))
		}
	})
}

// TestTurnsTakeTheirPartOfTheTime: what waits at a low priority has an eighth of the time, however little each reconcile of it takes; half
// of it while upstreams wait that were taken over.
func TestTurnsTakeTheirPartOfTheTime(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason      string
		one         time.Duration // of what waits
		taken       bool
		least, most int // turns, while others take 6 s
	}{
		{"those in sync need no request", time.Millisecond, false, 800, 870},
		{"they take as long as all others", 60 * time.Millisecond, false, 12, 16},
		{"they take longer: not every second one is a turn", 600 * time.Millisecond, false, 12, 16},
		{"no process had them", 60 * time.Millisecond, true, 98, 102},
		{"no process had them, and most are in sync", 4 * time.Millisecond, true, 1480, 1520},
	} {
		var turns turns
		var refs []operator.Ref
		for i := range 2000 {
			refs = append(refs, refNamed(fmt.Sprint(i)))
		}
		turns.add(informers.PriorityBulk, 0, refs, func() {})
		had := 0
		for range 100 {
			next, ok := turns.begin(refNamed("changes"), row.taken)
			for turns.end(refNamed("changes"), 60*time.Millisecond); ok; had++ {
				turn := next
				next, ok = turns.begin(turn, row.taken)
				turns.end(turn, row.one)
			}
		}
		if had < row.least || had > row.most {
			t.Errorf("%s: %d had a turn, want %d to %d", row.reason, had, row.least, row.most)
		}
		if len(turns.underWay) > 0 {
			t.Errorf("%s: %d turns have not ended", row.reason, len(turns.underWay))
		}
	}
}

// TestReconciledOnce: what was queued once is handed to a worker once, however its turn and the queue meet.
func TestReconciledOnce(t *testing.T) {
	t.Parallel()
	const upstreams, workers = 20_000, 10
	s := &session{queue: priorityqueue.New[operator.Ref]("")}
	slots, began, handed := make(chan struct{}, workers), map[operator.Ref]int{}, 0
	var working sync.WaitGroup
	go func() {
		for i := range upstreams {
			s.Add(informers.PriorityReaders, 0, refNamed(fmt.Sprint(i)))
		}
	}()
	for len(began) < upstreams || s.queue.Len() > 0 {
		slots <- struct{}{}
		ref, _ := s.next()
		began[ref]++
		handed++
		working.Go(func() {
			defer func() { <-slots }()
			runtime.Gosched()
			s.queue.Done(ref)
		})
	}
	working.Wait()
	s.queue.ShutDown()
	if handed != upstreams {
		t.Errorf("%d upstreams were handed to a worker %d times", upstreams, handed)
	}
}

// A mistake of this program in one reconciliation ends that look and nothing else.
func TestPanicIsSurvived(t *testing.T) {
	s := &session{operator: &runner{name: t.Name(), log: logr.Discard()}, reconciler: &reconcile.Reconciler{}} // without a pipeline every reconciliation fails
	if after := s.reconcileRecovering(t.Context(), operator.Ref{Name: "a"}); after != afterPanic {
		t.Errorf("it is looked at again after %s, not %s", after, afterPanic)
	}
}

// TestQueueLengths: the metric is current, and only of queues that are worked on.
func TestQueueLengths(t *testing.T) {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "length"}, []string{"operator"})
	q := &polledGauge{GaugeVec: vec, of: map[string]func(set func(n int, labels ...string)){}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(q)
	expect := func(want float64, reported bool, reason string) {
		t.Helper()
		n, found := 0.0, false
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				n, found = n+m.GetGauge().GetValue(), true
			}
		}
		if n != want || found != reported {
			t.Errorf("it is %v, reported: %t, want %v, %t: %s", n, found, want, reported, reason)
		}
	}
	waiting := 3
	end := q.begin("a", func(set func(int, ...string)) { set(waiting) })
	expect(3, true, "as many wait")
	waiting = 1
	expect(1, true, "it is not the previous value")
	end()
	expect(0, false, "the queue has ended")
	q.begin("a", func(set func(int, ...string)) { set(7) })
	expect(7, true, "of the queue that came after")
}

// held are shards that a process holds.
type held struct {
	shards.Owned
	has map[int]bool
}

func (held) Ring() shards.Ring        { return shards.Ring{N: 2} }
func (held) Subscribe(shards.Handler) {}
func (h held) Has(shard int) bool     { return h.has[shard] }

// TestShardIsInOneSet: a shard that is lost and gained again while others are gathered with it is loaded once.
func TestShardIsInOneSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		owned := held{has: map[int]bool{0: true, 1: true}}
		e := &Engine{}
		e.options.Shards = owned
		l := newShardLoader(e)
		first := l.gather(0)
		l.gather(1)
		l.Lost(0)
		<-first.opened // it is held again, and its gathering is about to begin
		second := l.gather(0)
		<-second.opened
		if of := slices.Concat(first.set.Shards(), second.set.Shards()); !slices.Equal(of, []int{1, 0}) {
			t.Errorf("the sets have %v, %v", first.set.Shards(), second.set.Shards())
		}
	})
}

// TestShardsAreHeldOnceTheyAreCounted: guard learns of the upstreams of a shard before it takes the shard for one of this process: else it
// would add up what the others count without them, and let go what it holds.
func TestShardsAreHeldOnceTheyAreCounted(t *testing.T) {
	t.Parallel()
	s := &sessionShards{
		loaded:     func(*informers.ShardSet) bool { return true },
		candidates: func(*informers.ShardSet) []operator.Ref { return []operator.Ref{{Name: "a"}, {Name: "b"}} },
		acts:       func() bool { return false },
		ready:      map[int]bool{},
	}
	s.loading = []*informers.ShardSet{informers.NewShardSet(shards.Ring{N: 2}, 1)}
	var joined []operator.Ref
	s.takeLoaded(func(refs []operator.Ref) {
		if joined = refs; s.ready[1] {
			t.Error("the shard is held before its upstreams are known")
		}
	})
	if len(joined) != 2 || !s.ready[1] {
		t.Errorf("%v are joined, the shard is held: %t", joined, s.ready[1])
	}
}

// If each write changes what is desired of its row, the time to the next one grows; if only the state changes, it does not.
func TestWriteBackSpacing(t *testing.T) {
	for _, c := range []struct {
		reason  string
		changes bool
		want    time.Duration
	}{
		{"the state changes", false, minSpacing},
		{"what is desired changes", true, maxSpacing},
	} {
		w := &writeBack{session: &session{operator: &runner{name: "spacing"}, generation: &generation{}}, states: map[operator.Ref]*rowState{}}
		ref := operator.Ref{Name: "1"}
		var desired drift.Sum
		for i := range byte(10) {
			if c.changes {
				desired[0] = i
			}
			state := report.RowState{Message: string('a' + rune(i))}
			w.Report(ref, 1, state, desired)
			w.noteWritten(ref, w.states[ref], state, desired)
		}
		if got := w.states[ref].spacing; got != c.want {
			t.Errorf("%s: %s", c.reason, got)
		}
	}
	forgetOperator("spacing")
}

// A reload loads the config anew: only what it says counts, not where it is in memory.
func TestWriteBackIdentity(t *testing.T) {
	of := func(secret string) string {
		server := &config.DatabaseServer{DSNFrom: config.DSNFrom{Secret: &config.SecretKey{Namespace: "a", Name: secret, Key: "url"}}}
		return identityOf(&config.Source{Rows: config.Rows{MySQL: server}, WriteBack: "UPDATE apps SET state = $state WHERE id = $id"})
	}
	if first, again := of("x"), of("x"); first != again || first == of("y") {
		t.Error("it does not depend on the Secret, or on more")
	}
}
