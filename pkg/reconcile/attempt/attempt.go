package attempt

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/before"
	"github.com/corollary-dev/corollary/pkg/reconcile/departures"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
	"github.com/corollary-dev/corollary/pkg/reconcile/read"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

// MaxRounds bounds how often one reconciliation decides again after acting. It is enough for a create, the result of a
// probe, a repair and their leftovers; anything else is done at the next event.
const MaxRounds = 5

// Attempt is one attempt to bring one upstream to its desired state.
type Attempt struct {
	*before.Job
	Session
	// Failures are by the index of the desired object; backingOff marks those that failed before and still wait.
	// unremoved are objects at no target that could not be removed.
	Failures   map[int]*operator.Failure
	backingOff map[int]bool
	unremoved  map[types.UID]bool
	slot
	budget
	// PredecessorBaseline is the baseline of an object in the session that works while this one counts; nil if it has
	// none.
	PredecessorBaseline func(downstream int, uid types.UID) *canonical.Sum
	// OnResult is called with what came of each action; nil: of none.
	OnResult func(act.Result)
}

// Session is what the attempts of an operator have in common.
type Session struct {
	Slots
	Client  *apply.Client
	Kinds   read.Kinds
	Awaited *departures.Awaited
	// ShardOf is the shard of an upstream; nil if this process acts for every upstream.
	ShardOf func(upstream types.UID) int
	// Token is the fencing token of the activation, empty without one; nil: there is none.
	Token func() string
	// Mark says in which rollout an object of an upstream is applied; "" for none.
	Mark func(operator.Ref) string
	// Observer is called during an attempt; nil: none.
	Observer Observer
}

// Observer is called by a reconciler while it works, in its goroutine, with what neither the cluster nor the requests
// show.
type Observer interface {
	// Decided is called with each decision before it is carried out.
	Decided(in operator.Input, d operator.Decision)
	// Rendered is called with the document of an apply of object k of the desired state, or of pipeline.BeforeIndex.
	Rendered(k int, document map[string]any)
	// Failed is called for a failed request for object k of the desired state, or for the deletion.before object.
	Failed(k int, f operator.Failure)
	// Reported is called with the report that the status is to contain.
	Reported(wanted report.Report)
}

// Notify calls the observer, if there is one.
func (s *Session) Notify(call func(Observer)) {
	if s.Observer != nil {
		call(s.Observer)
	}
}

// New begins an attempt from what is known of an upstream. begun: it waits for a render slot, rather than to end
// without one.
func New(s Session, writes write.Session, st *observe.State, begun bool) *Attempt {
	a := &Attempt{Session: s, Failures: map[int]*operator.Failure{}, backingOff: map[int]bool{},
		unremoved: map[types.UID]bool{}, slot: slot{slots: s.Slots, begun: begun}}
	st.AcquireSlot = func() error { return a.acquire(st.Memory) }
	reader := &read.Reader{State: st, API: s.Client, Lookup: s.Kinds, Fail: a.failWith}
	reader.FailureOf = func(downstream int) *operator.Failure { return a.Failures[st.Memory.Desired().First(downstream)] }
	reader.LiveOf = func(d *operator.Downstream, obj *unstructured.Unstructured) *drift.Live {
		return a.Actor(operator.Input{}).LiveOf(d, obj)
	}
	reader.FailUpstream = func(doing string, err error) {
		a.RequestFailed(doing, err)
		a.HasFailed = true
	}
	writer := &write.Writer{Reader: reader, Session: writes,
		OnReport: func(wanted report.Report) { a.Notify(func(to Observer) { to.Reported(wanted) }) }}
	a.Job = &before.Job{Writer: writer, Report: func(ctx context.Context, d operator.Decision) {
		a.ReportDeletion(ctx, d)
	},
		Tell:      func(d operator.Decision) { a.Reporter().Deletion(a.Memory, d, a.Failures, a.ReportedState) },
		Document:  func(document map[string]any) map[string]any { return a.completed(operator.BeforeIndex, document) },
		Shard:     s.ShardOf,
		OnCreated: func(o operator.Outcome) { a.Reporter().BeforeCreated(o) },
		OnFailed: func(o operator.Outcome, f apply.Failure) {
			a.Notify(func(to Observer) {
				to.Failed(operator.BeforeIndex, operator.Failure{Reason: f.Reason, Message: f.Message})
			})
			a.Reporter().Failed(operator.BeforeName, o, f)
		}}
	return a
}

// Reporter reports what happens to the upstream.
func (r *Attempt) Reporter() events.Reporter {
	return events.Reporter{Operator: r.Operator, Settings: r.Pipeline.Settings, Ref: r.Ref, Upstream: r.Upstream}
}
