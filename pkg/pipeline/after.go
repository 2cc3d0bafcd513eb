package pipeline

import (
	"context"
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// holdForOrder lets what is to be created or changed wait for the downstreams that it comes after. A repair does not wait: it brings back
// what stood before.
func (p *Pipeline) holdForOrder(in Input, out *Decision) {
	var held []Outcome
	for _, o := range out.Outcomes {
		if changes(o) {
			if why := p.waitsFor(in, out, p.Downstreams[o.Downstream]); why != "" {
				o.State, o.Action, o.Message, o.RequeueAfter = StateWaiting, ActionNone, why, 0
			}
		}
		held = append(held, o)
	}
	out.Outcomes = held
}

func changes(o Outcome) bool {
	return o.Action != ActionNone && (o.State == StateCreate || o.State == StateUpdate || o.State == StateRecreate)
}

// waitsFor says which downstream one has to wait for, and why; empty if there is none.
func (p *Pipeline) waitsFor(in Input, out *Decision, d *Downstream) string {
	for _, after := range d.Config.After {
		i := p.indexOf(after.Name)
		if i < 0 { // the loader has reported that
			continue
		}
		var facts []objectFact
		for k, o := range out.Outcomes {
			waitsForThis := o.Action == ActionNone && in.Facts[k].Verdict.Sibling == d.Name // for its place
			if o.Downstream == i && o.State != StateUnwanted && !waitsForThis {
				facts = append(facts, objectFact{p.orderFact(in, k, o, after.Until), &in.Desired.Objects[k]})
			}
		}
		for _, f := range byDownstream(facts) {
			if !f.Ready {
				return fmt.Sprintf("it comes after %s, which is not %s: %s", after.Name, untilText[after.Until], describe(f))
			}
		}
	}
	return ""
}

var untilText = map[config.AfterUntil]string{config.AfterReady: "ready", config.AfterCreated: "created"}

func describe(f status.Fact) string {
	if f.Message == "" {
		return f.Reason
	}
	return f.Message
}

// orderFact tells whether an object is what one has to wait for that comes after it.
func (p *Pipeline) orderFact(in Input, k int, o Outcome, until config.AfterUntil) status.Fact {
	d, facts := p.Downstreams[o.Downstream], &in.Facts[k]
	if until == config.AfterCreated {
		exists := o.Finished || facts.Live != nil && !o.Theirs && !facts.Live.Deleting
		return status.Fact{Name: d.Name, Ready: exists, Reason: string(o.State), Message: o.Message}
	}
	inputs := in.Inputs()
	vars, budget := p.vars(in.Upstream, inputs), rules.NewBudget(context.Background())
	if d.readsItem {
		vars.Item, _ = p.itemAt(in.Desired, k, vars, inputs, budget)
	}
	return p.fact(d, Result{Outcome: o, Live: facts.Live}, vars, budget)
}
