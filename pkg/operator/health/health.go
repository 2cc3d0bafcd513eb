package health

import (
	"context"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Checks have the expressions of one config about live objects: what is ready, and what the status shows of them.
type Checks struct {
	*desired.Renderer
	// Rules are by the index of the downstream.
	Rules []*Rules
	// Fields are in the order of Settings.StatusFields; nil has a field stay as it is.
	Fields []*rules.Program
	// Halts are those of rollout.haltWhen, and RolloutOrder is rollout.order; nil without one.
	Halts        []Rule
	RolloutOrder *rules.Program
}

// Health returns a function that evaluates the rules about readiness for the live object of one that is desired.
func (c *Checks) Health(
	upstream *unstructured.Unstructured, w *operator.Desired, inputs func() desired.Inputs,
) func(k int, live *drift.Live) status.Fact {
	return func(k int, live *drift.Live) status.Fact {
		in := inputs()
		vars, budget := c.VarsOf(upstream, in), rules.NewBudget(context.Background())
		return c.objectHealth(w, k, live, in, vars, budget)
	}
}

// objectHealth says how object k is doing.
func (c *Checks) objectHealth(
	w *operator.Desired, k int, live *drift.Live, in desired.Inputs, vars rules.Vars, budget *rules.Budget,
) status.Fact {
	i := w.Objects[k].Downstream
	if c.Rules[i].ReadsItem {
		vars.Item, _ = c.ItemAt(w, k, vars, in, budget)
	}
	vars.Downstream = live.Kept
	return healthOf(c.Downstreams[i].Downstream, c.Rules[i], live, vars, budget)
}

// healthOf says how an object is doing. A rule that got no time to end says nothing: the object may have failed, or not
// be ready.
func healthOf(d *operator.Downstream, r *Rules, live *drift.Live, vars rules.Vars, budget *rules.Budget) status.Fact {
	f := healthInTime(d, r, live, vars, budget)
	if budget.Expired() {
		f.Ready, f.Failed, f.Progressing = false, false, true
		f.Reason, f.Message = status.ReasonProgressing,
			"whether it is ready takes too long to find out, and is tried again: make the expressions look at less"
	}
	return f
}

// healthInTime asks kstatus first, which compares generations, and then the config's own rules.
func healthInTime(
	d *operator.Downstream, r *Rules, live *drift.Live, vars rules.Vars, budget *rules.Budget,
) status.Fact {
	f := status.Fact{Name: d.Name, Message: statusMessage(d, live)}
	if failed, message := firstTrue(r.Failed, vars, budget); failed {
		f.Failed, f.Reason, f.Message = true, status.ReasonFailed, r.message(message, vars, budget)
		return f
	}
	health := live.Status
	if d.OwnsFields() { // whether the object of others works is their affair
		health = kstatus.CurrentStatus
	}
	switch health {
	case kstatus.FailedStatus:
		f.Failed, f.Reason = true, status.ReasonFailed
		f.Message = r.message(f.Message, vars, budget)
		return f
	case kstatus.CurrentStatus:
	default:
		f.Progressing, f.Reason = true, status.ReasonProgressing
		f.Message = r.message(f.Message, vars, budget)
		return f
	}
	if unseen := unseenBy(d, r, live); unseen != "" && !d.OwnsFields() {
		f.Progressing, f.Reason, f.Message = true, status.ReasonProgressing, unseen
		return f
	}
	if message := firstUnmet(r.Ready, vars, budget); message != "" {
		f.Progressing, f.Reason, f.Message = true, status.ReasonProgressing, r.message(message, vars, budget)
		return f
	}
	f.Ready, f.Reason = true, status.ReasonReady
	f.Message = r.message("", vars, budget)
	return f
}

// StatusMessage is what the status of a live object of a downstream says, as far as it may be repeated.
func (c *Checks) StatusMessage(index int, live *drift.Live) string {
	if index < 0 || index >= len(c.Downstreams) {
		return live.StatusMessage
	}
	return statusMessage(c.Downstreams[index].Downstream, live)
}

func statusMessage(d *operator.Downstream, live *drift.Live) string {
	if d.Hidden() && live.StatusMessage != "" {
		return "its status is not repeated here, because it may quote a value of a Secret"
	}
	return live.StatusMessage
}

// BeforeProgress returns a function that evaluates doneWhen and failedWhen, which may read inputs.
func (c *Checks) BeforeProgress(
	upstream *unstructured.Unstructured, in desired.Inputs,
) func(live *drift.Live) operator.Progress {
	return func(live *drift.Live) operator.Progress {
		vars, budget := c.VarsOf(upstream, in), rules.NewBudget(context.Background())
		vars.Downstream = live.Kept
		if failed, err := c.Before.Failed.Eval(vars, budget); err == nil && failed == true {
			return operator.Progress{Failed: true}
		}
		done, err := c.Before.Done.Eval(vars, budget)
		return operator.Progress{Done: done == true, TookTooLong: budget.Expired(),
			Err: redact.Hide(c.Before.HidesValues, err)}
	}
}

// UnmetRule is a reason why an existing downstream is not ready, beyond what its kind says of itself (Live.Status).
type UnmetRule struct {
	// Rule is the path of the rule in the config, downstreams[0].ready.rules[1].rule; empty if no rule says so.
	Rule string
	// Failed says that it is a rule of ready.failed, which holds; else one of ready.rules does not.
	Failed bool
	// Message is the rule's own, or made of its text.
	Message string
}

// UnmetRules lists every rule that keeps live, which is object k of a desired state, from being ready. Conditions name
// the first alone. in are the inputs of the desired state.
func (c *Checks) UnmetRules(
	ctx context.Context, w *operator.Desired, k int, upstream *unstructured.Unstructured,
	in desired.Inputs, live *drift.Live,
) []UnmetRule {
	i, budget, vars := w.Objects[k].Downstream, rules.NewBudget(ctx), c.VarsOf(upstream, in)
	rule := c.Rules[i]
	vars.Downstream = live.Kept
	vars.Item, _ = c.ItemAt(w, k, vars, in, budget)
	var list []UnmetRule
	for _, r := range rule.Failed {
		if r.holds(vars, budget) {
			list = append(list, UnmetRule{Rule: r.Path, Failed: true, Message: r.Message})
		}
	}
	if message := unseenBy(c.Downstreams[i].Downstream, rule, live); message != "" {
		list = append(list, UnmetRule{Message: message})
	}
	for _, r := range rule.Ready {
		if message := r.unmet(vars, budget); message != "" {
			list = append(list, UnmetRule{Rule: r.Path, Message: message})
		}
	}
	return list
}
