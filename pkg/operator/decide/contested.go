package decide

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// spaced holds a write back, whatever the state is called, as long as those before it did not settle.
func spaced(s *subject, o operator.Outcome) operator.Outcome {
	if s.facts.Spaced <= 0 || !writes(o.Action) {
		return o
	}
	target := s.desired.Target
	var message string
	switch {
	case s.facts.Feedback != "":
		message = fmt.Sprintf("each write to %s changes its desired state; writes are spaced out: %s",
			target, s.facts.Feedback)
	case o.Action == operator.ActionCreate && s.facts.Verdict.Contenders == "":
		message = fmt.Sprintf("another client keeps deleting or changing %s; it is recreated with growing delay", target)
	case o.ReplacesPrevious:
		message = o.Message + ", and another client keeps restoring them"
	default:
		message = withContenders(fmt.Sprintf("another writer keeps undoing what is applied to %s; repairs are spaced out",
			target), s.facts)
	}
	return operator.Outcome{State: operator.StateContested, Live: o.Live, UID: o.UID, Message: message,
		RequeueAfter: s.facts.Spaced}
}

// spaceRemoval holds a deletion or release back as long as someone keeps making the object again. It reports whether it
// does.
func spaceRemoval(s *operator.Settings, o *operator.Outcome, own operator.Owned) bool {
	if own.Spaced <= 0 || !writes(o.Action) {
		return false
	}
	o.Action, o.RequeueAfter = operator.ActionNone, own.Spaced
	o.Message = fmt.Sprintf("another client keeps recreating %s as field manager %s, with our marks; "+
		"it is deleted with growing delay: give each process its own conventions",
		o.Target, s.Config.Conventions.FieldManager)
	return true
}

// spaceFinalizer holds a change of the finalizer back as long as those before did not settle. Without it nothing is
// made that needs it.
func spaceFinalizer(s *operator.Settings, in operator.Input, out *operator.Decision) {
	if in.FinalizerSpaced <= 0 || out.Finalizer == operator.FinalizerLeave {
		return
	}
	added := out.Finalizer == operator.FinalizerAdd
	out.Finalizer = operator.FinalizerLeave
	for k := range out.Outcomes {
		o := &out.Outcomes[k]
		switch {
		case added && !isKept(*o) && needsFinalizer(s, &in.Desired.Objects[k]):
			o.State, o.Action = operator.StateContested, operator.ActionNone
			o.Message = fmt.Sprintf(
				"another client keeps removing the finalizer %s from the upstream; it is added with growing delay",
				s.Config.Conventions.Finalizer)
			fallthrough
		case k == 0:
			o.RequeueAfter = in.FinalizerSpaced
		}
	}
}

// writes reports whether an action calls for a request for which those before it may have had no effect.
func writes(a operator.Action) bool {
	switch a {
	case operator.ActionCreate, operator.ActionApply, operator.ActionDelete, operator.ActionRelease,
		operator.ActionReplaceMarks, operator.ActionMarkOwner:
		return true
	}
	return false
}
