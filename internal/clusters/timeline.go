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
	active map[string]string // the token of each cluster that says it is active
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
		l.active, l.ready = map[string]string{}, map[string]bool{}
	}
	var entry struct{ Msg, Token string }
	_ = json.Unmarshal([]byte(line), &entry) // a line that is not JSON says nothing here
	switch {
	case entry.Msg == "starting":
		l.active[cluster], l.ready[cluster] = "", false
	case entry.Msg == "operator state changed":
		l.ready[cluster] = true
	case entry.Msg == "this cluster is active":
		l.active[cluster] = entry.Token
		l.events = append(l.events, Event{time.Now(), cluster, EventActive, entry.Token})
	case entry.Msg == "this cluster is a standby":
		l.active[cluster] = ""
		l.events = append(l.events, Event{time.Now(), cluster, EventStandby, ""})
	case strings.HasPrefix(line, "Error: "):
		l.events = append(l.events, Event{time.Now(), cluster, EventEnded, line})
	}
}

// Active is the token of a cluster that says it is active; "" for one that does not.
func (l *Timeline) Active(cluster string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active[cluster]
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
