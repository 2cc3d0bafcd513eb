package decide

import (
	"fmt"
	"time"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// holdForOrder lets what is to be created or changed wait for the downstreams that it comes after. A repair does not
// wait: it brings back what existed before.
func holdForOrder(s *operator.Settings, in operator.Input, out *operator.Decision) {
	var held []operator.Outcome
	for _, o := range out.Outcomes {
		if changes(o) {
			if why := waitsFor(s, in, out, s.Downstreams[o.Downstream]); why != "" {
				o.State, o.Action, o.Message, o.RequeueAfter = operator.StateWaiting, operator.ActionNone, why, 0
			}
		}
		held = append(held, o)
	}
	out.Outcomes = held
}

func changes(o operator.Outcome) bool {
	return o.Action != operator.ActionNone &&
		(o.State == operator.StateCreate || o.State == operator.StateUpdate || o.State == operator.StateRecreate)
}

// waitsFor says which downstream one has to wait for, and why; empty if there is none.
func waitsFor(s *operator.Settings, in operator.Input, out *operator.Decision, d *operator.Downstream) string {
	for _, after := range d.Config.After {
		i := s.IndexOf(after.Name)
		if i < 0 { // the loader has reported that
			continue
		}
		var facts []operator.ObjectFact
		for k, o := range out.Outcomes {
			waitsForThis := o.Action == operator.ActionNone && in.Facts[k].Verdict.Sibling == d.Name // for its place
			if o.Downstream == i && o.State != operator.StateUnwanted && !waitsForThis {
				facts = append(facts, operator.ObjectFact{Fact: orderFact(s, in, k, o, after.Until), Of: &in.Desired.Objects[k]})
			}
		}
		for _, f := range operator.ByDownstream(facts) {
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

// orderFact reports whether an object is what one has to wait for that comes after it.
func orderFact(
	s *operator.Settings, in operator.Input, k int, o operator.Outcome, until config.AfterUntil,
) status.Fact {
	d, facts := s.Downstreams[o.Downstream], &in.Facts[k]
	if until == config.AfterCreated {
		exists := o.Finished || facts.Live != nil && !o.Theirs && !facts.Live.Deleting
		return status.Fact{Name: d.Name, Ready: exists, Reason: string(o.State), Message: o.Message}
	}
	return s.Fact(d, operator.Result{Outcome: o, Live: facts.Live}, func() status.Fact { return in.Health(k, facts.Live) })
}

// Decide says what is to be done about an upstream that is not being deleted. It is a pure function of its input.
func Decide(s *operator.Settings, in operator.Input) operator.Decision {
	if !in.Selected {
		return decideUnselected(s, in)
	}
	var out operator.Decision
	for k := range in.Desired.Objects {
		desired := &in.Desired.Objects[k]
		o := decideOne(&subject{Settings: s, Downstream: s.Downstreams[desired.Downstream], in: &in,
			facts: &in.Facts[k], desired: desired})
		o.Downstream, o.Object = desired.Downstream, k
		out.Outcomes = append(out.Outcomes, o)
	}
	carryGenerated(s, in, &out)
	if in.Health != nil {
		holdForOrder(s, in, &out)
	}
	decideLeftovers(s, in, &out)
	saveFromCollector(s, in, &out)
	out.Finalizer = finalizerAction(s, in, &out)
	spaceFinalizer(s, in, &out)
	if out.Finalizer == operator.FinalizerLeave && in.HasPreviousFinalizer &&
		s.Config.Conventions.Finalizer != "" && !s.Paused(in.Upstream) {
		out.Finalizer = operator.FinalizerSwap
	}
	return out
}

// Backoff is minimum, doubled n times, at most maximum.
func Backoff(minimum, maximum time.Duration, n int) time.Duration {
	d := minimum
	for ; n > 0 && d < maximum; n-- {
		d *= 2
	}
	return min(d, maximum)
}

// decideUnselected is about an upstream that lost the label (or whose namespace did), or that does not meet a match
// condition any more: all its downstreams are unwanted.
func decideUnselected(s *operator.Settings, in operator.Input) operator.Decision {
	if in.Desired == nil {
		in.Desired = s.Failed(nil)
	}
	var out operator.Decision
	message := "the upstream is no longer selected"
	if s.IsGone(in.Upstream) {
		message = "the query does not return the row"
	}
	if err := in.SelectionErr; err != nil {
		message = "whether the upstream is selected is not known, so it is left as it is: " + err.Error()
	}
	for k, o := range in.Desired.Objects {
		out.Outcomes = append(out.Outcomes, operator.Outcome{
			Downstream: o.Downstream, Object: k, State: operator.StateUnwanted, Message: message})
	}
	decideLeftovers(s, in, &out)
	if in.HasFinalizer && len(in.Leftovers) == 0 {
		out.Finalizer = operator.FinalizerRemove
	}
	return out
}
