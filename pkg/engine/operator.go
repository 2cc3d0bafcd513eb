package engine

import (
	"context"
	"sync"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// runner is one operator by its name: its active config, and the one that is to replace it.
type runner struct {
	engine *Engine
	name   string
	log    logr.Logger
	// added is true if a reload started it.
	added bool

	mu sync.Mutex
	// current is the active config, next a changed config that is to take over; nil for none.
	current, next *generation
	// trails is a config before, which goes on with the upstreams that current has yet to reach; nil for none.
	trails *generation
	// last is the last session of those that current is or was.
	last *session
	// loaded is the config as it was last loaded without errors: that of current or next, or an equal one.
	loaded *load.File
	// refused is why the config as it is now was refused; empty if it was not.
	refused string
	// reportedStates and reportedBlock are what was last reported: the states of the operator, and what blocks a changed
	// config.
	reportedStates []state.Condition
	reportedBlock  state.Condition
}

// start runs the first config until ctx is done.
func (o *runner) start(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	metrics.SetStates(o.name, []state.Condition{o.current.condition})
	o.current.start(ctx, nil)
}

// stop ends whatever runs and waits for reconciles that have begun. Nothing is deleted.
func (o *runner) stop() {
	o.mu.Lock()
	all := []*generation{o.next, o.current, o.trails}
	o.mu.Unlock()
	for _, g := range all {
		g.withdraw()
	}
	for _, g := range all {
		g.wait()
	}
}

// offer takes a config that was loaded without errors. One that equals the active one changes nothing. Any other begins
// beside the active one, by start, and takes over once it can; if the active one has not worked yet, it is replaced at
// once. One whose activation was missing is tried again: that may be back.
func (o *runner) offer(ctx context.Context, f *load.File) (start func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.reportChange()
	o.loaded, o.refused = f, ""
	start = func() {}
	digest := digestOf(f)
	switch {
	case o.next != nil && o.next.digest == digest && o.next.noActivation == nil:
		o.next.setConfirmed(f)
	case o.current.digest == digest && o.current.noActivation == nil:
		o.withdrawNext()
		o.current.setConfirmed(f)
	case o.current.established:
		o.withdrawNext()
		next := o.newGeneration(f)
		o.next, start = next, next.prepare(ctx, nil)
	default:
		o.withdrawNext()
		before := o.current
		before.withdraw()
		o.current = o.newGeneration(f)
		start = o.current.prepare(ctx, before.ended)
	}
	return start
}

// isLeaving reports whether a changed config replaces g, or will, and whether nothing keeps it from that. One that is
// compiled again does unless it waits for a kind.
func (o *runner) isLeaving(g *generation) (leaving, soon bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current != g && o.trails != g {
		return true, true
	}
	if o.next == nil {
		return false, false
	}
	reason := o.next.condition.Reason
	soon = reason == state.ReasonStarting || reason == state.ReasonSyncing
	return !o.next.renewed || soon || reason == state.ReasonGuardWaiting, soon
}

// changes reports whether offer would start a config.
func (o *runner) changes(f *load.File) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	digest := digestOf(f)
	return o.current.digest != digest && (o.next == nil || o.next.digest != digest)
}

// refuse keeps the active config, since the changed one cannot be loaded.
func (o *runner) refuse(why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.reportChange()
	o.withdrawNext()
	o.refused = why
}

// withdrawNext gives up the config that was to take over. The schemas that it was compiled against may be newer than
// those of the active one.
func (o *runner) withdrawNext() {
	if o.next != nil && o.current.session != nil {
		o.current.session.kinds.Request()
	}
	o.next.withdraw()
	o.next = nil
}

// handover is how a config becomes the current one.
type handover struct {
	// ok is false if it is no longer wanted.
	ok bool
	// before is the config before; nil if it was the current one already. leaving are those that are withdrawn, and may
	// still finish what they are working on.
	before  *generation
	leaving []*generation
	// trails is the session that shall trail, with the upstreams in only, nil for all; nil for none.
	trails *session
	only   map[operator.Ref]bool
}

// makeCurrent makes g the current config.
func (o *runner) makeCurrent(g *generation) (h handover) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.current == g:
		return handover{ok: true}
	case o.next != g:
		return handover{}
	}
	h.ok, h.before = true, o.current
	trails, only := o.trailing(g)
	for _, old := range []*generation{o.current, o.trails} {
		if old != nil && old != trails {
			old.withdraw()
			h.leaving = append(h.leaving, old)
		}
	}
	if trails != nil {
		h.trails, h.only = trails.session, only
	}
	if c := h.before.health(); c.IsWorking() {
		g.condition = c // as g will say itself in a moment: nothing is less ready meanwhile
	}
	o.current, o.next, o.last, o.trails, g.established = g, nil, g.session, trails, true
	o.reportChange()
	return h
}

// becomeCurrent takes over from the config before, once that has finished what it is working on. Watches that both need
// go on, since this session has joined them. What the one before remembers of its own writes is kept.
func (s *session) becomeCurrent(live context.Context) bool {
	h := s.operator.makeCurrent(s.generation)
	before := h.before
	if before == nil {
		return h.ok
	}
	if h.trails != nil {
		if resume := s.Lead(live, h.trails.Session, h.only); resume != nil {
			defer resume()
		} else {
			s.operator.endTrailing(s.generation)
		}
	}
	for _, old := range h.leaving {
		old.wait()
	}
	if before.session != nil {
		s.reconciler.Inherit(before.session.reconciler)
		s.writeBack.Inherit(before.session.writeBack)
	}
	metrics.CountReload(s.operator.name, metrics.Applied)
	what := "changed config active"
	if s.generation.renewed {
		what = "a kind was installed, removed or changed; the config is active with the kinds served now"
	}
	s.operator.log.Info(what, "digest", s.generation.digest)
	s.operator.event(eventsOf(s.generation.file), false, EventReloaded, "Reload",
		what+", with the digest "+s.generation.digest)
	return true
}

// activeReconciler is the reconciler that works now, if its session is not s; nil for none.
func (o *runner) activeReconciler(s *session) *reconcile.Reconciler {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.current.session; now != nil && now != s {
		return now.reconciler
	}
	return nil
}

// renew compiles the config of g, which is active, again, and has it take over from itself, as a changed config does,
// with all objects of custom kinds as the API server shows them now.
// It returns false if g is not active, or only deletes, which another one cannot do beside it, or a changed config is
// starting.
func (o *runner) renew(g *generation) bool {
	ctx := o.engine.runningContext()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current != g || o.next != nil || !g.established || g.session.pipeline.OnlyDeletes {
		return false
	}
	for _, k := range g.session.pipeline.Kinds() {
		if k.IsCustom() {
			o.engine.informers.Abandon(k.GVR.GroupResource())
		}
	}
	o.next = o.newGeneration(g.file)
	o.next.renewed = true
	o.next.start(ctx, nil)
	return true
}

// renewing reports whether that is under way.
func (o *runner) renewing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next != nil && o.next.renewed
}

// runningContext is the context of operators.
func (e *Engine) runningContext() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running
}

// currentFile is the active config, lastLoaded the one that was last loaded without errors.
func (o *runner) currentFile() *load.File {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.current.file
}

func (o *runner) lastLoaded() *load.File {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.loaded
}

// trailing is the generation whose session shall trail while that of g acts, and with which upstreams; nil for none,
// only nil for all. It is the config that reached all upstreams last: the one before, or the one that trails that. The
// operator's lock is held.
func (o *runner) trailing(g *generation) (trails *generation, only map[operator.Ref]bool) {
	if !g.session.Rollout().IsOpen() || g.activation != nil {
		return nil, nil
	}
	trails = o.current
	if o.trails != nil {
		trails, only = o.trails, o.current.session.Rollout().Unmoved()
	}
	s := trails.session
	if s == nil || !s.pool.Is(work.Acting) || s.Rollout().IsOpen() || trails.activation != nil || s.pipeline.OnlyDeletes ||
		s.pipeline.Observing() || s.pipeline.Upstream.GVR != g.session.pipeline.Upstream.GVR {
		return nil, nil
	}
	return trails, only
}

// endTrailing ends the session that trails that of g, if there is one: the rollout is over. Another config may have
// taken over by now, which g itself may trail.
func (o *runner) endTrailing(g *generation) {
	o.mu.Lock()
	var trails *generation
	if o.current == g {
		trails, o.trails = o.trails, nil
	}
	o.mu.Unlock()
	trails.withdraw()
	trails.wait()
}
