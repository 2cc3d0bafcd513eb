package pipeline

import (
	"context"
	"fmt"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Health returns a function that evaluates the rules about readiness for the live object of one that is desired.
func (p *Pipeline) Health(upstream *unstructured.Unstructured, w *operator.Desired, inputs func() Inputs) func(k int, live *drift.Live) status.Fact {
	return func(k int, live *drift.Live) status.Fact {
		d, in := p.Downstreams[w.Objects[k].Downstream], inputs()
		vars, budget := p.vars(upstream, in), rules.NewBudget(context.Background())
		if d.readsItem {
			vars.Item, _ = p.itemAt(w, k, vars, in, budget)
		}
		return p.health(d, live, vars, budget)
	}
}

// health says how an object is doing. A rule that got no time to end says nothing: the object may have failed, or not be ready.
func (p *Pipeline) health(d *Downstream, live *drift.Live, vars rules.Vars, budget *rules.Budget) status.Fact {
	f := p.healthInTime(d, live, vars, budget)
	if budget.Expired() {
		f.Ready, f.Failed, f.Progressing = false, false, true
		f.Reason, f.Message = status.ReasonProgressing, "whether it is ready takes too long to find out, and is tried again: make the expressions look at less"
	}
	return f
}

// healthInTime asks kstatus first, which compares generations, and then the config's own rules.
func (p *Pipeline) healthInTime(d *Downstream, live *drift.Live, vars rules.Vars, budget *rules.Budget) status.Fact {
	f := status.Fact{Name: d.Name, Message: d.StatusMessage(live)}
	vars.Downstream = live.Kept
	if failed, message := firstTrue(d.failed, vars, budget); failed {
		f.Failed, f.Reason, f.Message = true, status.ReasonFailed, p.message(d, message, vars, budget)
		return f
	}
	health := live.Status
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
	if unseen := d.unwatchedFields(live); unseen != "" && !d.OwnsFields() {
		f.Progressing, f.Reason, f.Message = true, status.ReasonProgressing, unseen
		return f
	}
	if message := firstUnmet(d.ready, vars, budget); message != "" {
		f.Progressing, f.Reason, f.Message = true, status.ReasonProgressing, p.message(d, message, vars, budget)
		return f
	}
	f.Ready, f.Reason = true, status.ReasonReady
	f.Message = p.message(d, "", vars, budget)
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
