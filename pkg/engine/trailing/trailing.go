// Package trailing has the session of a config go on while a changed one is rolled out, with the upstreams that the
// changed one has yet to reach. It trails: each upstream has one of the two sessions, and the rollout says which.
package trailing

import (
	"context"
	"sync/atomic"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// Session is a session as rollouts see it: it has one of its own, and may trail another session.
type Session struct {
	rollout *rollout.Rollout      // nil if its config has none
	asked   chan *trail           // has room for one
	trail   atomic.Pointer[trail] // nil unless it trails
	over    chan struct{}         // closed once it acts no more
}

// trail is how a session begins to trail.
type trail struct {
	// rollout is that of the changed config.
	rollout *rollout.Rollout
	// paused is closed once no reconcile of the session is under way; resume, once the session of the changed config knows
	// what this one does.
	paused, resume chan struct{}
}

// New returns a session with a rollout; nil for none.
func New(r *rollout.Rollout) *Session {
	return &Session{rollout: r, asked: make(chan *trail, 1), over: make(chan struct{})}
}

// Rollout is that of the session's own config; nil if it has none.
func (s *Session) Rollout() *rollout.Rollout { return s.rollout }

// Trails reports whether the session trails another one, and whether it keeps upstreams that are edited.
func (s *Session) Trails() (trails, keeps bool) {
	t := s.trail.Load()
	return t != nil, t != nil && t.rollout.Keeps()
}

// Enter reports whether the session may reconcile an upstream, until leave is called. One that does not trail may
// reconcile each.
func (s *Session) Enter(ref operator.Ref) (leave func(), ok bool) {
	t := s.trail.Load()
	if t == nil {
		return func() {}, true
	}
	return func() { t.rollout.Leave(ref) }, t.rollout.Enter(ref)
}

// Act is called once. It calls reconcile, which reconciles until its context is done, until live is done. It is called
// again whenever the session begins to trail another one; between two calls no reconcile is under way.
func (s *Session) Act(live context.Context, reconcile func(acting context.Context)) {
	defer close(s.over)
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
		reconcile(acting)
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

// Lead has another session, which acts, trail this one, with all upstreams that wait, or with those in only. It returns
// once no reconcile of that one is under way, and resume lets it go on; or nil if that one acts no more, or live is
// done.
func (s *Session) Lead(live context.Context, before *Session, only map[operator.Ref]bool) (resume func()) {
	t := &trail{rollout: s.rollout, paused: make(chan struct{}), resume: make(chan struct{})}
	select {
	case before.asked <- t:
	case <-before.over:
		return nil
	case <-live.Done():
		return nil
	}
	select {
	case <-t.paused:
	case <-before.over:
		return nil
	case <-live.Done():
		close(t.resume)
		return nil
	}
	s.rollout.ServeBefore(true, only)
	return func() { close(t.resume) }
}
