package departures

import "github.com/corollary-dev/corollary/pkg/reconcile/memory"

// handover is what a session knows about another process that was the leader before, while this one was a standby. The
// watches of upstreams may lag behind what that process acted on: downstreams would get an older desired state as long
// as they do.
type handover struct {
	// happened is true if there was such a process.
	happened bool
	// version is a resourceVersion of the upstreams later than any that the other process acted on. Empty if it could not
	// be read.
	version string
	// number counts them, from 1.
	number int
}

// Lag is what is known of how far the watches of upstreams lag.
type Lag struct {
	// lost are the watches of upstreams that were interrupted and have not resumed. What they show may be older than what
	// the watches of downstreams show already.
	lost     set[any]
	handover handover
}

// ActAfter is called if this process acts after another one. version is a resourceVersion of the upstreams later than
// any that the other one acted on; empty if it is unknown.
func (l *Lag) ActAfter(version string) {
	l.handover = handover{happened: true, version: version, number: l.handover.number + 1}
}

// MayLag reports whether an upstream of that resourceVersion may be older than what the process before acted on.
func (l *Lag) MayLag(version string) bool {
	return l.handover.happened && !memory.Newer(version, l.handover.version)
}

// Handovers is how often this process began to act after another one.
func (l *Lag) Handovers() int { return l.handover.number }

// IsInterrupted reports whether a watch of upstreams was interrupted and has not resumed.
func (l *Lag) IsInterrupted() bool { return len(l.lost.clone()) > 0 }

// NoteWatchResult records the result of a list or watch of upstreams, identified by key; err is nil for success.
func (l *Lag) NoteWatchResult(key any, err error) {
	if err != nil {
		l.lost.add(key)
	} else {
		l.lost.take(key)
	}
}
