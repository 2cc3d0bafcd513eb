package engine

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// connectionsOf are the connections by which a config is carried out.
func (e *Engine) connectionsOf(g *generation) *connections.Connections {
	if g.activation == nil {
		return e.connections
	}
	return e.activations.Of(g.activation).Connections
}

// recorderOf is where the events of a config go.
func (e *Engine) recorderOf(g *generation) events.EventRecorder {
	if g.activation == nil {
		return e.recorder(g.operator.name)
	}
	return e.activations.Of(g.activation).Recorder(g.operator.name)
}

// isActive reports whether this cluster may act for the config now.
func (g *generation) isActive() bool { return g.activation == nil || g.activation.Active() }

// afterLoss is after how long an upstream is looked at again whose turn came when this cluster had just ceased to be
// active.
const afterLoss = time.Second

// actWhileActive reconciles whenever this cluster is active, and decides without acting while it is not, until live is
// done.
func (s *session) actWhileActive(live context.Context) {
	t := s.generation.activation
	if t == nil {
		s.setReason(state.Working(s.pipeline), "")
		s.Act(live, func(acting context.Context) { s.reconcileWhile(live, acting) })
		return
	}
	for s.waitForActivation(live) {
		acting, done, ok := t.Act(live)
		if !ok {
			return
		}
		if t.Preceded() {
			actAfterAnother(acting, s.reconciler, s.cache)
		}
		s.setReason(state.Working(s.pipeline), "")
		s.reconcileWhile(live, acting)
		if done(); live.Err() != nil {
			return
		}
	}
}

// waitForActivation returns true once this cluster is active, and false once live is done. Meanwhile decisions are
// made, and counted, but not carried out. Whatever was counted for guard before it may have changed. What was seen
// losing its labels meanwhile is left over, as after a restart: neither a status nor plan could say that it would go.
func (s *session) waitForActivation(live context.Context) bool {
	for !s.generation.isActive() {
		s.setReason(state.ReasonStandby, "")
		s.beginStandingBy(live)
		s.Add(informers.PriorityBulk, 0, s.cache.Candidates(s.reconciler)...)
		if !s.generation.activation.Wait(live) {
			return false
		}
		s.pool.Pass(work.Interrupted, nil)
		s.reconciler.Deselected.Reset()
		if !s.passGuard(live) {
			return false
		}
	}
	return live.Err() == nil
}

// standBy is what workers do while another process or cluster acts. Where this process would act if its cluster were
// the active one, decisions are made.
func (s *session) standBy(ctx context.Context, ref operator.Ref) (after time.Duration) {
	if s.generation.activation != nil && s.engine.electedAlready() {
		return s.reconciler.Rehearse(ctx, ref)
	}
	return s.reconciler.StandBy(ctx, ref)
}
