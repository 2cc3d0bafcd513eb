package reconcile

import (
	"context"
	"time"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/reconcile/before"
)

// Reconcile reconciles one upstream: get, finalize if it is being deleted, gather, decide, act, report. It returns
// after how long to reconcile again; zero means at the next event.
func (r *Reconciler) Reconcile(ctx context.Context, ref operator.Ref) time.Duration {
	orphans := before.Orphans{Pipeline: r.Pipeline, Cache: r.Cache, Client: r.Client, Log: r.Log,
		ReadUpstream: r.ReadUpstream, EnterShard: r.enterShardOf}
	if err := orphans.Release(ctx, ref); err != nil {
		return r.readFailed(ref, err)
	}
	if after, finished := r.cleanUpLost(ctx, ref); !finished {
		return after
	}
	l, err := r.beginAny(ctx, ref)
	if err != nil {
		return r.readFailed(ref, err)
	}
	r.memory.Found(ref)
	if l == nil {
		waitsForNothing(r, ref)
		return 0
	}
	defer l.ReleaseSlot()
	if l.NoSlot {
		return attempt.NoSlotDelay()
	}
	ctx, leave, ok := l.enterShard(ctx)
	if !ok {
		waitsForNothing(r, ref)
		return 0
	}
	defer leave()
	if l.yields() {
		return 0
	}
	return l.run(ctx)
}

// run is Reconcile for an upstream for which this process acts.
func (r *reconciliation) run(ctx context.Context) time.Duration {
	defer r.StartActing(ctx)()
	if _, busy := r.Host.Rollout().IsServed(r.Ref); busy {
		return soonAgain
	}
	if r.Upstream.GetDeletionTimestamp() != nil {
		waitsForNothing(r.Reconciler, r.Ref)
		return r.finalize(ctx)
	}
	switch {
	case r.unknown:
		waitsForNothing(r.Reconciler, r.Ref) // what guard held of it is not done
		return r.saveUnknown(ctx)
	case r.Pipeline.OnlyDeletes:
		return r.awaitDeletion(ctx)
	}
	// Objects created for an upstream that is gone, and that the watch still shows, would be garbage collected and created
	// again.
	if wait := r.Memory.GoneFor(r.Upstream.GetUID(), r.Began); wait > 0 {
		return wait
	}
	r.SkipBackingOff()
	var decision operator.Decision
	for round := range attempt.MaxRounds {
		var in operator.Input
		in, decision = r.Decide(func() operator.Input { return r.GatherAll(ctx) })
		r.Notify(func(o attempt.Observer) { o.Decided(in, decision) })
		if round == 0 {
			if after := r.awaitConfig(decision); after > 0 {
				return after
			}
			if r.heldByGuard(ctx, decision) && !r.Pipeline.Paused(r.Upstream) { // which does nothing, and says so
				return r.hold(ctx)
			}
			if r.heldByRollout(decision) {
				return r.holdForRollout(ctx)
			}
		}
		if !decision.Pending() {
			break
		}
		if after, err := r.ensureLatest(ctx, &decision); err != nil {
			return r.readFailed(r.Ref, err)
		} else if after > 0 {
			return after
		}
		if !r.reportAndAct(ctx, &decision, in) {
			break
		}
	}
	return r.finish(ctx, decision)
}

// reportAndAct is CarryOut, after the status of an upstream that is not selected: nothing finds it again once its
// downstreams are gone.
func (r *reconciliation) reportAndAct(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	if !r.Selected {
		r.writeUnselected(ctx, *d)
	}
	return r.CarryOut(ctx, d, in)
}
