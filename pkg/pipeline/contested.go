package pipeline

import "fmt"

// writes tells whether an action calls for a request for which those before it may have been in vain.
func (a Action) writes() bool {
	switch a {
	case ActionCreate, ActionApply, ActionDelete, ActionRelease, ActionReplaceMarks:
		return true
	}
	return false
}

// spaced holds a write back, whatever the state is called, as long as those before it did not settle.
func (s *subject) spaced(o Outcome) Outcome {
	if s.facts.Spaced <= 0 || !o.Action.writes() {
		return o
	}
	target := s.wish.Target
	var message string
	switch {
	case s.facts.Feedback != "":
		message = fmt.Sprintf("each write to %s changes what it shall be, so writes are spaced out: %s", target, s.facts.Feedback)
	case o.Action == ActionCreate:
		message = fmt.Sprintf("somebody keeps deleting or changing %s; it is made again with growing delay", target)
	case o.ReplacesPrevious:
		message = o.Message + ", and somebody keeps putting them back"
	default:
		message = withContenders(fmt.Sprintf("another writer keeps undoing what is applied to %s; repairs are spaced out", target), s.facts)
	}
	return Outcome{State: StateContested, Live: o.Live, UID: o.UID, Message: message, RequeueAfter: s.facts.Spaced}
}

// spaceRemoval holds a deletion or release back as long as somebody keeps making the object anew. It tells whether it does.
func (p *Pipeline) spaceRemoval(o *Outcome, own Owned) bool {
	if own.Spaced <= 0 || !o.Action.writes() {
		return false
	}
	o.Action, o.RequeueAfter = ActionNone, own.Spaced
	o.Message = fmt.Sprintf("somebody keeps making %s anew as field manager %s, with our marks, so it goes with growing delay: give each process conventions of its own",
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
	for i := range out.Outcomes {
		o := &out.Outcomes[i]
		switch {
		case added && p.needsFinalizer(wishOf(in.Desired, i)):
			o.State, o.Action = StateContested, ActionNone
			o.Message = fmt.Sprintf("somebody keeps taking the finalizer %s off the upstream; it is added with growing delay", p.Config.Conventions.Finalizer)
			fallthrough
		case i == 0:
			o.RequeueAfter = in.FinalizerSpaced
		}
	}
}
