package decide

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

// decideLeftovers decides on objects of ours that are not a target. Superseded ones are deleted once their successor
// exists and nothing may still use them; those of a downstream that is no longer wanted do not wait for a successor. A
// failure or an open question deletes nothing: if several downstreams have one kind and nothing records which of them
// an object was, all must be in place.
func decideLeftovers(s *operator.Settings, in operator.Input, out *operator.Decision) {
	outcomes := slices.Clone(out.Outcomes)
	for _, own := range in.Leftovers {
		successors := successors(s, in, outcomes, own)
		current := weakest(successors, own.Downstream)
		o := leftover(in, own)
		switch keeps := keepsValues(s, in, own, current, outcomes); {
		case in.Selected && isNameless(s, own):
			o.State, o.Message = operator.StateSuperseded,
				"it stays: nothing says of which downstream it is; delete it if nothing needs it"
		case keeps != "":
			o.State, o.Action = operator.StateSuperseded, operator.ActionRelease
			o.Message = keeps + ": it is kept, and is yours from now on"
		case !own.Certain && !kindInPlace(s, own.Downstream, outcomes):
			o.State, o.Message = operator.StateSuperseded, "it stays until every downstream of its kind exists"
		case current.State == operator.StateUnwanted:
			o.State, o.Message = operator.StateUnwanted, current.Message
			o.Action = removalAction(s, own)
		case current.State == "":
			o.State, o.Message = operator.StateSuperseded, "no item gives it"
			o.Action = removalAction(s, own)
		case inPlace(current):
			o.State, o.Message = operator.StateSuperseded, fmt.Sprintf("%s has replaced it", current.Target)
			if s.Downstreams[own.Downstream].Several() {
				o.Message = "no item gives it"
			}
			if !own.Recorded && s.Config.Status.Downstreams != "" {
				o.Message = "the status does not record of which downstream it is, and all of its kind exist elsewhere"
			}
			o.Action = removalAction(s, own)
		case in.Desired.Unknown(own.Downstream):
			o.State, o.Message = current.State, current.Message
		default:
			o.State, o.Message = operator.StateSuperseded, fmt.Sprintf("it stays until %s exists",
				nameOf(current.Target))+nameTaken(current)
		}
		out.Leftovers = append(out.Leftovers, o)
	}
	holdUsed(s, in, outcomes, out.Leftovers, true)
	for i := range out.Leftovers {
		if o := &out.Leftovers[i]; spaceRemoval(s, o, in.Leftovers[i]) {
			c := &out.Outcomes[o.Object]
			c.State, c.Action, c.Message, c.RequeueAfter = operator.StateContested,
				operator.ActionNone, o.Message, o.RequeueAfter
		}
	}
}

// isNameless reports whether nothing says of which downstream an object is, though objects say that themselves by the
// config: it is from before that, and may be of one that the config has no more.
func isNameless(s *operator.Settings, own operator.Owned) bool {
	return s.NameKey() != "" && own.Live.Downstream == "" && !own.Certain && !own.Live.Deleting &&
		!s.Downstreams[own.Downstream].OwnsFields()
}

// keepsValues says why an object at no target may be the only one with its generated values; empty if it is not.
func keepsValues(
	s *operator.Settings, in operator.Input, own operator.Owned, current operator.Outcome, outcomes []operator.Outcome,
) string {
	if of := mayHaveLost(s, in, own, outcomes); of != "" {
		return "it may have the last value of " + of
	}
	if !inPlace(current) {
		return ""
	}
	if k := withOtherValues(s, in, own, current.Object); k != operator.NoIndex {
		return in.Desired.Objects[k].Target.String() + " has other random values than it"
	}
	return ""
}

// mayHaveLost names the object that is about to get new values though an object at no target may have the last ones;
// empty if there is none. One that is certainly of its downstream may have them if it says of no item, though there
// are items now, or if no item is known as its own, and the other object's may be its item after an edit.
func mayHaveLost(s *operator.Settings, in operator.Input, own operator.Owned, outcomes []operator.Outcome) string {
	if own.Live.Deleting {
		return ""
	}
	for _, o := range outcomes {
		if o.Action == operator.ActionNone || o.LostValues == "" || !slices.Contains(homesOf(s, own), o.Downstream) {
			continue
		}
		isEdited := in.Desired.Objects[o.Object].UnnamedItem && wantedFor(in, own.Downstream, own.Live) == operator.NoIndex
		if !own.Certain || isEdited || precedesItems(s, own) {
			return s.Downstreams[o.Downstream].Config.Kind + " " + o.Target.String()
		}
	}
	return ""
}

// precedesItems reports whether an object is of a downstream that has items now, and had none when it was applied.
func precedesItems(s *operator.Settings, own operator.Owned) bool {
	d := s.Downstreams[own.Downstream]
	return d.HasGenerated() && d.Several() && generated.ItemIn(own.Live.Hash) == ""
}

// withOtherValues is the object that has replaced one at no target and lacks a generated value of it, because it
// existed already: nothing else may have that. NoIndex: there is none. Of a downstream with one object, that is k.
func withOtherValues(s *operator.Settings, in operator.Input, own operator.Owned, k int) int {
	if s.Downstreams[own.Downstream].Several() && !precedesItems(s, own) {
		k = wantedFor(in, own.Downstream, own.Live)
	}
	if own.Live.Deleting || own.Live.Secret == nil || k == operator.NoIndex {
		return operator.NoIndex
	}
	now := in.Facts[k].Live
	if now != nil && now.Secret != nil && slices.ContainsFunc(own.Live.Secret.Values, func(value canonical.Sum) bool {
		return !slices.Contains(now.Secret.Values, value)
	}) {
		return k
	}
	return operator.NoIndex
}

func nameOf(at operator.Ref) string {
	if at.Name == "" {
		return "its successor"
	}
	return at.String()
}

// nameTaken says of the successor of a superseded object that another upstream has its name.
func nameTaken(successor operator.Outcome) string {
	if successor.State == operator.StateConflict && successor.Live != nil && successor.Live.Managed {
		return ", whose name another upstream has: upstreams that take over each other's names need a free name in between"
	}
	return ""
}

// successors are the outcomes of objects that may replace one at no target. Of a downstream with several, an object
// that was wanted already while that one was does not, whatever holds it up: else one that cannot be created, in a
// namespace of someone else, would keep all others from being deleted. After a restart nobody knows which was first:
// then each may replace it.
func successors(
	s *operator.Settings, in operator.Input, outcomes []operator.Outcome, own operator.Owned,
) []operator.Outcome {
	if !s.Downstreams[own.Downstream].Several() || in.Desired == nil || in.Facts == nil ||
		len(in.Desired.Invalid) > 0 || s.Paused(in.Upstream) {
		return outcomes // without facts, nothing is wanted
	}
	return slices.DeleteFunc(slices.Clone(outcomes), func(o operator.Outcome) bool {
		w := &in.Desired.Objects[o.Object]
		switch since := in.Facts[o.Object].WantedSince; {
		case o.Downstream != own.Downstream, w.Err != nil, !w.Wanted, inPlace(o):
			return false
		default:
			return since < own.UnwantedSince
		}
	})
}

// weakest is the outcome of a downstream that is neither in place nor unwanted, if there is one; else one that is in
// place, if there is one.
func weakest(outcomes []operator.Outcome, downstream int) (found operator.Outcome) {
	for _, o := range outcomes {
		switch {
		case o.Downstream != downstream:
		case !inPlace(o) && o.State != operator.StateUnwanted:
			return o
		case found.State == "" || found.State == operator.StateUnwanted:
			found = o
		}
	}
	return found
}

func kindInPlace(s *operator.Settings, i int, outcomes []operator.Outcome) bool {
	gk := s.Downstreams[i].GVK().GroupKind()
	for j, d := range s.Downstreams {
		if o := weakest(outcomes, j); d.GVK().GroupKind() == gk && !inPlace(o) && o.State != operator.StateUnwanted {
			return false
		}
	}
	return true
}

// Leftovers sorts out which of the upstream's live objects are at no target. owned has, by downstream, the objects that
// have the mark of the upstream with this uid, or may be its own without; recorded is what its status records, and
// known has the uids that a witness knows, each with its downstream, or NoIndex where only its kind is known. A nil
// desired state has no targets: everything is left over, as at deletion. Objects that we do not own for all that are
// left out, and so are those that deletion.before made, which have a way of their own.
func Leftovers(s *operator.Settings,
	upstream types.UID, w *operator.Desired, owned [][]*drift.Live, recorded []status.Recorded, known map[types.UID]int,
) []operator.Owned {
	var left []operator.Owned
	seen := map[types.UID]bool{}
	for i := range s.Downstreams {
		for _, live := range owned[i] {
			if seen[live.UID] || marks.IsBeforeObject(live) || isTarget(s, w, i, live, recorded) {
				continue
			}
			home, certain := HomeOf(s, i, live, recorded)
			remembered, isKnown := known[live.UID]
			if !certain && isKnown && remembered != operator.NoIndex {
				home, certain = remembered, true
			}
			if !marks.OwnsFor(s.Downstreams[home], live, upstream, isKnown) {
				continue
			}
			seen[live.UID] = true
			if k := slices.IndexFunc(owned[home], func(o *drift.Live) bool { return o.UID == live.UID }); k >= 0 {
				live = owned[home][k] // as its own watch sees it: another one leaves out other fields
			}
			left = append(left, operator.Owned{Downstream: home, Live: live, Recorded: certain || isKnown,
				Certain: certain || soleOfKind(s, i) && (s.NameKey() == "" || s.Downstreams[home].OwnsFields())})
		}
	}
	// what is confirmed, and said, must not depend on the order of the cache
	slices.SortStableFunc(left, func(a, b operator.Owned) int {
		return cmp.Or(cmp.Compare(a.Downstream, b.Downstream), operator.RefOf(a.Live).Compare(operator.RefOf(b.Live)))
	})
	return left
}

func isTarget(s *operator.Settings, w *operator.Desired, i int, live *drift.Live, recorded []status.Recorded) bool {
	if w == nil {
		return false
	}
	gk := s.Downstreams[i].GVK().GroupKind()
	for _, o := range w.Objects {
		if o.Wanted && o.Err == nil && o.Target == operator.RefOf(live) &&
			s.Downstreams[o.Downstream].GVK().GroupKind() == gk {
			return SiblingAt(s, w, o.Downstream, live, recorded) == ""
		}
	}
	return false
}

// removalAction is what deletionPolicy asks for an object that is to go.
func removalAction(s *operator.Settings, own operator.Owned) operator.Action {
	switch {
	case own.Live.Deleting:
		return operator.ActionNone
	case keeps(s, own):
		return operator.ActionRelease
	}
	return operator.ActionDelete
}
