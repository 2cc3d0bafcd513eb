package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// isGuarded reports whether guard may hold anything.
func (s *session) isGuarded() bool { return s.pipeline.Config.Guard != nil && !s.pipeline.Observing() }

// guardHost is the session as guard sees it.
func (s *session) guardHost() *guard.Host {
	h := &guard.Host{
		Name: s.operator.name, Config: s.pipeline.Config, Existing: s.cache.CountDownstreams, Confirmed: s.generation.confirmedDigest, Log: s.operator.log,
		Confirm: func() guard.Confirmation { return s.openConfirmation() },
		Warn: func(text string) {
			s.operator.event(s.generation.file.Events, true, EventGuardWaiting, "Guard", text)
		},
		Show: func(waits *guard.Count) {
			if metrics.ForgetGuard(s.operator.name); waits != nil {
				metrics.SetGuard(s.operator.name, *waits)
			}
		},
	}
	if s.shards != nil && s.engine.options.Board != nil {
		h.Processes = &guard.Processes{Board: s.engine.options.Board(s.operator.name), Owned: s.engine.options.Shards, Config: s.generation.digest, Held: s.shards.Held, UID: s.uidOf}
	}
	return h
}

// countUpstream counts one upstream, while the session counts instead of acting.
func (s *session) countUpstream(ctx context.Context, ref operator.Ref) (after time.Duration) {
	var c guard.Counted
	failed, uid := false, s.cache.UpstreamUID(ref)
	defer func() {
		tally := s.tally.Load()
		if !failed { // also after a panic: what cannot be counted is not acted on either
			tally.Note(ref, c)
		}
		if !s.shards.MayEnter(uid) { // its shard may have been dropped before that
			tally.Note(ref, guard.Counted{})
		}
	}()
	c, after, failed = s.reconciler.Count(ctx, ref, s.cleansUp())
	return after
}

// passGuard counts what the config would change, and waits while that is more than guard allows, unless it is confirmed.
// Nothing is written meanwhile, except that upstreams which are being deleted are finalized if no other session does. Once it
// has passed, nothing is reconciled until work begins. It returns false when live is done.
func (s *session) passGuard(live context.Context) bool {
	if !s.isGuarded() {
		return true
	}
	s.batch.Open(s.pipeline.HasRows()) // changes from now on may come too late to be counted below
	host := s.guardHost()
	if op := s.pipeline.Config; host.Processes == nil && op.Guard.MaxChanged == "" && s.operator.activeReconciler(s) == nil &&
		guard.NeverHolds(op, s.cache.CountDownstreams()) {
		return true
	}
	s.beginCounting()
	s.startWorkers(live)
	tally := s.tally.Load()
	w := guard.NewStart(host, tally)
	for cleans := false; ; {
		if now := s.cleansUp(); now != cleans { // those that are being deleted were passed over so far
			cleans = now
			s.Add(informers.PriorityBulk, 0, s.cache.Upstreams()...)
		}
		if refs, _ := s.shards.TakeLoaded(tally.Expect); len(refs) > 0 { // shards that were gained meanwhile
			s.Add(informers.PriorityBulk, 0, refs...)
		}
		found, text := w.Look(live)
		if found == guard.Passed {
			break
		}
		s.setReason(map[guard.State]state.Reason{guard.Counting: state.ReasonSyncing, guard.Missing: state.ReasonStandby, guard.Waiting: state.ReasonGuardWaiting}[found], text)
		if work.Pause(live, syncPoll); live.Err() != nil {
			w.End(live, false)
			return false
		}
	}
	if confirmed := w.End(live, true); confirmed != nil {
		s.batch.NoteConfirmed(confirmed)
	}
	s.pool.Pass(work.Interrupted, nil)
	return true
}

// CountedByGuard implements reconcile.Host.
func (s *session) CountedByGuard(ref operator.Ref) bool { return s.batch.Has(ref) }

// GuardWaits implements reconcile.Host.
func (s *session) GuardWaits() bool { return s.generation.holds() }

// MayProceed implements reconcile.Host.
func (s *session) MayProceed(ref operator.Ref, c guard.Counted, free bool) bool {
	if s.pipeline.HasRows() && s.cache.UpstreamUID(ref) == "" {
		return s.batch.NoteGone(ref, c)
	}
	return s.batch.Note(ref, c, free)
}

// watchBatches lets upstreams that guard holds go on once they are counted and allowed, or confirmed, until live is done. Those that are
// held say so in their status.
func (s *session) watchBatches(live context.Context) {
	s.batch.Serve(live, s.guardHost(), func(text string) {
		if s.generation.setHeld(text) {
			s.Add(informers.PriorityBulk, 0, s.batch.Held()...)
		}
	}, func(refs []operator.Ref) { s.Add(informers.PriorityReaders, 0, refs...) })
}

// publishPassed publishes that nothing waits in the shards of this process. It returns false if it has to be tried again.
func (s *session) publishPassed(ctx context.Context) (published bool) {
	p := s.guardHost().Processes
	if p == nil || !s.isGuarded() {
		return true
	}
	err := p.PublishPassed(ctx, s.cache.CountDownstreams())
	if err != nil && ctx.Err() == nil {
		s.operator.log.Info("cannot publish that nothing waits for guard, will retry: until then, a process that starts waits for it", "lease", p.Board.Name, "error", err.Error())
	}
	return err == nil
}

// uidOf is the uid of an upstream; empty if the cache does not show it. A row that is gone still has one.
func (s *session) uidOf(ref operator.Ref) types.UID {
	if uid := s.cache.UpstreamUID(ref); uid != "" || !s.pipeline.HasRows() {
		return uid
	}
	return s.pipeline.Row(ref.Name, nil).GetUID()
}

// dropLost removes what is counted of upstreams that are no longer those of this process: another one counts them.
func (s *session) dropLost() {
	lost := func(ref operator.Ref) bool {
		uid := s.uidOf(ref)
		return uid == "" || !s.engine.options.Shards.Has(s.shards.Of(uid))
	}
	s.batch.Drop(lost)
	s.tally.Load().Drop(lost)
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
	if !s.isActive() {
		return false
	}
	s.operator.mu.Lock()
	defer s.operator.mu.Unlock()
	return s.operator.current == s.generation
}
