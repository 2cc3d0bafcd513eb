package pipeline

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/status"
)

// decideLeftovers is about objects of ours that stand at no target: superseded ones go once their successor stands,
// those of a downstream that is no longer wanted go at once. What failed or waits takes nothing away, and neither does
// doubt: where several downstreams are of one kind and nothing records whose an object was, all of them must stand.
func (p *Pipeline) decideLeftovers(in Input, out *Decision) {
	outcomes := slices.Clone(out.Outcomes)
	for _, own := range in.Leftovers {
		current := outcomes[own.Downstream]
		o := Outcome{Downstream: own.Downstream, Live: own.Live, UID: own.Live.UID, Target: refOf(own.Live)}
		switch {
		case !own.Certain && !p.kindInPlace(own.Downstream, outcomes):
			o.State, o.Message = StateSuperseded, "it stays until every downstream of its kind exists"
		case current.State == StateUnwanted:
			o.State, o.Message = StateUnwanted, current.Message
			o.Action = p.removalAction(own)
		case inPlace(current):
			o.State, o.Message = StateSuperseded, fmt.Sprintf("%s has replaced it", current.Target)
			o.Action = p.removalAction(own)
		case in.Desired.unknown(own.Downstream):
			o.State, o.Message = current.State, current.Message
		default:
			o.State, o.Message = StateSuperseded, "it stays until its successor exists"
		}
		if p.spaceRemoval(&o, own) {
			c := &out.Outcomes[own.Downstream]
			c.State, c.Action, c.Message, c.RequeueAfter = StateContested, ActionNone, o.Message, o.RequeueAfter
		}
		out.Leftovers = append(out.Leftovers, o)
	}
}

func inPlace(o Outcome) bool {
	return o.State == StateInSync || o.State == StateDrifted || (o.State == StateContested && o.Live != nil)
}

func (p *Pipeline) kindInPlace(i int, outcomes []Outcome) bool {
	gk := p.Downstreams[i].GVK().GroupKind()
	for j, d := range p.Downstreams {
		if d.GVK().GroupKind() == gk && !inPlace(outcomes[j]) && outcomes[j].State != StateUnwanted {
			return false
		}
	}
	return true
}

// Leftovers sorts out which of the upstream's live objects stand at no target. owned has, by downstream, the objects
// that have the mark of the upstream with this uid, or may be its own without; recorded is what its status records, and known has the
// uids that a witness knows. A nil desired state has no targets: everything is left over, as at deletion. Objects that we do not own
// for all that are left out, and so are those that deletion.before made, which have a way of their own.
func (p *Pipeline) Leftovers(
	upstream types.UID, w *Desired, owned [][]*drift.Live, recorded []status.Recorded, known map[types.UID]bool,
) []Owned {
	var left []Owned
	seen := map[types.UID]bool{}
	for i := range p.Downstreams {
		for _, live := range owned[i] {
			if seen[live.UID] || IsBeforeObject(live) || p.isTarget(w, i, live) {
				continue
			}
			home, certain := p.HomeOf(i, live, recorded)
			if !Owns(live, upstream, known[live.UID]) {
				continue
			}
			seen[live.UID] = true
			left = append(left, Owned{Downstream: home, Live: live, Certain: certain || p.soleOfKind(i)})
		}
	}
	return left
}

func (p *Pipeline) isTarget(w *Desired, i int, live *drift.Live) bool {
	if w == nil {
		return false
	}
	gk := p.Downstreams[i].GVK().GroupKind()
	for j, dw := range w.Downstreams {
		if dw.Wanted && dw.Err == nil && dw.Target == refOf(live) && p.Downstreams[j].GVK().GroupKind() == gk {
			return true
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
		return !ok || own.Namespace == live.Namespace
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
// statusMatches Orphan saves it.
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

// unknown reports whether it cannot be told what downstream i should be, so that an object of it is not superseded either.
func (d *Desired) unknown(i int) bool {
	desired := desiredOf(d, i)
	return d != nil && (len(d.Invalid) > 0 || desired != nil && desired.Err != nil)
}

// finalizerAction asks for the finalizer where something stands, or is about to, that no owner reference cleans up, or that
// the config does not let go without more ado.
func (p *Pipeline) finalizerAction(in Input, out *Decision) FinalizerAction {
	if p.Config.Conventions.Finalizer == "" && !in.HasPreviousFinalizer {
		return FinalizerLeave
	}
	for i, o := range out.Outcomes {
		needs := p.needsFinalizer(desiredOf(in.Desired, i))
		switch {
		case o.State == StatePaused, o.State == StateInvalid:
			// What stands is left alone, and so is what guards it.
			return FinalizerLeave
		case needs && in.HasFinalizer:
			return FinalizerLeave
		case needs && o.State != StateConflict: // which makes nothing, so it takes no finalizer
			return FinalizerAdd
		}
	}
	heldBy := func(o Outcome) bool { return p.HoldsDeletion() || !referenced(o.Live, in) }
	if !in.HasFinalizer || in.Desired.inDoubt() || slices.ContainsFunc(out.Leftovers, heldBy) {
		return FinalizerLeave
	}
	return FinalizerRemove
}

// needsFinalizer reports whether what is wanted is not let go without more ado, or is cleaned up by no owner reference.
func (p *Pipeline) needsFinalizer(w *DesiredDownstream) bool {
	return w != nil && w.Wanted && (p.HoldsDeletion() || !w.Reference)
}

// inDoubt reports whether it cannot be told of some downstream what is wanted. Then what stands is left alone, and so is
// describe guards it; what is made beside it may need a guard all the same.
func (d *Desired) inDoubt() bool {
	return d != nil && slices.ContainsFunc(d.Downstreams, func(one DesiredDownstream) bool { return one.Err != nil })
}
