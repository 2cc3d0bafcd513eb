package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/engine/gate"
	"github.com/corollary-dev/corollary/pkg/engine/kindchecks"
	"github.com/corollary-dev/corollary/pkg/engine/loading"
	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/trailing"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/engine/writeback"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/leadership"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/rollout"
	"github.com/corollary-dev/corollary/pkg/source"
)

// session runs one compiled pipeline: its watches, its queue, its reconciler and workers.
type session struct {
	*trailing.Session
	engine     *Engine
	operator   *runner
	generation *generation
	pipeline   *compile.Pipeline
	reconciler *reconcile.Reconciler
	cache      *informers.Cache
	queue      priorityqueue.PriorityQueue[operator.Ref]
	turns      work.Turns
	pool       *work.Pool
	gate       *gate.Gate
	shards     *loading.Shards         // nil without shards
	endSession context.CancelCauseFunc // ends the session, so that the operator starts over
	writeBack  *writeback.Writer       // nil if states are not written back
	ended      sync.Once
	unfiltered sync.Once // reports that the API server does not filter by shard
	kinds      *kindchecks.Checks
}

func newSession(g *generation, p *compile.Pipeline) *session {
	observe := apply.WithObserver(func(verb, resource string, code int) {
		metrics.CountRequest(g.operator.name, verb, resource, code)
	})
	s := &session{Session: trailing.New(rollout.New(p.Config.Rollout, g.digest, time.Now)), engine: g.engine,
		operator: g.operator, generation: g, pipeline: p,
		cache: informers.NewCache(p.Renderer), pool: work.NewPool(g.engine.options.Workers)}
	s.reconciler = &reconcile.Reconciler{
		Operator: events.Operator{Name: g.operator.name, Log: g.operator.log, Recorder: g.engine.recorderOf(g)}, Pipeline: p,
		Cache: s.cache, Kinds: g.engine.absences, Host: s,
		Client: apply.New(g.engine.connectionsOf(g).Objects(g.acting), p.Config.Conventions.FieldManager, observe),
		Slots: attempt.Slots{RenderSlots: g.engine.renderSlots, SlotWait: g.engine.options.DrainTimeout,
			Recreations: g.engine.recreations},
		Counting: func() bool { return s.pool.Is(work.Counting) },
	}
	s.shards = g.engine.shards.ShardsOf(loading.Session{
		Operator: g.operator.name, Loaded: s.cache.HasLoaded, Fails: s.cache.CannotLoad, Acts: func() bool {
			return s.pool.Is(work.Acting)
		},
		Candidates: func(set *informers.ShardSet) []operator.Ref { return s.cache.CandidatesIn(set, s.reconciler) },
		Open:       s.cache.OpenShards, Close: s.cache.CloseShards, End: func(why error) { s.endSession(why) },
		Forget: func(shard int) {
			s.reconciler.ForgetShard(shard)
			s.gate.DropLost()
		},
	})
	if s.shards != nil {
		s.reconciler.Shards = s.shards
	}
	s.writeBack = writeback.New(writeback.Options{
		Operator: g.operator.name, Source: p.Config.Source, Retry: p.Config.Retry,
		Objects: g.engine.connections.Objects(g.acting), Enter: func(ctx context.Context,
			ref operator.Ref) (context.Context, func(), bool) {
			return s.shards.EnterFor(ctx, p.Row(ref.Name, nil).GetUID())
		},
		Tenures: []*leadership.Tenure{g.engine.options.Tenure, g.activation}, Show: g.setWriteBackFailed, Log: g.operator.log,
	})
	if s.writeBack != nil {
		s.reconciler.Rows = s.writeBack
	}
	s.gate = gate.New(gate.Session{
		Operator: g.operator.name, Pipeline: p, Cache: s.cache, Digest: g.digest, Confirmed: g.confirmedDigest,
		Shards: s.shards, Owned: g.engine.options.Shards,
		Board: g.engine.options.Board, Informers: g.engine.informers, Identity: g.acting, Log: g.operator.log,
		Warn: func(text string) { g.operator.event(g.file.Events, true, EventGuardWaiting, "Guard", text) },
	})
	s.kinds = kindchecks.New(kindchecks.Session{
		File: g.file, Pipeline: p, Cluster: g.engine.cluster, Version: g.engine.version,
		Interval: g.engine.options.DiscoveryInterval,
		Renew: func() bool {
			return g.operator.renew(g)
		}, Renewing: g.operator.renewing, Refused: g.isRefused, End: func(why error) { s.endSession(why) },
		Log: g.operator.log,
	})
	if t := g.activation; t != nil {
		s.reconciler.Token = func() string { return t.Token().String() }
	}
	return s
}

// Enqueue implements reconcile.Host.
func (s *session) Enqueue(ref operator.Ref) { s.Add(informers.PriorityNow, 0, ref) }

// RecheckKinds implements reconcile.Host.
func (s *session) RecheckKinds() { s.kinds.Request() }

// ReportShared implements reconcile.Host.
func (s *session) ReportShared(note, upstream string) {
	s.operator.event(eventsOf(s.generation.file), true, EventSharedConventions, "Reconcile", note+" ("+upstream+")")
}

// serve watches and reconciles until ctx is done or a kind goes; then it returns the reason.
func (g *generation) serve(ctx context.Context, p *compile.Pipeline) error {
	s, before := newSession(g, p), !g.engine.electedAlready()
	last := g.setSession(s)
	if last != nil {
		s.writeBack.Inherit(last.writeBack)
	}
	s.queue = priorityqueue.New[operator.Ref](g.operator.name)
	defer s.shutDown()
	defer func() {
		if trailed, _ := s.Trails(); trailed { // the counts of the changed config stay
			reconcile.YieldAll(s.reconciler)
			return
		}
		s.reconciler.ForgetObjects()
	}()
	live, endSession := context.WithCancelCause(ctx)
	defer endSession(nil)
	s.endSession = endSession
	context.AfterFunc(live, s.shutDown)
	defer s.cache.Close()
	defer s.engine.shards.Leave(s.shards)
	defer s.stopWorkers()
	g.resetForbidden()
	s.setReason(state.ReasonSyncing, "")
	if err := s.open(endSession); err != nil {
		return err
	}
	go s.kinds.Serve(live)
	go s.kinds.Await(live)
	go s.awaitConfig(live, endSession)
	if !s.waitForSync(live) {
		return endReason(ctx, live)
	}
	noteGoneRows(s.reconciler, s.cache)
	if s.inheritLeaving(last); !s.passGuard(live) || !s.becomeCurrent(live) {
		return endReason(ctx, live)
	}
	s.reconciler.ShowShared()
	waited, elected := s.waitForElection(live)
	if !elected || waited && !s.passGuard(live) { // much may have happened since it was passed
		return endReason(ctx, live)
	}
	if before && s.engine.options.HadOtherLeader() {
		actAfterAnother(live, s.reconciler, s.cache)
	}
	s.actWhileActive(live)
	return endReason(ctx, live)
}

// open opens the watches. gone ends the session.
func (s *session) open(endSession context.CancelCauseFunc) error {
	feed := informers.Feed{
		Reconciler: s.reconciler, Queue: s, AfterDelete: s.engine.options.AfterDelete,
		OnWatchResult: func(key informers.Key, err error) { s.onWatchResult(key, err, endSession) },
	}
	if s.shards != nil {
		metrics.ExpectFiltered(s.operator.name) // 0, unless a session before has seen otherwise
	}
	return s.engine.shards.Join(s.shards, func(sets []*informers.ShardSet) error {
		return s.cache.Open(s.engine.informers, s.generation.acting, feed, sets)
	})
}

// Add implements informers.Queue.
func (s *session) Add(priority int, after time.Duration, refs ...operator.Ref) {
	s.turns.Add(priority, after, refs, func() {
		s.queue.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, refs...)
	})
}

// removeGoneRows removes what such rows have left. They count together.
func (s *session) removeGoneRows() {
	if !s.pipeline.HasRows() {
		return
	}
	goneRows, doubt := noteGoneRows(s.reconciler, s.cache)
	s.gate.JoinRows(goneRows, doubt) // before any of them is reconciled
	s.Add(informers.PriorityBulk, 0, goneRows...)
}

// addAll adds what is to be reconciled behind everything else.
func (s *session) addAll(refs []operator.Ref) { s.Add(informers.PriorityBulk, 0, refs...) }

// next waits for the next upstream to reconcile. Only one goroutine calls it: an upstream leaves the queue and the
// turns at once, or its turn would queue it again while a worker has it. What is added between the two loses its turn,
// but the reconcile that begins sees it. ok is false once the queue is shut down.
func (s *session) next() (ref operator.Ref, ok bool) {
	ref, _, shutdown := s.queue.GetWithPriority()
	if shutdown {
		return ref, false
	}
	if follows, has := s.turns.Begin(ref, s.shards.Settling()); has {
		s.Add(work.PriorityTurn, 0, follows)
	}
	return ref, true
}

// Join implements informers.Queue.
func (s *session) Join(refs []operator.Ref) { s.gate.Join(refs) }

// JoinRows implements informers.Queue.
func (s *session) JoinRows(count int, goneRows []operator.Ref, doubt source.Doubt) {
	metrics.NoteSourceRead(s.operator.name, "", time.Now(), count)
	s.gate.JoinRows(goneRows, doubt)
}

// NoteInputRows implements informers.Queue.
func (s *session) NoteInputRows(input string, count int) {
	metrics.NoteSourceRead(s.operator.name, input, time.Now(), count)
}

// afterDelete is the default of AfterDelete.
const afterDelete = 300 * time.Millisecond

// waitForElection waits, with every informer running, until this process may write. waited reports whether it had to;
// ok is false when live is done.
func (s *session) waitForElection(live context.Context) (waited, ok bool) {
	if s.engine.electedAlready() {
		return false, true
	}
	s.setReason(state.ReasonStandby, "")
	s.beginStandingBy(live)
	select {
	case <-live.Done():
		return true, false
	case <-s.engine.elected:
		s.pool.Pass(work.Interrupted, nil)
		return true, true
	}
}

// endReason is why live ended; nil if the whole process is stopping.
func endReason(ctx, live context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return context.Cause(live)
	}
}

// maxVersions bounds the values of the metric's label: no custom kind has so many versions.
const maxVersions = 10

// reconcileWhile reconciles until acting, a part of live, is done and the workers have finished what they have begun.
func (s *session) reconcileWhile(live, acting context.Context) {
	defer metrics.Queues.Begin(s.operator.name, func(set func(n int, labels ...string)) { set(s.queue.Len()) })()
	defer metrics.WrittenVersions.Begin(s.operator.name, func(set func(n int, labels ...string)) {
		for version, n := range s.cache.WrittenVersions(maxVersions) {
			set(n, version)
		}
	})()
	s.beginActing()
	s.removeGoneRows()
	s.pool.Go(func() {
		s.shards.Serve(acting, s.gate.Join, s.addAll, s.gate.PublishPassed)
	})
	if s.gate.IsGuarded() {
		s.pool.Go(func() { s.watchGate(acting) })
	}
	if s.Rollout() != nil {
		s.pool.Go(func() { watchRollout(acting, s) })
	}
	s.startWorkers(live)
	var writing sync.WaitGroup
	if s.writeBack != nil {
		writing.Go(func() { s.writeBack.Run(acting) })
	}
	s.resync(acting)
	<-acting.Done()
	writing.Wait()
	if live.Err() != nil {
		s.stopWorkers()
		return
	}
	s.pool.Pass(work.Interrupted, nil)
}

// shutDown ends the queue, which must happen only once.
func (s *session) shutDown() { s.ended.Do(s.queue.ShutDown) }

// resync reconciles every upstream again from time to time, behind everything else. It finds what no event announced,
// such as the deletion of one that is not watched because it lacks the label. It costs no request if nothing is left
// over.
func (s *session) resync(live context.Context) {
	period := time.Duration(s.pipeline.Config.ResyncPeriod)
	for period > 0 {
		work.Pause(live, period+rand.N(period/10+1))
		if live.Err() != nil {
			return
		}
		s.Add(informers.PriorityBulk, 0, s.cache.Candidates(s.reconciler)...)
		s.removeGoneRows()
	}
}

// afterPanic is how long an upstream waits after a panic.
const afterPanic = time.Minute

// reconcileRecovering reconciles and recovers from panics: one object must not stop the operator.
func (s *session) reconcileRecovering(ctx context.Context, ref operator.Ref) (after time.Duration) {
	defer func() {
		if r := recover(); r != nil {
			counters.Failure(s.operator.name, "", "Panic")
			s.operator.log.Error(fmt.Errorf("%v", r), "internal error (recovered from a panic); will retry the upstream",
				"upstream", ref.String(), "stack", string(debug.Stack()))
			after = afterPanic
		}
	}()
	switch now := s.pool.Now(); {
	case now == work.Counting:
		return s.gate.Count(ref, func() (c guard.Counted, after time.Duration, failed bool) {
			return s.reconciler.Count(ctx, ref, s.cleansUp())
		})
	case now == work.Standby:
		return s.standBy(ctx, ref)
	case !s.generation.isActive():
		return afterLoss
	}
	return s.reconciler.Reconcile(ctx, ref)
}

// waitForSync waits for the first lists of every watch, and reports those that are missing.
func (s *session) waitForSync(ctx context.Context) bool {
	for ctx.Err() == nil {
		waiting := s.cache.Unsynced()
		if len(waiting) == 0 {
			return true
		}
		s.setReason(state.ReasonSyncing, "waiting for the first list of "+strings.Join(waiting, ", "))
		work.Pause(ctx, syncPoll)
	}
	return false
}

// syncPoll is how often first lists are checked.
const syncPoll = 50 * time.Millisecond

// inheritLeaving takes over from a session that has ended which upstreams it saw leaving, and finds those that have
// left since: they are in its cache and not in this one, which selects equally. It does nothing for nil.
func (s *session) inheritLeaving(last *session) {
	if last == nil || last.pipeline.Upstream.GVR != s.pipeline.Upstream.GVR {
		return
	}
	s.reconciler.InheritLeaving(last.reconciler)
	if !s.pipeline.HidesUpstreams() || !s.pipeline.SelectsLike(last.pipeline.Renderer) || len(last.cache.Unsynced()) > 0 {
		return
	}
	s.cache.NoteLeftSince(last.cache, s.reconciler)
}
