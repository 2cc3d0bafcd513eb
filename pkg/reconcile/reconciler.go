package reconcile

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/reconcile/departures"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
	"github.com/corollary-dev/corollary/pkg/reconcile/read"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// Reconciler brings the downstreams of one operator to their desired state, one upstream at a time: from what a Cache
// shows, by the requests of a client. What it remembers saves requests, and is not needed for correctness.
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

	known
	predecessor predecessor // while it counts
	leaving
	departures.Lag
	others
}

func (r *Reconciler) isCounting() bool { return r.Counting != nil && r.Counting() }

func (r *Reconciler) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// Host is what a reconciler needs from its caller.
type Host interface {
	// Enqueue has an upstream reconciled again.
	Enqueue(ref operator.Ref)
	// RecheckKinds says that a kind may have changed or gone.
	RecheckKinds()
	// CountedByGuard reports whether guard counts an upstream before it is reconciled.
	CountedByGuard(ref operator.Ref) bool
	// MayProceed records what was counted of an upstream, and reports whether it may be reconciled now: if it is free,
	// whatever happens to the others, or if that very change was confirmed.
	MayProceed(ref operator.Ref, c guard.Counted, free bool) bool
	// GuardWaits reports whether what guard holds is counted and waits for a confirmation.
	GuardWaits() bool
	// Rollout holds what a changed config has yet to reach; nil: nothing.
	Rollout() *rollout.Rollout
	// Trails reports whether this is the config before, which goes on with the upstreams that a changed one has yet to
	// reach, and whether it keeps those that are edited.
	Trails() (trails, keeps bool)
	// DeletesLater is after how long an upstream is looked at again before anything of it is deleted: a changed config may
	// be about to take over. Zero: there is nothing to wait for.
	DeletesLater(ref operator.Ref, selected bool) time.Duration
	// Deselects counts the objects that other operators of this process have for an upstream, and would delete if this
	// document was applied to it.
	Deselects(kind schema.GroupKind, at operator.Ref, document map[string]any) int
	// ReportShared reports that another process uses the same conventions, with an upstream of that process.
	ReportShared(note, upstream string)
}

// tally counts upstreams and objects in the metrics.
func (r *Reconciler) tally() memory.Tally {
	return memory.Tally{Operator: r.Name, Settings: r.Pipeline.Settings}
}

// ForgetObjects has what a session counted count no more, once it has ended. What others of the same operator count
// stays: a successor may have begun, and in a rollout there are two.
func (r *Reconciler) ForgetObjects() {
	for ref := range r.memory.UIDs() {
		if u := r.memory.Peek(ref); u != nil {
			r.tally().Forget(u)
		}
	}
}

// Shards are the shards for which a process acts.
type Shards interface {
	// Of is the shard of the upstream with that uid.
	Of(uid types.UID) int
	// Held are the shards for which reconciles may begin.
	Held() []int
	// Enter returns a context for the writes of one reconcile of a shard, which ends when the shard is lost. Whoever
	// drains the shard waits for leave. ok is false if no reconcile of it may begin: another process may act for it.
	Enter(ctx context.Context, shard int) (acting context.Context, leave func(), ok bool)
}

// RowStates learns the states of rows.
type RowStates interface {
	// Report is called with the state of a row after each reconciliation. desired is a digest of what is desired of it.
	Report(ref operator.Ref, key any, state report.RowState, desired canonical.Sum)
	// Forget is called once a row is gone.
	Forget(ref operator.Ref)
}

// Listeners learn what is done.
type Listeners struct {
	// Observer is called during a reconciliation; nil: none.
	Observer attempt.Observer
	// Rows learns the states of rows; nil: nobody does.
	Rows RowStates
}

// Selection is what upstreams a process selects.
type Selection struct {
	// Selector selects upstreams, NamespaceSelector their namespaces; nil if the config has none.
	Selector          labels.Selector
	NamespaceSelector labels.Selector
	ReportsLeftovers  bool // for a survey, which reports leftovers of upstreams that are not selected
}

// predecessor is the session that works while another one counts, with the downstreams that its own have become there.
type predecessor struct {
	*Reconciler
	counterparts []memory.Successor
}

// others is what is known of objects of others.
type others struct {
	awaited departures.Awaited
	shared  departures.Shared
}

// Awaiting lists the upstreams that wait for an object of others, first the one that has waited longest.
func (o *others) Awaiting(live *drift.Live) []operator.Ref {
	return o.awaited.Upstreams(operator.Ref{Namespace: live.Namespace, Name: live.Name})
}

func labelsOf(u *unstructured.Unstructured) labels.Set { return u.GetLabels() }

// UpstreamTarget is the target of requests for an upstream.
func (r *Reconciler) UpstreamTarget(ref operator.Ref) apply.Target {
	return read.UpstreamTarget(r.Pipeline.Settings, ref)
}

// ReadUpstream reads an upstream from the API server. It returns apply.ErrGone if there is none, also for a name that
// none can have: the marks of an object may name anything, and the API server's answer to such a name is not that it
// does not exist.
func (r *Reconciler) ReadUpstream(ctx context.Context, ref operator.Ref) (*unstructured.Unstructured, error) {
	if !read.CanExist(r.Pipeline.Settings, ref) {
		return nil, apply.ErrGone
	}
	return r.Client.Get(ctx, r.UpstreamTarget(ref))
}

// ReadersOf lists the upstreams that read an object of input i, whether it exists or not. states are the object before
// and after a change; of a list the upstreams are those whose list has it in one of them.
func (r *Reconciler) ReadersOf(i int, states []observe.Input) []operator.Ref {
	return r.readers.Of(r.Pipeline.Inputs[i], states)
}
