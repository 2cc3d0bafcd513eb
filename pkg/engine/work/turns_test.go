package work

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
)

func refNamed(name string) operator.Ref { return operator.Ref{Name: name} }

// TestTurns: while upstreams change faster than they are reconciled, what waits at a low priority has its turns, in its
// order, once.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		add := func(priority int, after time.Duration, names ...string) {
			var refs []operator.Ref
			for _, name := range names {
				refs = append(refs, refNamed(name))
			}
			turns.Add(priority, after, refs, func() {})
		}
		// changing reconciles upstreams that change, and returns those that had a turn.
		changing := func(reconciles int) (had []string) {
			for range reconciles {
				if next, ok := turns.Begin(refNamed("changes"), false); ok {
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
		turns.Begin(refNamed("b"), false)
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
			turns.Begin(refNamed(fmt.Sprint(i%10)), false)
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
			turns.Begin(refNamed("one"), false)
			add(informers.PriorityAgain, 2*time.Hour, "one")
		}
		if n := len(turns.order); n > 2*len(turns.waiting)+mostGone {
			t.Errorf("it keeps %d entries for %d that wait", n, len(turns.waiting))
		}
	})
}

// TestTurnsTakeTheirPartOfTheTime: what waits at a low priority has an eighth of the time, however little each
// reconcile of it takes; half of it while upstreams wait that were taken over.
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
		var turns Turns
		var refs []operator.Ref
		for i := range 2000 {
			refs = append(refs, refNamed(fmt.Sprint(i)))
		}
		turns.Add(informers.PriorityBulk, 0, refs, func() {})
		had := 0
		for range 100 {
			next, ok := turns.Begin(refNamed("changes"), row.taken)
			for turns.End(refNamed("changes"), 60*time.Millisecond); ok; had++ {
				turn := next
				next, ok = turns.Begin(turn, row.taken)
				turns.End(turn, row.one)
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
