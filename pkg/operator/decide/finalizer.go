package decide

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// finalizerAction asks for the finalizer where something exists, or is about to, that no owner reference cleans up, or that
// the config does not let go without more ado.
func finalizerAction(s *operator.Settings, in operator.Input, out *operator.Decision) operator.FinalizerAction {
	if s.Config.Conventions.Finalizer == "" && !in.HasPreviousFinalizer || s.HasRows() {
		return operator.FinalizerLeave
	}
	if WouldLose(s, in) {
		return operator.FinalizerAdd
	}
	for k, o := range out.Outcomes {
		needs := needsFinalizer(s, &in.Desired.Objects[k])
		switch {
		case o.State == operator.StatePaused, o.State == operator.StateInvalid: // what exists is left alone, and so is what guards it
			return operator.FinalizerLeave
		case needs && in.HasFinalizer:
			return operator.FinalizerLeave
		case needs && o.State != operator.StateConflict: // which makes nothing, so it takes no finalizer
			return operator.FinalizerAdd
		}
	}
	heldBy := func(o operator.Outcome) bool { return s.HoldsDeletion() || !referenced(o.Live, in) }
	if !in.HasFinalizer || inDoubt(in.Desired) || slices.ContainsFunc(out.Leftovers, heldBy) || mayKeepHolder(s, in) {
		return operator.FinalizerLeave
	}
	return operator.FinalizerRemove
}

// WouldLose reports whether the garbage collector would delete something with an upstream that has no finalizer, which the
// config does not let go without more ado. That may be since the config has changed.
func WouldLose(s *operator.Settings, in operator.Input) bool {
	if in.HasFinalizer || s.Config.Conventions.Finalizer == "" {
		return false
	}
	is := func(live *drift.Live, downstream int) bool {
		return live != nil && referenced(live, in) &&
			(s.HoldsDeletion() || s.Downstreams[downstream].Config.DeletionPolicy == config.DeletionOrphan)
	}
	for k, f := range in.Facts {
		if is(f.Live, in.Desired.Objects[k].Downstream) {
			return true
		}
	}
	return slices.ContainsFunc(in.Leftovers, func(own operator.Owned) bool { return is(own.Live, own.Downstream) })
}

// Save decides what is done for an upstream of which all else is left as it is, as while guard holds it: where its deletion would lose what
// the config keeps, it gets the finalizer, and its objects the owner annotation. in.Leftovers are all its objects.
func Save(s *operator.Settings, in operator.Input) (d operator.Decision) {
	if s.Observing() {
		return d
	}
	if WouldLose(s, in) && in.FinalizerSpaced == 0 {
		d.Finalizer = operator.FinalizerAdd
	}
	for _, own := range in.Leftovers {
		o := leftover(in, own)
		if own.Spaced == 0 {
			saveOne(s, in, &o, own)
		}
		d.Leftovers = append(d.Leftovers, o)
	}
	return d
}

// MayLose reports whether there are upstreams of which the garbage collector would delete what the config keeps.
func MayLose(s *operator.Settings) bool {
	isOrphan := func(d *operator.Downstream) bool { return d.Config.DeletionPolicy == config.DeletionOrphan }
	return s.Config.Conventions.Finalizer != "" && (s.HoldsDeletion() || slices.ContainsFunc(s.Downstreams, isOrphan))
}

// saveFromCollector has what deletionPolicy keeps, and nothing is done for now, lose its owner reference: when its upstream
// is deleted in the foreground, the garbage collector deletes what refers to it before any finalizer counts. That may be
// since the config has changed.
func saveFromCollector(s *operator.Settings, in operator.Input, out *operator.Decision) {
	for k := range out.Outcomes {
		o := &out.Outcomes[k]
		own := operator.Owned{Downstream: o.Downstream, Live: o.Live, Certain: true}
		if o.Live != nil && !o.Theirs && slices.Contains(LeftAlone, o.State) && in.Facts[k].Spaced == 0 {
			saveOne(s, in, o, own)
		}
	}
	for i := range out.Leftovers {
		if own := in.Leftovers[i]; own.Spaced == 0 {
			saveOne(s, in, &out.Leftovers[i], own)
		}
	}
}

// LeftAlone are the states of existing objects that do not get the present document.
var LeftAlone = []operator.State{
	operator.StatePaused, operator.StateInvalid, operator.StateRenderFailed, operator.StateWaiting, operator.StateStale,
}

// IsCollected reports whether the garbage collector would delete an object of ours that deletionPolicy keeps.
func IsCollected(s *operator.Settings, in operator.Input, own operator.Owned) bool {
	return keeps(s, own) && s.Config.Conventions.Owner.Annotation != "" && !s.Downstreams[own.Downstream].OwnsFields() && !s.Observing() &&
		!own.Live.Deleting && !own.Live.HasPreviousNames && referenced(own.Live, in)
}

func saveOne(s *operator.Settings, in operator.Input, o *operator.Outcome, own operator.Owned) {
	if o.Action == operator.ActionNone && IsCollected(s, in, own) {
		o.Action = operator.ActionMarkOwner
		o.Message += "; only its owner reference becomes the owner annotation, since deletionPolicy " +
			string(config.DeletionOrphan) + " keeps it"
	}
}

// needsFinalizer reports whether what is wanted is not let go without more ado, or is cleaned up by no owner reference.
func needsFinalizer(s *operator.Settings, w *operator.DesiredObject) bool {
	return w.Wanted && (s.HoldsDeletion() || !w.Reference)
}

// inDoubt reports whether of some downstream it is not known what is wanted. Then what exists is left alone, with the finalizer;
// what is created beside it may need the finalizer all the same.
func inDoubt(d *operator.Desired) bool {
	return slices.ContainsFunc(d.Objects, func(o operator.DesiredObject) bool { return o.Err != nil })
}
