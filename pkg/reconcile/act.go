package reconcile

import (
	"context"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
)

// act carries out a decision: first the finalizer, then each downstream, then what is left over. It reports whether anything
// was done, so that deciding again may bring something new. A downstream that failed is not tried again in this reconciliation.
func (r *reconciliation) act(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	if r.Pipeline.Observing() {
		return r.observe(ctx, d, in)
	}
	acted := d.Finalizer == operator.FinalizerAdd || d.Finalizer == operator.FinalizerSwap
	if acted && !r.writeFinalizer(ctx, d.Finalizer) {
		return false
	}
	for _, o := range d.Outcomes {
		if o.Action != operator.ActionNone && r.failures[o.Object] == nil && r.hasTime() {
			acted = r.carryOut(ctx, o, in) || acted
		}
	}
	acted = r.removeLeftovers(ctx, d, in) || acted
	if d.Finalizer == operator.FinalizerRemove && len(r.failures) == 0 && !r.HasFailed && !r.outOfTime {
		acted = r.removeUnneededFinalizer(ctx, in) || acted
	}
	return acted
}

// removeLeftovers deletes or releases objects at no target. One of several objects that cannot be removed, or created, does not keep the
// others from being removed.
func (r *reconciliation) removeLeftovers(ctx context.Context, d *operator.Decision, in operator.Input) (acted bool) {
	for _, o := range d.Leftovers {
		f := r.failures[o.Object]
		if f != nil && r.Pipeline.Downstreams[o.Downstream].Several() && (!f.OfRemoval || !r.backingOff[o.Object]) && !r.unremoved[o.UID] {
			f = nil
		}
		if o.Action == operator.ActionNone || f != nil || !r.hasTime() {
			continue
		}
		removed := r.carryOut(ctx, o, in)
		if acted = removed || acted; !removed {
			r.failures[o.Object].OfRemoval, r.unremoved[o.UID] = true, true
		}
	}
	return acted
}

// hasTime reports whether an action may begin. One begins in each reconcile, whatever the time.
func (r *reconciliation) hasTime() bool {
	r.outOfTime = r.outOfTime || r.acts > 0 && !r.actUntil.IsZero() && time.Now().After(r.actUntil)
	return !r.outOfTime
}

// carryOut makes the requests for one outcome. It returns false if they failed.
func (r *reconciliation) carryOut(ctx context.Context, o operator.Outcome, in operator.Input) bool {
	r.acts++
	counters.Outcome(r.Name, r.Pipeline.Downstreams[o.Downstream].Name, string(o.State))
	r.Log.V(1).Info("acting", "upstream", r.Ref.String(), "downstream", r.Pipeline.Downstreams[o.Downstream].Name,
		"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
	err := r.actor(in).Do(ctx, &o)
	if err == nil {
		return true
	}
	r.fail(o, err)
	r.saveRefused(ctx, o, in)
	return false
}

// fail records a failed action. It is retried later; it undoes nothing.
func (r *reconciliation) fail(o operator.Outcome, err error) {
	r.failWith(o, act.Classify(err, r.Pipeline.Downstreams[o.Downstream].Words))
}

// actor carries out what was decided from in.
func (r *reconciliation) actor(in operator.Input) *act.Actor {
	return &act.Actor{Reporter: r.reporter(), Client: r.API, In: in, Memory: r.Memory, Removals: &r.memory.Removals, Now: r.Began, Spacing: r.spacing(),
		Document: func(k int, live *drift.Live) (map[string]any, error) { return r.document(in.Desired, k, live) },
		Cascade:  r.Cascade(), Propagation: r.propagation(), IsSharded: r.Shards != nil, LacksShard: r.lacksShard}
}

// document is the whole document to send for downstream i; live is nil at creation.
func (r *reconciliation) document(w *operator.Desired, k int, live *drift.Live) (map[string]any, error) {
	document, err := r.Pipeline.Document(w, k, r.Upstream, r.InputsRead(), live)
	if err == nil {
		document = r.completed(k, document)
	}
	return document, err
}

// completed is a document with what only the process that sends it knows.
func (r *reconciliation) completed(k int, document map[string]any) map[string]any {
	document = r.withShard(marks.WithToken(r.Pipeline.Settings, document, r.token()))
	r.notifyObserver(func(to Observer) { to.Rendered(k, document) })
	return document
}
