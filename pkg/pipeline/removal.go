package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/status"
)

// decideLeftovers decides on objects of ours that are not a target. Superseded ones are deleted once their successor exists and nothing
// may still use them; those of a downstream that is no longer wanted do not wait for a successor. A failure or an open
// question deletes nothing: if several downstreams have one kind and nothing records which of them an object was, all must be in place.
func (p *Pipeline) decideLeftovers(in Input, out *Decision) {
	outcomes := slices.Clone(out.Outcomes)
	for _, own := range in.Leftovers {
		successors := p.successors(in, outcomes, own)
		current := weakest(successors, own.Downstream)
		o := leftover(in, own)
		switch {
		case !own.Certain && !p.kindInPlace(own.Downstream, outcomes):
			o.State, o.Message = StateSuperseded, "it stays until every downstream of its kind exists"
		case current.State == StateUnwanted:
			o.State, o.Message = StateUnwanted, current.Message
			o.Action = p.removalAction(own)
		case current.State == "":
			o.State, o.Message = StateSuperseded, "no item gives it"
			o.Action = p.removalAction(own)
		case inPlace(current):
			o.State, o.Message = StateSuperseded, fmt.Sprintf("%s has replaced it", current.Target)
			if p.Downstreams[own.Downstream].Several() {
				o.Message = "no item gives it"
			}
			if !own.Recorded && p.Config.Status.Downstreams != "" {
				o.Message = "the status does not record of which downstream it is, and all of its kind exist elsewhere"
			}
			o.Action = p.removalAction(own)
		case in.Desired.Unknown(own.Downstream):
			o.State, o.Message = current.State, current.Message
		default:
			o.State, o.Message = StateSuperseded, fmt.Sprintf("it stays until %s exists", nameOf(current.Target))+nameTaken(current)
		}
		out.Leftovers = append(out.Leftovers, o)
	}
	p.holdUsed(in, outcomes, out.Leftovers, true)
	for i := range out.Leftovers {
		if o := &out.Leftovers[i]; p.spaceRemoval(o, in.Leftovers[i]) {
			c := &out.Outcomes[o.Object]
			c.State, c.Action, c.Message, c.RequeueAfter = StateContested, ActionNone, o.Message, o.RequeueAfter
		}
	}
}

func nameOf(at Ref) string {
	if at.Name == "" {
		return "its successor"
	}
	return at.String()
}

// nameTaken says of the successor of a superseded object that another upstream has its name.
func nameTaken(successor Outcome) string {
	if successor.State == StateConflict && successor.Live != nil && successor.Live.Managed {
		return ", whose name another upstream has: upstreams that take over each other's names need a free name in between"
	}
	return ""
}

// successors are the outcomes of objects that may replace one at no target. Of a downstream with several, an object that was wanted already
// while that one was does not, whatever holds it up: else one that cannot be created, in a namespace of somebody else, would keep all others
// from being deleted. After a restart nobody knows which was first: then each may replace it.
func (p *Pipeline) successors(in Input, outcomes []Outcome, own Owned) []Outcome {
	if !p.Downstreams[own.Downstream].Several() || in.Desired == nil || in.Facts == nil || len(in.Desired.Invalid) > 0 || p.Paused(in.Upstream) {
		return outcomes // without facts, nothing is wanted
	}
	return slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool {
		w := &in.Desired.Objects[o.Object]
		switch since := in.Facts[o.Object].WantedSince; {
		case o.Downstream != own.Downstream, w.Err != nil, !w.Wanted, inPlace(o):
			return false
		default:
			return since < own.UnwantedSince
		}
	})
}

// leftover is the outcome for an object at no target, before it is decided on.
func leftover(in Input, own Owned) Outcome {
	o := Outcome{Downstream: own.Downstream, Object: own.Downstream, Live: own.Live, UID: own.Live.UID, Target: refOf(own.Live)}
	if in.Desired != nil {
		o.Object = in.Desired.First(own.Downstream)
	}
	return o
}

// weakest is the outcome of a downstream that is neither in place nor unwanted, if there is one; else one that is in place, if there is one.
func weakest(outcomes []Outcome, downstream int) (found Outcome) {
	for _, o := range outcomes {
		switch {
		case o.Downstream != downstream:
		case !inPlace(o) && o.State != StateUnwanted:
			return o
		case found.State == "" || found.State == StateUnwanted:
			found = o
		}
	}
	return found
}

func inPlace(o Outcome) bool {
	return o.State == StateInSync || o.State == StateDrifted || o.State == StateStale || (o.State == StateContested && o.Live != nil)
}

func (p *Pipeline) kindInPlace(i int, outcomes []Outcome) bool {
	gk := p.Downstreams[i].GVK().GroupKind()
	for j, d := range p.Downstreams {
		if o := weakest(outcomes, j); d.GVK().GroupKind() == gk && !inPlace(o) && o.State != StateUnwanted {
			return false
		}
	}
	return true
}

// Leftovers sorts out which of the upstream's live objects stand at no target. owned has, by downstream, the objects
// that have the mark of the upstream with this uid, or may be its own without; recorded is what its status records, and known has the
// uids that a witness knows, each with its downstream, or NoIndex where only its kind is known. A nil desired state has no targets:
// everything is left over, as at deletion. Objects that we do not own for all that are left out, and so are those that deletion.before
// made, which have a way of their own.
func (p *Pipeline) Leftovers(
	upstream types.UID, w *Desired, owned [][]*drift.Live, recorded []status.Recorded, known map[types.UID]int,
) []Owned {
	var left []Owned
	seen := map[types.UID]bool{}
	for i := range p.Downstreams {
		for _, live := range owned[i] {
			if seen[live.UID] || IsBeforeObject(live) || p.isTarget(w, i, live, recorded) {
				continue
			}
			home, certain := p.HomeOf(i, live, recorded)
			remembered, isKnown := known[live.UID]
			if !certain && isKnown && remembered != NoIndex {
				home, certain = remembered, true
			}
			if !p.Downstreams[home].Owns(live, upstream, isKnown) {
				continue
			}
			seen[live.UID] = true
			left = append(left, Owned{Downstream: home, Live: live, Recorded: certain || isKnown, Certain: certain || p.soleOfKind(i)})
		}
	}
	slices.SortStableFunc(left, func(a, b Owned) int { // what is confirmed, and said, must not depend on the order of the cache
		return cmp.Or(cmp.Compare(a.Downstream, b.Downstream), refOf(a.Live).Compare(refOf(b.Live)))
	})
	return left
}

func (p *Pipeline) isTarget(w *Desired, i int, live *drift.Live, recorded []status.Recorded) bool {
	if w == nil {
		return false
	}
	gk := p.Downstreams[i].GVK().GroupKind()
	for _, o := range w.Objects {
		if o.Wanted && o.Err == nil && o.Target == refOf(live) && p.Downstreams[o.Downstream].GVK().GroupKind() == gk {
			return p.SiblingAt(w, o.Downstream, live, recorded) == ""
		}
	}
	return false
}

// HomeOf says whose object live was, which was seen in the watch of downstream i and of none before it: what the status
// records, else the first of its kind whose objects may stand in that namespace.
func (p *Pipeline) HomeOf(i int, live *drift.Live, recorded []status.Recorded) (home int, certain bool) {
	for _, r := range recorded {
		if r.UID != live.UID {
			continue
		}
		for j, d := range p.Downstreams {
			if d.Name == r.Name {
				return j, true
			}
		}
	}
	gk := p.Downstreams[i].GVK().GroupKind()
	for j, d := range p.Downstreams[i:] {
		if d.GVK().GroupKind() == gk && p.mayStandIn(d, live) {
			return i + j, false
		}
	}
	return i, false
}

// mayStandIn reports whether targetNamespaces allow an object where it stands, by the upstream that its owner annotation names.
func (p *Pipeline) mayStandIn(d *Downstream, live *drift.Live) bool {
	switch d.Config.TargetNamespaces.From {
	case config.NamespacesList:
		return slices.Contains(d.Config.TargetNamespaces.Names, live.Namespace)
	case config.NamespacesSame:
		own, _, ok := ParseOwnerMark(live.OwnerMark)
		if p.upstreamIsNamespace() {
			own.Namespace = own.Name
		}
		return !ok || live.MarkVoid || own.Namespace == live.Namespace
	}
	return true
}

func (p *Pipeline) soleOfKind(i int) bool {
	gk := p.Downstreams[i].GVK().GroupKind()
	for j, d := range p.Downstreams {
		if j != i && d.GVK().GroupKind() == gk {
			return false
		}
	}
	return true
}

// removalAction is what deletionPolicy asks for an object that is to go.
func (p *Pipeline) removalAction(own Owned) Action {
	switch {
	case own.Live.Deleting:
		return ActionNone
	case p.keeps(own):
		return ActionRelease
	}
	return ActionDelete
}

// keeps reports whether an object outlives its upstream: in doubt about whose it was, any downstream of its kind that
// says Orphan saves it.
func (p *Pipeline) keeps(own Owned) bool {
	gk := p.Downstreams[own.Downstream].GVK().GroupKind()
	for j, d := range p.Downstreams {
		same := j == own.Downstream || (!own.Certain && d.GVK().GroupKind() == gk)
		if same && d.Config.DeletionPolicy == config.DeletionOrphan {
			return true
		}
	}
	return false
}

func refOf(live *drift.Live) Ref { return Ref{Namespace: live.Namespace, Name: live.Name} }

// Unknown reports whether it is not known which objects downstream i should have, so that none of it is superseded either.
func (d *Desired) Unknown(i int) bool {
	return d != nil && (len(d.Invalid) > 0 || slices.ContainsFunc(d.of(i), func(o DesiredObject) bool { return o.Err != nil }))
}

// finalizerAction asks for the finalizer where something stands, or is about to, that no owner reference cleans up, or that
// the config does not let go without more ado.
func (p *Pipeline) finalizerAction(in Input, out *Decision) FinalizerAction {
	if p.Config.Conventions.Finalizer == "" && !in.HasPreviousFinalizer || p.HasRows() {
		return FinalizerLeave
	}
	if p.WouldLose(in) {
		return FinalizerAdd
	}
	for k, o := range out.Outcomes {
		needs := p.needsFinalizer(&in.Desired.Objects[k])
		switch {
		case o.State == StatePaused, o.State == StateInvalid: // what exists is left alone, and so is what guards it
			return FinalizerLeave
		case needs && in.HasFinalizer:
			return FinalizerLeave
		case needs && o.State != StateConflict: // which makes nothing, so it takes no finalizer
			return FinalizerAdd
		}
	}
	heldBy := func(o Outcome) bool { return p.HoldsDeletion() || !referenced(o.Live, in) }
	if !in.HasFinalizer || in.Desired.inDoubt() || slices.ContainsFunc(out.Leftovers, heldBy) || p.mayKeepHolder(in) {
		return FinalizerLeave
	}
	return FinalizerRemove
}

// WouldLose reports whether the garbage collector would delete something with an upstream that has no finalizer, which the config does not let
// go without more ado. That may be since the config has changed.
func (p *Pipeline) WouldLose(in Input) bool {
	if in.HasFinalizer || p.Config.Conventions.Finalizer == "" {
		return false
	}
	is := func(live *drift.Live, downstream int) bool {
		return live != nil && referenced(live, in) && (p.HoldsDeletion() || p.Downstreams[downstream].Config.DeletionPolicy == config.DeletionOrphan)
	}
	for k, f := range in.Facts {
		if is(f.Live, in.Desired.Objects[k].Downstream) {
			return true
		}
	}
	return slices.ContainsFunc(in.Leftovers, func(own Owned) bool { return is(own.Live, own.Downstream) })
}

// Save decides what is done for an upstream of which all else is left as it is, as while guard holds it: where its deletion would lose what
// the config keeps, it gets the finalizer, and its objects the owner annotation. in.Leftovers are all its objects.
func (p *Pipeline) Save(in Input) (d Decision) {
	if p.Observing() {
		return d
	}
	if p.WouldLose(in) && in.FinalizerSpaced == 0 {
		d.Finalizer = FinalizerAdd
	}
	for _, own := range in.Leftovers {
		o := leftover(in, own)
		if own.Spaced == 0 {
			p.saveOne(in, &o, own)
		}
		d.Leftovers = append(d.Leftovers, o)
	}
	return d
}

// MayLose reports whether there are upstreams of which the garbage collector would delete what the config keeps.
func (p *Pipeline) MayLose() bool {
	isOrphan := func(d *Downstream) bool { return d.Config.DeletionPolicy == config.DeletionOrphan }
	return p.Config.Conventions.Finalizer != "" && (p.HoldsDeletion() || slices.ContainsFunc(p.Downstreams, isOrphan))
}

// saveFromCollector has what deletionPolicy keeps, and nothing is done for now, lose its owner reference: when its upstream is deleted in the
// foreground, the garbage collector deletes what refers to it before any finalizer counts. That may be since the config has changed.
func (p *Pipeline) saveFromCollector(in Input, out *Decision) {
	for k := range out.Outcomes {
		o := &out.Outcomes[k]
		own := Owned{Downstream: o.Downstream, Live: o.Live, Certain: true}
		if o.Live != nil && !o.Theirs && slices.Contains(leftAlone, o.State) && in.Facts[k].Spaced == 0 {
			p.saveOne(in, o, own)
		}
	}
	for i := range out.Leftovers {
		if own := in.Leftovers[i]; own.Spaced == 0 {
			p.saveOne(in, &out.Leftovers[i], own)
		}
	}
}

// leftAlone are the states of existing objects that do not get the present document.
var leftAlone = []State{StatePaused, StateInvalid, StateRenderFailed, StateWaiting, StateStale}

// IsCollected reports whether the garbage collector would delete an object of ours that deletionPolicy keeps.
func (p *Pipeline) IsCollected(in Input, own Owned) bool {
	return p.keeps(own) && p.Config.Conventions.Owner.Annotation != "" && !p.Downstreams[own.Downstream].OwnsFields() && !p.Observing() &&
		!own.Live.Deleting && !own.Live.HasPreviousNames && referenced(own.Live, in)
}

func (p *Pipeline) saveOne(in Input, o *Outcome, own Owned) {
	if o.Action == ActionNone && p.IsCollected(in, own) {
		o.Action = ActionMarkOwner
		o.Message += "; only its owner reference becomes the owner annotation, since deletionPolicy " + string(config.DeletionOrphan) + " keeps it"
	}
}

// needsFinalizer reports whether what is wanted is not let go without more ado, or is cleaned up by no owner reference.
func (p *Pipeline) needsFinalizer(w *DesiredObject) bool {
	return w.Wanted && (p.HoldsDeletion() || !w.Reference)
}

// inDoubt reports whether of some downstream it is not known what is wanted. Then what stands is left alone, with the finalizer;
// what is created beside it may need the finalizer all the same.
func (d *Desired) inDoubt() bool {
	return slices.ContainsFunc(d.Objects, func(o DesiredObject) bool { return o.Err != nil })
}
