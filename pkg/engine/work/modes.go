// Package work has what the workers of a session share: their mode, the pool, and the order in which upstreams have
// their turn.
package work

import (
	"fmt"
	"sync/atomic"
)

// Mode is what the workers of a session do with an upstream. While they are acting they write; while they are counting
// they finalize what is being deleted, if nobody else works; else they write nothing.
type Mode int32

// The modes.
const (
	Paused   Mode = iota // nothing: no reconcile is under way, so what reconciles share may be changed
	Counting             // guard counts what would change
	Standby              // another process, or another cluster, acts: who leaves is followed, and some decisions are made
	Acting               // decisions are carried out
	Draining             // what has begun is finished
)

func (m Mode) String() string {
	return [...]string{"paused", "counting", "standby", "acting", "draining"}[m]
}

// Event is why a session passes from one mode to the next.
type Event int

// The events.
const (
	GuardCounts Event = iota // what would change is to be counted first
	MayNotAct                // another one acts
	MayAct                   // guard has passed, and this process and cluster may act
	Interrupted              // guard has counted, this one may act now, or it may no longer
	Stopped                  // the config, the kind or the process goes
)

// next is the mode after an event. ok is false if the event cannot be in this mode: what was counted, or skipped by a
// standby, is never acted on without a moment in which no worker is at work.
func (m Mode) next(e Event) (next Mode, ok bool) {
	switch {
	case e == Stopped:
		return Draining, true
	case m == Draining:
		return m, false
	case e == Interrupted:
		return Paused, true
	case m != Paused:
		return m, false
	}
	return map[Event]Mode{GuardCounts: Counting, MayNotAct: Standby, MayAct: Acting}[e], true
}

// Modes are the mode of a session and what it was before. Only the session changes it; workers, who have a slot then,
// read it.
type Modes struct {
	now    atomic.Int32
	before Mode
	// slots has one slot for each worker, who takes it for each reconcile. While they are paused, the session has all of
	// them.
	slots chan struct{}
}

func newModes(workers int) *Modes {
	m := &Modes{slots: make(chan struct{}, workers)}
	m.takeSlots()
	return m
}

// Is reports whether a mode is the current one.
func (m *Modes) Is(mode Mode) bool { return m.Now() == mode }

// Now is the current mode.
func (m *Modes) Now() Mode { return Mode(m.now.Load()) }

// Before is the last mode in which the workers worked; Paused if they never have.
func (m *Modes) Before() Mode { return m.before }

// Pass passes to the next mode. Before it begins, prepare is called, while no worker is at work; nil for nothing.
func (m *Modes) Pass(e Event, prepare func()) {
	from := m.Now()
	to, ok := from.next(e)
	if !ok {
		panic(fmt.Sprintf("a session that is %v cannot pass to another mode by event %d", from, e))
	}
	switch {
	case to == Draining:
	case from != Paused:
		m.before = from
		m.takeSlots()
	case prepare != nil:
		prepare()
	}
	m.now.Store(int32(to))
	if from == Paused && to != Paused {
		m.releaseSlots()
	}
}

func (m *Modes) takeSlots() {
	for range cap(m.slots) {
		m.slots <- struct{}{}
	}
}

func (m *Modes) releaseSlots() {
	for range cap(m.slots) {
		<-m.slots
	}
}
