package pipeline

import "fmt"

// writes reports whether an action calls for a request for which those before it may have been in vain.
func (a Action) writes() bool {
	switch a {
	case ActionCreate, ActionApply, ActionDelete, ActionRelease, ActionReplaceMarks, ActionMarkOwner:
		return true
	}
	return false
}

// spaced holds a write back, whatever the state is called, as long as those before it did not settle.
func (s *subject) spaced(o Outcome) Outcome {
	if s.facts.Spaced <= 0 || !o.Action.writes() {
		return o
	}
	target := s.desired.Target
	var message string
	switch {
	case s.facts.Feedback != "":
		message = fmt.Sprintf("each write to %s changes its desired state; writes are spaced out: %s", target, s.facts.Feedback)
	case o.Action == ActionCreate:
		message = fmt.Sprintf("another client keeps deleting or changing %s; it is recreated with growing delay", target)
	case o.ReplacesPrevious:
		message = o.Message + ", and another client keeps restoring them"
	default:
		message = withContenders(fmt.Sprintf("another writer keeps undoing what is applied to %s; repairs are spaced out", target), s.facts)
	}
	return Outcome{State: StateContested, Live: o.Live, UID: o.UID, Message: message, RequeueAfter: s.facts.Spaced}
}

// spaceRemoval holds a deletion or release back as long as somebody keeps making the object anew. It reports whether it does.
func (p *Pipeline) spaceRemoval(o *Outcome, own Owned) bool {
	if own.Spaced <= 0 || !o.Action.writes() {
		return false
	}
	o.Action, o.RequeueAfter = ActionNone, own.Spaced
	o.Message = fmt.Sprintf("another client keeps recreating %s as field manager %s, with our marks; it is deleted with growing delay: give each process its own conventions",
		o.Target, p.Config.Conventions.FieldManager)
	return true
}

// spaceFinalizer holds a change of the finalizer back as long as those before did not settle. Without it nothing is made that
// needs it.
func (p *Pipeline) spaceFinalizer(in Input, out *Decision) {
	if in.FinalizerSpaced <= 0 || out.Finalizer == FinalizerLeave {
		return
	}
	added := out.Finalizer == FinalizerAdd
	out.Finalizer = FinalizerLeave
	for k := range out.Outcomes {
		o := &out.Outcomes[k]
		switch {
		case added && p.needsFinalizer(&in.Desired.Objects[k]):
			o.State, o.Action = StateContested, ActionNone
			o.Message = fmt.Sprintf("another client keeps removing the finalizer %s from the upstream; it is added with growing delay", p.Config.Conventions.Finalizer)
			fallthrough
		case k == 0:
			o.RequeueAfter = in.FinalizerSpaced
		}
	}
}
