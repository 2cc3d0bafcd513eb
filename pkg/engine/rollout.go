package engine

import (
	"context"

	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// Rollout implements reconcile.Host.
func (s *session) Rollout() *rollout.Rollout { return s.rollout }

// serveRollout moves upstreams to the changed config, step by step, until acting is done. What a person decides is
// watched meanwhile.
func (s *session) serveRollout(acting context.Context) {
	var control guard.Confirmation // while a rollout is under way
	decided := func() string {
		switch open := s.rollout.IsOpen(); {
		case open && control == nil:
			control = s.gate.Decision(s.pipeline.Config.Rollout.Control)
		case !open && control != nil:
			control.Close()
			control = nil
		}
		if control == nil {
			return ""
		}
		return control.Digest()
	}
	show := func(p rollout.Progress) {
		if s.generation.setRollout(p); p.State == "" {
			s.operator.endTrailing()
		}
	}
	s.rollout.Serve(acting, decided, show, func(refs []operator.Ref) {
		s.Add(informers.PriorityReaders, 0, refs...)
	}, s.giveBack)
	if control != nil {
		control.Close()
	}
	s.generation.setRollout(rollout.Progress{})
}

// setRollout records how far the rollout of a config is; the zero value for none.
func (g *generation) setRollout(p rollout.Progress) {
	o := g.operator
	o.mu.Lock()
	defer o.mu.Unlock()
	before := g.rollout
	g.rollout = p
	metrics.SetRollout(o.name, p)
	log := o.log.WithValues("config", p.Config, "progress", p.String())
	switch on := eventsOf(g.file); {
	case p.State == before.State:
	case p.Stopped():
		logging.Warn(log, "the rollout of the changed config has halted: nothing more is moved")
		o.event(on, true, EventRolloutHalted, "Rollout", string(p.State)+" at "+p.String())
	case p.State == "" && before.All > 0:
		o.log.Info("the rollout of the changed config is no longer under way", "config", before.Config, "progress",
			before.String())
		o.event(on, false, EventRolloutEnded, "Rollout", "no longer under way, at "+before.String())
	case before.State == "":
		log.Info("the changed config is rolled out")
		o.event(on, false, EventRolloutBegun, "Rollout", p.String())
	default:
		log.Info("the rollout of the changed config continues", "state", string(p.State))
	}
	o.reportChange()
}
