package engine

import (
	"context"
	"slices"
	"time"

	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// startWorkers has the queue worked off, from now on. That ends with live, after the reconciles that have begun: they
// are not cut off, so that what was applied is also recorded.
func (s *session) startWorkers(live context.Context) {
	s.pool.Start(s.next, func(ref operator.Ref) { s.runWorker(live, ref) })
}

// runWorker reconciles one upstream once the workers are not paused.
func (s *session) runWorker(live context.Context, ref operator.Ref) {
	if s.pool.Is(work.Acting) {
		s.engine.options.MayWrite(live)
	}
	defer s.pool.Enter()()
	begun := time.Now()
	defer func() { s.turns.End(ref, time.Since(begun)) }()
	defer s.queue.Done(ref)
	if live.Err() != nil {
		return
	}
	defer s.shards.Reconciled(ref)
	if !s.shards.MayEnter(s.cache.UpstreamUID(ref)) {
		s.gate.PassOver(ref, s.pool.Is(work.Counting))
		return
	}
	leave, ok := s.Enter(ref)
	if !ok {
		reconcile.Yield(s.reconciler, ref)
		return
	}
	defer leave()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(live), s.engine.options.DrainTimeout)
	defer cancel()
	start := time.Now()
	after := s.reconcileRecovering(ctx, ref)
	metrics.ObserveReconcile(s.operator.name, time.Since(start))
	if after > 0 {
		s.Add(informers.PriorityAgain, after, ref)
	}
}

// stopWorkers waits until the workers have ended. The session's context is done.
func (s *session) stopWorkers() {
	s.shutDown()
	s.pool.Stop()
}

// beginCounting makes the workers count, from the start.
func (s *session) beginCounting() {
	var refs []operator.Ref
	s.pool.Pass(work.GuardCounts, func() {
		s.shards.TakeLoaded(nil)
		refs = s.cache.Candidates(s.reconciler)
		s.reconciler.UseBaselinesOf(s.operator.activeReconciler(s))
		s.gate.BeginCounting(refs)
		s.Rollout().Begin()
	})
	s.Add(informers.PriorityBulk, 0, refs...)
}

// beginStandingBy makes the workers drop what needs no reconcile any more: the queue would only grow.
func (s *session) beginStandingBy(live context.Context) {
	s.pool.Pass(work.MayNotAct, nil)
	s.startWorkers(live)
}

// startWith are the upstreams that a start reconciles: those in sync when they were counted are only counted in the
// metrics. The batch releases an upstream that waits in it when that is reconciled.
func (s *session) startWith(counted bool) []operator.Ref {
	refs := s.cache.Candidates(s.reconciler)
	if !counted {
		return refs
	}
	return slices.DeleteFunc(refs, func(ref operator.Ref) bool {
		uid := s.cache.UpstreamUID(ref) // "" if the watch does not show it
		inSync := !s.gate.CountedByGuard(ref) && uid != "" && s.reconciler.IsInSync(ref, uid)
		if inSync {
			s.reconciler.CountInSync(ref)
		}
		return inSync
	})
}

// beginActing makes the workers act, also on all that was only counted or skipped.
func (s *session) beginActing() {
	s.pool.Pass(work.MayAct, func() {
		loaded, _ := s.shards.TakeLoaded(s.gate.Join) // guard has counted none of them
		if before := s.pool.Before(); before == work.Counting || before == work.Standby {
			s.Add(informers.PriorityBulk, 0, s.startWith(before == work.Counting)...)
		} else {
			// No first list shows those that leave, and those of shards were passed over while these were loaded.
			s.Add(informers.PriorityBulk, 0, append(s.reconciler.Deselected.Refs(), loaded...)...)
		}
		s.gate.EndCounting()
		s.reconciler.UseBaselinesOf(nil)
	})
}
