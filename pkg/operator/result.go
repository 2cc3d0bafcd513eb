package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/status"
)

// ObjectFact is the fact about one object.
type ObjectFact struct {
	status.Fact
	Of *DesiredObject
}

// ByDownstream makes one fact of those about the objects of a downstream.
func ByDownstream(list []ObjectFact) (facts []status.Fact) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Of.Downstream == list[0].Of.Downstream {
			n++
		}
		if list[0].Of.Several {
			facts = append(facts, together(list[:n]))
		} else {
			facts = append(facts, list[0].Fact)
		}
		list = list[n:]
	}
	return facts
}

// together is the fact about all objects of a downstream: the worst of them says why, and the message how many are
// ready.
func together(list []ObjectFact) status.Fact {
	if unknown := list[0]; unknown.Of.ItemsUnknown {
		if unknown.Message != "" {
			unknown.Message = "its items are not known: " + unknown.Message
		}
		return unknown.Fact
	}
	name, all := list[0].Name, make([]status.Fact, len(list))
	inSeveral := slices.ContainsFunc(list, func(f ObjectFact) bool {
		return f.Of.Err == nil && f.Of.Target.Namespace != list[0].Of.Target.Namespace
	})
	for i, f := range list {
		all[i] = f.Fact
		switch {
		case f.Of.Err != nil:
			all[i].Name = fmt.Sprintf("item %d", f.Of.Item)
		case inSeveral:
			all[i].Name = f.Of.Target.String()
		default:
			all[i].Name = f.Of.Target.Name
		}
	}
	worst := status.Worst(all)
	var waiting []string
	for _, f := range all {
		switch {
		case f.Ready:
		case f.Name == worst.Name && f.Message != "":
			waiting = append([]string{f.Name + " (" + f.Message + ")"}, waiting...)
		default:
			waiting = append(waiting, f.Name)
		}
	}
	worst.Name = name
	if n := len(waiting); n > 0 {
		worst.Message = fmt.Sprintf("%d of %d ready; not ready: %s", len(list)-n, len(list), status.Few(waiting))
	} else if worst.Reason == status.ReasonReady {
		worst.Message = ""
	}
	return worst
}

// heldByObserve reports whether something would be done, or the API server asked, if mode were not Observe.
func heldByObserve(o Outcome) bool {
	return o.Action != ActionNone || o.State == StateWaiting && o.Theirs
}

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
// returned it (nil where none exists), and what failed.
type Result struct {
	Outcome Outcome
	Live    *drift.Live
	// Guessed means that Live may be of another downstream of its kind.
	Guessed bool
	Failure *Failure
	// Baseline is the projection that our last apply of Live returned; nil if it is what was sent, or not known.
	Baseline *canonical.Sum
	// Unseen is true if Live is nil and what the upstream's status records is not known to be gone: its watch may have
	// lost it from sight.
	Unseen bool
	// Unverified is Facts.Unverified, after what was done.
	Unverified bool
}

// Fact is what a downstream contributes to the upstream's conditions. health says what its programs say of the live
// object.
func (s *Settings) Fact(d *Downstream, r Result, health func() status.Fact) status.Fact {
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
	case s.Observing() && heldByObserve(r.Outcome):
		f.Progressing, f.Reason = true, status.ReasonObserved
		return f
	}
	switch {
	case r.Outcome.State.NeedsPerson():
		f.Failed = true
	case r.Outcome.State == StatePaused:
		if r.Live != nil {
			return health()
		}
		f.Progressing, f.Message = true, "no object of it is known, and nothing is created while the upstream is paused"
	default:
		if r.Live != nil && r.Outcome.State.IsApplied() {
			return withState(health(), r.Outcome)
		}
		f.Progressing = true
	}
	return f
}

// withState adds to what is said of an object that exists that it has drifted or is stale.
func withState(f status.Fact, o Outcome) status.Fact {
	switch {
	case f.Ready && o.State != StateInSync:
		f.Reason, f.Message = string(o.State), o.Message
	case !f.Ready && o.State == StateStale:
		f.Message = strings.TrimPrefix(f.Message+"; "+o.Message, "; ")
	}
	return f
}
