package engine

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

func refNamed(name string) pipeline.Ref { return pipeline.Ref{Name: name} }

// TestTurns: while upstreams change faster than they are reconciled, what waits at a low priority has its turns, in its order, once.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		// changing reconciles upstreams that change, and returns those that had a turn.
		changing := func(reconciles int) (had []string) {
			for range reconciles {
				if next, ok := turns.begin(refNamed("changes")); ok {
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
		turns.add(informers.PriorityNow, 0, []pipeline.Ref{refNamed("now")})
		expect("the queue comes to it by itself", changing(100))

		turns.add(informers.PriorityBulk, 0, []pipeline.Ref{refNamed("a"), refNamed("b"), refNamed("c")})
		turns.add(informers.PriorityReaders, 0, []pipeline.Ref{refNamed("a"), refNamed("d")})
		turns.begin(refNamed("b"))
		expect("in the order of their arrival, without what was reconciled", changing(5*turnEvery), "a", "c", "d")

		turns.add(informers.PriorityAgain, time.Minute, []pipeline.Ref{refNamed("late")})
		turns.add(informers.PriorityAgain, time.Second, []pipeline.Ref{refNamed("soon")})
		turns.add(informers.PriorityBulk, 0, []pipeline.Ref{refNamed("bulk")})
		expect("those with a delay wait for it", changing(5*turnEvery), "bulk")
		<-time.After(2 * time.Second)
		expect("its time has come", changing(5*turnEvery), "soon")
		turns.add(informers.PriorityAgain, time.Second, []pipeline.Ref{refNamed("late")})
		<-time.After(2 * time.Second)
		expect("the earlier of two times", changing(5*turnEvery), "late")
		<-time.After(2 * time.Minute)
		expect("it had its turn", changing(5*turnEvery))

		for i := range 1000 {
			turns.add(informers.PriorityAgain, time.Second, []pipeline.Ref{refNamed(fmt.Sprint(i % 10))})
			turns.begin(refNamed(fmt.Sprint(i % 10)))
			<-time.After(time.Second)
		}
		if n := len(turns.later) + len(turns.due) + len(turns.waiting); n > 2*turnEvery {
			t.Errorf("it keeps %d entries of what was reconciled", n)
		}
	})
}
