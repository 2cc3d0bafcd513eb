package engine

import (
	"sync/atomic"
	"testing"
)

// Every pair of a mode and an event has the next mode that is given here, or none.
func TestModes(t *testing.T) {
	t.Parallel()
	const none = mode(-1)
	for from, want := range map[mode][]mode{ // after guardCounts, mayNotAct, mayAct, interrupted, stopped
		paused:   {counting, standby, acting, paused, draining},
		counting: {none, none, none, paused, draining},
		standby:  {none, none, none, paused, draining},
		acting:   {none, none, none, paused, draining},
		draining: {none, none, none, none, draining},
	} {
		for e := guardCounts; e <= stopped; e++ {
			next, ok := from.next(e)
			if !ok {
				next = none
			}
			if next != want[e] {
				t.Errorf("%v, event %d: %d, want %d", from, e, next, want[e])
			}
		}
	}
}

// While a session is paused, and while the next mode is prepared, no worker has a slot; in every other mode, each finds one.
func TestModesKeepWorkersOut(t *testing.T) {
	t.Parallel()
	m := newModes(3)
	atWork := atomic.Int32{}
	work := func(during mode) <-chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			m.slots <- struct{}{}
			atWork.Add(1)
			if !m.is(during) {
				t.Errorf("a worker works while the session is %v, want %v", m.mode(), during)
			}
			atWork.Add(-1)
			<-m.slots
		}()
		return done
	}
	for e, to := range []mode{counting, standby, acting} {
		waits := work(to)
		m.pass(modeEvent(e), func() {
			if n := atWork.Load(); n > 0 || !m.is(paused) {
				t.Errorf("%d workers are at work while the session is %v", n, m.mode())
			}
		})
		<-waits
		<-work(to)
		m.pass(interrupted, nil)
		if m.before != to {
			t.Errorf("the session was %v, want %v", m.before, to)
		}
	}
	waits := work(draining)
	m.pass(stopped, nil)
	<-waits
}
