package reconcile

import (
	"time"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/departures"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
	"github.com/corollary-dev/corollary/pkg/reconcile/read"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

// Reconciler brings the downstreams of one operator to their desired state, one upstream at a time: from what a Cache shows, by
// the requests of a client. What it remembers saves requests, and is not needed for correctness.
type Reconciler struct {
	events.Operator
	Pipeline *compile.Pipeline
	Client   *apply.Client
	Cache    observe.Cache
	Kinds    read.Kinds
	Host     Host
	Listeners
	// Shards are those for which this process acts; nil: it acts for every upstream.
	Shards Shards
	// Token is the fencing token of the activation, empty without one; nil: there is none.
	Token func() string
	// Now is the clock of decisions, retries and transitions; nil: time.Now.
	Now func() time.Time
	// Counting reports whether changes are counted in the place of acting; nil: they are not.
	Counting func() bool
	attempt.Slots
	Selection

	memory      memory.Upstreams
	readers     observe.Readers
	unstorable  write.Unstorable
	predecessor predecessor // while it counts
	leaving
	departures.Lag
	others
}

func (r *Reconciler) isCounting() bool { return r.Counting != nil && r.Counting() }

func (r *Reconciler) time() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

func (r *Reconciler) token() string {
	if r.Token == nil {
		return ""
	}
	return r.Token()
}

// Host is what a reconciler needs from its caller.
type Host interface {
	// Enqueue has an upstream reconciled again.
	Enqueue(ref operator.Ref)
	// RecheckKinds says that a kind may have changed or gone.
	RecheckKinds()
	// CountedByGuard reports whether guard counts an upstream before it is reconciled.
	CountedByGuard(ref operator.Ref) bool
	// MayProceed records what was counted of an upstream, and reports whether it may be reconciled now: if it is free, whatever
	// happens to the others, or if that very change was confirmed.
	MayProceed(ref operator.Ref, c guard.Counted, free bool) bool
	// GuardWaits reports whether what guard holds is counted and waits for a confirmation.
	GuardWaits() bool
	// ReportShared reports that another process uses the same conventions, with an upstream of that process.
	ReportShared(note, upstream string)
}

// tally counts upstreams and objects in the metrics.
func (r *Reconciler) tally() memory.Tally {
	return memory.Tally{Operator: r.Name, Settings: r.Pipeline.Settings, HasCounted: &r.memory.HasCounted}
}

// ForgetObjects drops the counts of a session that has ended.
func (r *Reconciler) ForgetObjects() {
	if r.memory.HasCounted.Load() { // else those of its successor may be there
		counters.DropStates(r.Name)
	}
}

// NotReady counts the upstreams that are not Ready, by reason, and all of them.
func (r *Reconciler) NotReady() (reasons map[string]int, all int) { return r.memory.NotReady() }
