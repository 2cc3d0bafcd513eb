package engine

import (
	"context"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// While a changed config is rolled out, the session of the config before goes on with the upstreams that the changed one
// has yet to reach. It trails: each upstream has one of the two, and the rollout says which.

// trail is how a session begins to trail.
type trail struct {
	// rollout is that of the changed config.
	rollout *rollout.Rollout
	// paused is closed once no reconcile of the session is under way; resume, once the session of the changed config knows
	// what this one does.
	paused, resume chan struct{}
}

// act reconciles until live is done; between, it begins to trail when it is asked to.
func (s *session) act(live context.Context) {
	for live.Err() == nil {
		acting, stop := context.WithCancel(live)
		asked := make(chan *trail, 1)
		go func() {
			select {
			case t := <-s.asked:
				asked <- t
				stop()
			case <-live.Done():
			}
		}()
		s.reconcileWhile(live, acting)
		if stop(); live.Err() != nil {
			return
		}
		t := <-asked
		s.trail.Store(t)
		close(t.paused)
		select {
		case <-t.resume:
		case <-live.Done():
		}
	}
}

// Trails implements reconcile.Host.
func (s *session) Trails() bool { return s.trail.Load() != nil }

// enterTrail reports whether a session that trails may reconcile an upstream, until leave is called. One that does not
// trail may.
func (s *session) enterTrail(ref operator.Ref) (leave func(), ok bool) {
	t := s.trail.Load()
	if t == nil {
		return func() {}, true
	}
	return func() { t.rollout.Leave(ref) }, t.rollout.Enter(ref)
}

// trailing is the generation whose session shall trail while that of g acts, and with which upstreams; nil for none,
// only nil for all. It is the config that reached all upstreams last: the one before, or the one that trails that. The
// operator's lock is held.
func (o *runner) trailing(g *generation) (trails *generation, only map[operator.Ref]bool) {
	if !g.session.rollout.IsOpen() || g.activation != nil || g.session.shards != nil {
		return nil, nil
	}
	trails = o.current
	if o.trails != nil {
		trails, only = o.trails, o.current.session.rollout.Unmoved()
	}
	if trails.session == nil || !trails.established || trails.activation != nil || trails.session.pipeline.OnlyDeletes ||
		trails.session.pipeline.Observing() || trails.session.pipeline.Upstream.GVR != g.session.pipeline.Upstream.GVR {
		return nil, nil
	}
	return trails, only
}

// beginTrailing has the session of a config before trail this one. It returns once no reconcile of it is under way; then
// resume lets it go on. It returns nil if that session has ended.
func (s *session) beginTrailing(before *generation, only map[operator.Ref]bool) (resume func()) {
	t := &trail{rollout: s.rollout, paused: make(chan struct{}), resume: make(chan struct{})}
	select {
	case before.session.asked <- t:
	case <-before.ended:
		return nil
	}
	select {
	case <-t.paused:
	case <-before.ended:
		return nil
	}
	s.rollout.ServeBefore(true, only)
	return func() { close(t.resume) }
}

// endTrailing ends the session that trails this one, if there is one: the rollout is over.
func (o *runner) endTrailing() {
	o.mu.Lock()
	trails := o.trails
	o.trails = nil
	o.mu.Unlock()
	trails.withdraw()
	trails.wait()
}

// stopTrailing is called when the session of a generation has ended: if it has trailed, the changed config leaves alone
// what it has yet to reach. It reports whether it has.
func (g *generation) stopTrailing() bool {
	o := g.operator
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.trails != g {
		return o.current != g && o.next != g
	}
	o.trails = nil
	if now := o.current.session; now != nil && now.rollout != nil {
		now.rollout.ServeBefore(false, nil)
		now.addAll(now.cache.Candidates(now.reconciler))
	}
	return true
}

// giveBack has the session that trails this one reconcile upstreams that it gets again.
func (s *session) giveBack(refs []operator.Ref) {
	s.operator.mu.Lock()
	defer s.operator.mu.Unlock()
	if trails := s.operator.trails; trails != nil {
		trails.session.Add(informers.PriorityReaders, 0, refs...)
	}
}
