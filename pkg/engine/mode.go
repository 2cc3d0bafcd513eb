package engine

import (
	"fmt"
	"sync/atomic"
)

// mode is what the workers of a session do with an upstream. While they are acting they write; while they are counting they finalize
// what is being deleted, if nobody else works; else they write nothing.
type mode int32

// The modes.
const (
	paused   mode = iota // nothing: no reconcile is under way, so what reconciles share may be changed
	counting             // guard counts what would change
	standby              // another process, or another cluster, acts: who leaves is followed, and some decisions are made
	acting               // decisions are carried out
	draining             // what has begun is finished
)

func (m mode) String() string {
	return [...]string{"paused", "counting", "standby", "acting", "draining"}[m]
}

// modeEvent is why a session passes from one mode to the next.
type modeEvent int

// The events.
const (
	guardCounts modeEvent = iota // what would change is to be counted first
	mayNotAct                    // another one acts
	mayAct                       // guard has passed, and this process and cluster may act
	interrupted                  // guard has counted, this one may act now, or it may no longer
	stopped                      // the config, the kind or the process goes
)

// next is the mode after an event. ok is false if the event cannot be in this mode: what was counted, or skipped by a standby, is never
// acted on without a moment in which no worker is at work.
func (m mode) next(e modeEvent) (next mode, ok bool) {
	switch {
	case e == stopped:
		return draining, true
	case m == draining:
		return m, false
	case e == interrupted:
		return paused, true
	case m != paused:
		return m, false
	}
	return map[modeEvent]mode{guardCounts: counting, mayNotAct: standby, mayAct: acting}[e], true
}

// modes are the mode of a session and what it was before. Only the session changes it; workers, who have a slot then, read it.
type modes struct {
	now atomic.Int32
	// before is the last mode in which the workers worked; paused if they never have.
	before mode
	// slots has one slot for each worker, who takes it for each reconcile. While they are paused, the session has all of them.
	slots chan struct{}
}

func newModes(workers int) *modes {
	m := &modes{slots: make(chan struct{}, workers)}
	m.takeSlots()
	return m
}

func (m *modes) is(mode mode) bool { return m.mode() == mode }

func (m *modes) mode() mode { return mode(m.now.Load()) }

// pass passes to the next mode. Before it begins, prepare is called, while no worker is at work; nil for nothing.
func (m *modes) pass(e modeEvent, prepare func()) {
	from := m.mode()
	to, ok := from.next(e)
	if !ok {
		panic(fmt.Sprintf("a session that is %v cannot pass to another mode by event %d", from, e))
	}
	switch {
	case to == draining:
	case from != paused:
		m.before = from
		m.takeSlots()
	case prepare != nil:
		prepare()
	}
	m.now.Store(int32(to))
	if from == paused && to != paused {
		m.releaseSlots()
	}
}

func (m *modes) takeSlots() {
	for range cap(m.slots) {
		m.slots <- struct{}{}
	}
}

func (m *modes) releaseSlots() {
	for range cap(m.slots) {
		<-m.slots
	}
}
