package work

import (
	"sync/atomic"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

// Every pair of a mode and an event has the next mode that is given here, or none.
func TestModes(t *testing.T) {
	t.Parallel()
	const none = Mode(-1)
	for from, want := range map[Mode][]Mode{ // after GuardCounts, MayNotAct, MayAct, Interrupted, Stopped
		Paused:   {Counting, Standby, Acting, Paused, Draining},
		Counting: {none, none, none, Paused, Draining},
		Standby:  {none, none, none, Paused, Draining},
		Acting:   {none, none, none, Paused, Draining},
		Draining: {none, none, none, none, Draining},
	} {
		for e := GuardCounts; e <= Stopped; e++ {
			next, ok := from.next(e)
			if !ok {
				next = none
			}
			must.Same(t, want[e], next, from, "event", e)
		}
	}
}

// While a session is Paused, and while the next mode is prepared, no worker has a slot; in every other mode, each finds
// one.
func TestModesKeepWorkersOut(t *testing.T) {
	t.Parallel()
	m := newModes(3)
	atWork := atomic.Int32{}
	work := func(during Mode) <-chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			m.slots <- struct{}{}
			atWork.Add(1)
			if !m.Is(during) {
				t.Errorf("a worker works while the session is %v, want %v", m.Now(), during)
			}
			atWork.Add(-1)
			<-m.slots
		}()
		return done
	}
	for e, to := range []Mode{Counting, Standby, Acting} {
		waits := work(to)
		m.Pass(Event(e), func() {
			if n := atWork.Load(); n > 0 || !m.Is(Paused) {
				t.Errorf("%d workers are at work while the session is %v", n, m.Now())
			}
		})
		<-waits
		<-work(to)
		m.Pass(Interrupted, nil)
		must.Same(t, to, m.before, "the session")
	}
	waits := work(Draining)
	m.Pass(Stopped, nil)
	<-waits
}
