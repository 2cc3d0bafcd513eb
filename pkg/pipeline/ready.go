package pipeline

import (
	"fmt"
	"strings"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Failure is why an action could not be carried out.
type Failure struct {
	// Reason is the documented word for its class.
	Reason string
	// Message is for whoever must act.
	Message string
	// OfRemoval is true if it is about an object at no target.
	OfRemoval bool
}

// Result is a downstream after its actions were carried out: the last Outcome, the live object as the API server last
// returned it (nil where none stands), and what failed.
type Result struct {
	Outcome Outcome
	Live    *drift.Live
	Failure *Failure
	// Baseline is the projection that our last apply of Live returned; nil if it is what was sent, or not known.
	Baseline *drift.Sum
	// Unseen is true if Live is nil and what the upstream's status records is not known to be gone: its watch may have
	// lost it from sight.
	Unseen bool
	// Unverified is Facts.Unverified, after what was done.
	Unverified bool
}

// fact tells what a downstream contributes to the upstream's conditions.
func (p *Pipeline) fact(d *Downstream, r Result, vars rules.Vars, budget *rules.Budget) status.Fact {
	f := status.Fact{Name: d.Name, Reason: string(r.Outcome.State), Message: r.Outcome.Message}
	switch {
	case r.Failure != nil:
		f.Progressing, f.Reason, f.Message = true, r.Failure.Reason, r.Failure.Message
		return f
	case r.Outcome.Failed:
		f.Failed, f.Reason = true, status.ReasonFailed
		return f
	case r.Outcome.Finished:
		f.Ready = true
		return f
	case p.Observing() && heldByObserve(r.Outcome):
		f.Progressing, f.Reason = true, status.ReasonObserved
		return f
	}
	switch r.Outcome.State {
	case StateRenderFailed, StateConflict, StateContested:
		f.Failed = true
	case StatePaused:
		if r.Live != nil {
			return p.health(d, r, vars, budget)
		}
		f.Progressing, f.Message = true, "no object of it is known, and nothing is created while the upstream is paused"
	case StateInSync, StateDrifted, StateStale:
		if r.Live != nil {
			return withStale(p.health(d, r, vars, budget), r.Outcome)
		}
		f.Progressing = true
	default:
		f.Progressing = true
	}
	return f
}

// withStale adds to what is said of an object that is not ready that it is stale, too.
func withStale(f status.Fact, o Outcome) status.Fact {
	if o.State == StateStale && !f.Ready {
		f.Message = strings.TrimPrefix(f.Message+"; "+o.Message, "; ")
	}
	return f
}

// pausedFact is fact for a paused object. One that was created once and has finished stays so.
func pausedFact(f status.Fact, recorded *status.Recorded) status.Fact {
	switch {
	case recorded == nil || !recorded.Done():
		return f
	case recorded.State == status.StateFailed:
		return status.Fact{Name: f.Name, Failed: true, Reason: status.ReasonFailed}
	}
	return status.Fact{Name: f.Name, Ready: true, Reason: status.ReasonReady}
}

// health says how an object is doing. A rule that got no time to end says nothing: the object may have failed, or not be ready.
func (p *Pipeline) health(d *Downstream, r Result, vars rules.Vars, budget *rules.Budget) status.Fact {
	f := p.healthInTime(d, r, vars, budget)
	if budget.Expired() {
		f.Ready, f.Failed, f.Progressing = false, false, true
		f.Reason, f.Message = status.ReasonProgressing, "whether it is ready takes too long to find out, and is tried again: make the expressions look at less"
	}
	return f
}

// healthInTime asks kstatus first, which compares generations, and then the config's own rules.
func (p *Pipeline) healthInTime(d *Downstream, r Result, vars rules.Vars, budget *rules.Budget) status.Fact {
	f := status.Fact{Name: d.Name, Message: d.StatusMessage(r.Live)}
	vars.Downstream = r.Live.Kept
	if failed, message := firstTrue(d.failed, vars, budget); failed {
		f.Failed, f.Reason, f.Message = true, status.ReasonFailed, p.message(d, message, vars, budget)
		return f
	}
	health := r.Live.Status
	if d.OwnsFields() { // whether the object of others works is their affair
		health = kstatus.CurrentStatus
	}
	switch health {
	case kstatus.FailedStatus:
		f.Failed, f.Reason = true, status.ReasonFailed
		f.Message = p.message(d, f.Message, vars, budget)
		return f
	case kstatus.CurrentStatus:
	default:
		f.Progressing, f.Reason = true, status.ReasonProgressing
		f.Message = p.message(d, f.Message, vars, budget)
		return f
	}
	if unseen := d.unwatchedFields(r.Live); unseen != "" && !d.OwnsFields() {
		f.Progressing, f.Reason, f.Message = true, status.ReasonProgressing, unseen
		return f
	}
	if message := firstUnmet(d.ready, vars, budget); message != "" {
		f.Progressing, f.Reason, f.Message = true, status.ReasonProgressing, p.message(d, message, vars, budget)
		return f
	}
	f.Ready, f.Reason = true, status.ReasonReady
	f.Message = p.message(d, "", vars, budget)
	if r.Outcome.State != StateInSync && r.Outcome.State != StatePaused {
		f.Reason, f.Message = string(r.Outcome.State), r.Outcome.Message
	}
	return f
}

// unwatchedFields says why the controller of a downstream cannot be known to have seen it; empty if it has, or need not be asked.
// kstatus takes an object without any status for ready, which a custom resource is not before its own controller has looked
// at it. A controller that has written a status without the generation does not use that field.
func (d *Downstream) unwatchedFields(live *drift.Live) string {
	s, _ := live.Kept["status"].(map[string]any)
	_, ok := s["observedGeneration"]
	switch {
	case !d.hasObservedGeneration || ok:
		return ""
	case d.Config.Ready.ObservedGeneration == config.ObservedRequired:
		return "its controller has not seen it yet: status.observedGeneration is not set"
	case !live.StatusWritten:
		return "its controller has not seen it yet: it has no status. If it never has one, set ready.observedGeneration: Optional"
	}
	return ""
}

// message is what the config's messageFrom says, where it says anything.
func (p *Pipeline) message(d *Downstream, fallback string, vars rules.Vars, budget *rules.Budget) string {
	if d.messageFrom == nil {
		return fallback
	}
	if v, err := d.messageFrom.Eval(vars, budget); err == nil {
		if s, _ := v.(string); s != "" {
			return s
		}
	}
	return fallback
}

// firstTrue finds the first rule that holds.
func firstTrue(list []readyRule, vars rules.Vars, budget *rules.Budget) (bool, string) {
	for _, r := range list {
		if r.holds(vars, budget) {
			return true, r.message
		}
	}
	return false, ""
}

// firstUnmet finds the first rule that does not hold and says why.
func firstUnmet(list []readyRule, vars rules.Vars, budget *rules.Budget) string {
	for _, r := range list {
		if message := r.unmet(vars, budget); message != "" {
			return message
		}
	}
	return ""
}

// holds is for rules that say that something failed. One that gives an error does not hold: an error never makes anything
// fail.
func (r *readyRule) holds(vars rules.Vars, budget *rules.Budget) bool {
	v, err := r.program.Eval(vars, budget)
	return err == nil && v == true
}

// unmet says why a rule does not hold; empty if it does. One that gives an error does not.
func (r *readyRule) unmet(vars rules.Vars, budget *rules.Budget) string {
	switch v, err := r.program.Eval(vars, budget); {
	case err != nil:
		return fmt.Sprintf("%s (%v)", r.message, hideValues(r.hidesValues, err))
	case v != true:
		return r.message
	}
	return ""
}

// finished reports whether a standing downstream that is made once only finished, well or badly.
func (p *Pipeline) finished(d *Downstream, r Result, f status.Fact) bool {
	return r.Live != nil && (f.Failed || (f.Ready && len(d.ready) > 0)) && r.Failure == nil && r.Outcome.State == StateInSync
}
