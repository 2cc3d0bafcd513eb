package clusters

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// Timeline collects what happened in a run.
type Timeline struct {
	mu     sync.Mutex
	events []Event
	active map[string]string // the token of each cluster that says it is active, "" for none
	acting map[string]bool   // clusters that say they are active
	waits  map[string]wait   // for which holder each cluster says it waits
	ready  map[string]bool   // clusters whose process says that it is a standby or acts
	text   []string
}

// Event is one moment of a run: a cluster became active or a standby, or a fault began or ended.
type Event struct {
	At      time.Time
	Cluster string
	Kind    string
	Text    string
}

// The kinds of events.
const (
	EventActive  = "active"
	EventStandby = "standby"
	EventEnded   = "ended"
	EventFault   = "fault"
	EventHealed  = "healed"
)

// Line takes in a line of a cluster's log.
func (l *Timeline) Line(cluster, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, time.Now().Format("15:04:05.000")+" "+cluster+" "+line)
	if l.active == nil {
		l.waits = map[string]wait{}
		l.active, l.acting, l.ready = map[string]string{}, map[string]bool{}, map[string]bool{}
	}
	var entry struct{ Msg, Token, Holder string }
	_ = json.Unmarshal([]byte(line), &entry) // a line that is not JSON says nothing here
	switch {
	case entry.Msg == "starting":
		l.events = append(l.events, Event{time.Now(), cluster, EventEnded, ""})
		l.active[cluster], l.acting[cluster], l.ready[cluster], l.waits[cluster] = "", false, false, wait{}
	case entry.Msg == "operator state changed":
		l.ready[cluster] = true
	case entry.Msg == "this cluster is active":
		l.active[cluster], l.acting[cluster], l.waits[cluster] = entry.Token, true, wait{}
		l.events = append(l.events, Event{time.Now(), cluster, EventActive, entry.Token})
	case entry.Msg == "this cluster is a standby":
		l.active[cluster], l.acting[cluster] = "", false
		l.events = append(l.events, Event{time.Now(), cluster, EventStandby, ""})
	case entry.Msg == "another cluster is active":
		l.waits[cluster] = wait{entry.Holder, time.Now()}
	case strings.HasPrefix(line, "Error: "):
		l.events = append(l.events, Event{time.Now(), cluster, EventEnded, line})
	}
}

// Active reports whether a cluster says that it is active, and with which token; "" for none.
func (l *Timeline) Active(cluster string) (token string, active bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active[cluster], l.acting[cluster]
}

// wait is for whom a cluster waits, and since when.
type wait struct {
	holder string
	since  time.Time
}

// WaitsFor is the holder of the lock for which a cluster says it waits, and since when; "" for none.
func (l *Timeline) WaitsFor(cluster string) (holder string, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waits[cluster].holder, l.waits[cluster].since
}

// Running reports whether the process of a cluster has said that its operator watches.
func (l *Timeline) Running(cluster string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready[cluster]
}

// Note adds an event.
func (l *Timeline) Note(cluster, kind, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, Event{time.Now(), cluster, kind, text})
	l.text = append(l.text, time.Now().Format("15:04:05.000")+" "+cluster+" "+kind+" "+text)
}

// Text is everything that was logged.
func (l *Timeline) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "\n")
}
