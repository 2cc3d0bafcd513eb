package decide

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

// finalizerAction asks for the finalizer where something exists, or is about to, that no owner reference cleans up, or
// that the config does not let go without more ado.
func finalizerAction(s *operator.Settings, in operator.Input, out *operator.Decision) operator.FinalizerAction {
	if s.Config.Conventions.Finalizer == "" && !in.HasPreviousFinalizer || s.HasRows() {
		return operator.FinalizerLeave
	}
	heldBy := func(o operator.Outcome) bool { return s.HoldsDeletion() || !referenced(o.Live, in) }
	switch needs := isWantedUnder(s, in, out) || isLeftBehind(s, in, out); {
	case needs && !in.HasFinalizer:
		return operator.FinalizerAdd
	case needs, !in.HasFinalizer, inDoubt(in.Desired), slices.ContainsFunc(out.Outcomes, isKept),
		slices.ContainsFunc(out.Leftovers, heldBy), mayKeepHolder(s, in):
		return operator.FinalizerLeave
	}
	return operator.FinalizerRemove
}

// isWantedUnder reports whether something is wanted that needs the finalizer. A conflict makes nothing, so it takes no
// finalizer.
func isWantedUnder(s *operator.Settings, in operator.Input, out *operator.Decision) bool {
	return slices.ContainsFunc(out.Outcomes, func(o operator.Outcome) bool {
		return !isKept(o) && needsFinalizer(s, &in.Desired.Objects[o.Object]) &&
			(in.HasFinalizer || o.State != operator.StateConflict)
	})
}

// isKept: what exists is left alone, and so is what guards it.
func isKept(o operator.Outcome) bool {
	return o.State == operator.StatePaused || o.State == operator.StateInvalid
}

// isLeftBehind reports whether a deletion of an upstream without the finalizer would not do what the config says about
// what exists: the garbage collector would delete what the config does not let go without more ado, or nobody would
// delete what is left alone now. That may be since the config has changed, or since the finalizer was removed.
func isLeftBehind(s *operator.Settings, in operator.Input, out *operator.Decision) bool {
	for k, o := range out.Outcomes {
		live, unchanged := in.Facts[k].Live, o.Action == operator.ActionNone && !o.Theirs &&
			o.State.IsLeftAlone()
		if live != nil && (unchanged || referenced(live, in)) && isHeld(s, in, live, o.Downstream) {
			return true
		}
	}
	for i, o := range out.Leftovers {
		live := in.Leftovers[i].Live
		if (o.Action == operator.ActionNone || referenced(live, in)) && isHeld(s, in, live, o.Downstream) {
			return true
		}
	}
	return (inDoubt(in.Desired) || slices.ContainsFunc(out.Outcomes, isKept)) && recordsHeld(s, in)
}

// isHeld reports whether only the finalizer does with an object of ours what the config says of it when its upstream is
// deleted.
func isHeld(s *operator.Settings, in operator.Input, live *drift.Live, downstream int) bool {
	policy := s.Downstreams[downstream].Config.DeletionPolicy
	return s.HoldsDeletion() || policy == config.DeletionOrphan || !referenced(live, in) && !live.Deleting
}

// recordsHeld is isHeld for an object that the status records, and that may exist without being seen.
func recordsHeld(s *operator.Settings, in operator.Input) bool {
	return s.TrustsStatus() && slices.ContainsFunc(s.Recorded(in.Upstream), func(rec status.Recorded) bool {
		i, at := s.IndexOf(rec.Name), operator.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}
		return i >= 0 && rec.UID != "" && !rec.Done() &&
			(s.HoldsDeletion() || !marks.ReferenceLegal(s, s.Downstreams[i], in.Upstream.GetNamespace(), at))
	})
}

// Save decides what is done for an upstream of which all else is left as it is, as while guard holds it: where its
// deletion would lose what the config keeps, or leave behind what it deletes, it gets the finalizer, and its objects
// the owner annotation. in.Leftovers are all its objects.
func Save(s *operator.Settings, in operator.Input) (d operator.Decision) {
	if s.Observing() || s.HasRows() {
		return d
	}
	held := func(own operator.Owned) bool { return isHeld(s, in, own.Live, own.Downstream) }
	if !in.HasFinalizer && s.Config.Conventions.Finalizer != "" && in.FinalizerSpaced == 0 &&
		(slices.ContainsFunc(in.Leftovers, held) || recordsHeld(s, in)) {
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

// MayLose reports whether there are upstreams whose deletion needs the finalizer.
func MayLose(s *operator.Settings) bool {
	up := s.Upstream
	isHeld := func(d *operator.Downstream) bool {
		same := !up.Namespaced || d.Kind.Namespaced && d.Config.TargetNamespaces.From == config.NamespacesSame
		return !same || !marks.ReferenceLegal(s, d, "", operator.Ref{})
	}
	return s.Config.Conventions.Finalizer != "" && (s.HoldsDeletion() || slices.ContainsFunc(s.Downstreams, isHeld))
}

// saveFromCollector has what deletionPolicy keeps, and nothing is done for now, lose its owner reference: when its
// upstream is deleted in the foreground, the garbage collector deletes what refers to it before any finalizer counts.
// That may be since the config has changed.
func saveFromCollector(s *operator.Settings, in operator.Input, out *operator.Decision) {
	for k := range out.Outcomes {
		o := &out.Outcomes[k]
		own := operator.Owned{Downstream: o.Downstream, Live: o.Live, Certain: true}
		if o.Live != nil && !o.Theirs && o.State.IsLeftAlone() && in.Facts[k].Spaced == 0 {
			saveOne(s, in, o, own)
		}
	}
	for i := range out.Leftovers {
		if own := in.Leftovers[i]; own.Spaced == 0 {
			saveOne(s, in, &out.Leftovers[i], own)
		}
	}
}

// IsCollected reports whether the garbage collector would delete an object of ours that deletionPolicy keeps.
func IsCollected(s *operator.Settings, in operator.Input, own operator.Owned) bool {
	return keeps(s, own) && s.Config.Conventions.Owner.Annotation != "" &&
		!s.Downstreams[own.Downstream].OwnsFields() && !s.Observing() &&
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

// inDoubt reports whether of some downstream it is not known what is wanted. Then what exists is left alone, with the
// finalizer; what is created beside it may need the finalizer all the same.
func inDoubt(d *operator.Desired) bool {
	return slices.ContainsFunc(d.Objects, func(o operator.DesiredObject) bool { return o.Err != nil })
}
