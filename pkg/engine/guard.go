package engine

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// passGuard counts what the config would change, and waits while that is more than guard allows, unless it is
// confirmed. Nothing is written meanwhile, except that upstreams which are being deleted are finalized if no other
// session does. Once it has passed, nothing is reconciled until work begins. It returns false when live is done.
func (s *session) passGuard(live context.Context) bool {
	holds := s.gate.IsGuarded() && s.gate.Open(s.operator.activeReconciler(s) == nil)
	if !holds && s.Rollout() == nil {
		return true
	}
	s.beginCounting()
	s.startWorkers(live)
	passed := s.gate.Pass(live, s.cleansUp, s.addAll, func(why guard.State, text string) {
		s.setReason(map[guard.State]state.Reason{guard.Counting: state.ReasonSyncing, guard.Missing: state.ReasonStandby,
			guard.Waiting: state.ReasonGuardWaiting}[why], text)
	})
	if passed {
		s.pool.Pass(work.Interrupted, nil)
		s.Rollout().Open(s.operator.activeReconciler(s) != nil && s.engine.electedAlready())
	}
	return passed
}

// CountedByGuard implements reconcile.Host.
func (s *session) CountedByGuard(ref operator.Ref) bool { return s.gate.CountedByGuard(ref) }

// GuardWaits implements reconcile.Host.
func (s *session) GuardWaits() bool { return s.generation.holds() }

// DeletesLater implements reconcile.Host. Another config of this process may have changed the upstream for a config
// that is about to take over, so that the old one cannot know what is wanted. If something keeps the new one from
// running, only an upstream that is not selected, or is applied by another operator of this process, waits for that;
// and each, if the new one is for a changed definition: then both see what the API server has dropped.
func (s *session) DeletesLater(ref operator.Ref, selected bool) time.Duration {
	const soonAgain = time.Second
	switch leaving, soon := s.operator.isLeaving(s.generation); {
	case soon:
		return soonAgain
	case leaving && (!selected || isMadeHere(s, ref) || s.operator.renewing()):
		return time.Duration(s.pipeline.Config.Retry.MaxDelay) // each look reads one that is not selected
	}
	return 0
}

// Deselects implements reconcile.Host.
func (s *session) Deselects(kind schema.GroupKind, at operator.Ref, document map[string]any) (n int) {
	for _, o := range s.engine.all() {
		if other := o.activeReconciler(s); other != nil && o != s.operator {
			n += reconcile.LostByDocument(other, kind, at, document)
		}
	}
	return n
}

// isMadeHere reports whether another operator of this process applies an upstream.
func isMadeHere(s *session, ref operator.Ref) bool {
	return slices.ContainsFunc(s.engine.all(), func(o *runner) bool {
		return o != s.operator && s.cache.HasApplied(ref, o.currentFile().Conventions.FieldManager)
	})
}

// MayProceed implements reconcile.Host.
func (s *session) MayProceed(ref operator.Ref, c guard.Counted, free bool) bool {
	return s.gate.MayProceed(ref, c, free)
}

// watchGate lets upstreams go on that guard has held, until live is done. Those that are held say so in their status.
func (s *session) watchGate(live context.Context) {
	s.gate.Serve(live, func(why string, held func() []operator.Ref) {
		if s.generation.setHeld(why) {
			s.addAll(held())
		}
	}, func(refs []operator.Ref) { s.Add(informers.PriorityReaders, 0, refs...) })
}

// confirmedDigest is guard.confirmed of the config; empty for none.
func (g *generation) confirmedDigest() string {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	return g.confirmedFor
}

// setConfirmed takes over guard.confirmed of a config that is otherwise equal.
func (g *generation) setConfirmed(f *load.File) { g.confirmedFor = confirmationIn(f) }

func confirmationIn(f *load.File) string {
	if f.Guard == nil {
		return ""
	}
	return f.Guard.Confirmed
}

// cleansUp reports whether this session must finalize upstreams while it counts: no other one works, here or in another
// process or cluster.
func (s *session) cleansUp() bool {
	select {
	case <-s.engine.elected:
	default:
		return false
	}
	if !s.generation.isActive() {
		return false
	}
	s.operator.mu.Lock()
	defer s.operator.mu.Unlock()
	return s.operator.current == s.generation
}

// watchRollout moves upstreams to the changed config, step by step, until acting is done.
func watchRollout(acting context.Context, s *session) {
	show := func(p rollout.Progress) {
		if s.generation.setRollout(p); p.State == "" {
			s.operator.endTrailing(s.generation)
		}
	}
	s.gate.ServeRollout(acting, s.Rollout(), show, func(refs []operator.Ref) {
		s.Add(informers.PriorityReaders, 0, refs...)
	}, func(refs []operator.Ref) {
		s.operator.mu.Lock()
		defer s.operator.mu.Unlock()
		if trails := s.operator.trails; trails != nil {
			trails.session.Add(informers.PriorityReaders, 0, refs...)
		}
	})
}
