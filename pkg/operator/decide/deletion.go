package decide

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

// waits reports whether the upstream stays until what is deleted is gone.
func waits(s *operator.Settings, in operator.Input) bool {
	return s.Config.Deletion.Wait || in.Cascade == operator.CascadeForeground
}

// orphans reports whether the deletion asks to keep an object, or asked so when the status was last written: nothing
// but that would have recorded a release.
func orphans(s *operator.Settings, own operator.Owned, in operator.Input) bool {
	released := func(r status.Recorded) bool {
		return r.UID == own.Live.UID && r.State == string(operator.StateRelease)
	}
	isLost := in.ReferencesLost && marks.HasLostOwner(own.Live) && marks.ReferenceLegal(s, s.Downstreams[own.Downstream],
		in.Upstream.GetNamespace(), operator.RefOf(own.Live))
	return in.Cascade == operator.CascadeOrphan || isLost ||
		!keeps(s, own) && slices.ContainsFunc(s.Recorded(in.Upstream), released)
}

// SkipsBefore reports whether deletion.before is not begun for an upstream that is being deleted: where nothing is
// deleted, nothing has to be done before. One that has begun goes on.
func SkipsBefore(s *operator.Settings, upstream *unstructured.Unstructured, c operator.Cascade) bool {
	return s.Config.Deletion.Before != nil && c == operator.CascadeOrphan && s.RecordedBefore(upstream) == nil
}

// Deletion says what is to be done about an upstream that is being deleted. What is done about the downstreams needs
// neither rules nor templates, so a broken one holds nothing; deletion.before needs its own.
//
// First deletion.before: made, watched, its outcome recorded, our finalizer taken off it, one step a decision. Until
// then the downstreams are left alone. Then those go: the ones with an owner reference are left to the garbage
// collector, the others are deleted or released. Where the config or the deletion waits for them (deletion.wait,
// --cascade=foreground), all are deleted: the collector would not begin before the upstream is gone. With
// --cascade=orphan all are released. At last the finalizer goes; where it asks for that beside other actions, these
// come first.
func Deletion(s *operator.Settings, in operator.Input) operator.Decision {
	out := operator.Decision{Waits: waits(s, in), Cascade: in.Cascade}
	if r := UnfinishedBefore(s, in.Upstream); r != nil {
		o := decideEarlier(s, r, in.Before)
		out.Before, out.WaitsForBefore = &o, true
		return out
	}
	if s.Config.Deletion.Before != nil && !SkipsBefore(s, in.Upstream, in.Cascade) {
		o, passed := decideBefore(s, in)
		out.Before = &o
		if !passed || o.Action != operator.ActionNone {
			out.WaitsForBefore = true
			return out
		}
	}
	for _, own := range in.Leftovers {
		out.Leftovers = append(out.Leftovers, decideRemoval(s, own, in))
	}
	out.Kept = keptHolders(s, in, out.Leftovers)
	out.Awaited = awaited(in, out.Waits)
	if holdRemovals(s, in, out.Leftovers, out.Waits) || out.Waits && (len(out.Leftovers) > 0 || out.Awaited != nil) {
		return out
	}
	if h := out.Before; h != nil && h.Live != nil && !h.Live.Deleting && !referenced(h.Live, in) &&
		!marks.OwnedByOther(h.Live, in.Upstream.GetUID()) {
		h.Action = operator.ActionDelete // with an owner reference, the collector takes it after the upstream
	}
	out.Finalizer = operator.FinalizerRemove
	return out
}

// awaited is a forgotten object that is being deleted, for which an upstream that waits has to wait, too: what it comes
// after, which nothing says any more, would go with the upstream. Nil for none.
func awaited(in operator.Input, waits bool) *operator.ForgottenObject {
	k := slices.IndexFunc(in.Forgotten, func(f operator.ForgottenObject) bool { return f.Deleting })
	if !waits || k < 0 || in.Cascade == operator.CascadeOrphan {
		return nil
	}
	return &in.Forgotten[k]
}

// holdRemovals lets what is used by another one wait for it, and reports whether something waits.
func holdRemovals(s *operator.Settings, in operator.Input, left []operator.Outcome, ordered bool) (waits bool) {
	holdUsed(s, in, nil, left, ordered)
	for i := range left {
		o := &left[i]
		waits = waits || o.GoesLater
		if o.GoesLater && o.State != operator.StateRelease {
			o.State = operator.StateWaiting
		}
		spaceRemoval(s, o, in.Leftovers[i])
	}
	return waits
}

// decideRemoval is about one downstream of an upstream that is being deleted.
func decideRemoval(s *operator.Settings, own operator.Owned, in operator.Input) operator.Outcome {
	wait, orphaned := waits(s, in), orphans(s, own, in)
	keeps := orphaned || keeps(s, own)
	o := leftover(in, own)
	o.State, o.Message = operator.StateDelete, "the upstream is being deleted"
	if wait && !s.Config.Deletion.Wait { // recorded, since the garbage collector takes the finalizer off that says so
		o.State, o.Message = operator.StateDeleteFirst, "the upstream is being deleted with --cascade=foreground"
	}
	switch {
	case orphaned:
		o.State, o.Message = operator.StateRelease, "the upstream is being deleted with --cascade=orphan"
	case s.Downstreams[own.Downstream].OwnsFields():
		o.State, o.Message = operator.StateRelease, "the upstream is being deleted: its fields are removed from the object"
	case keeps:
		o.State, o.Message = operator.StateRelease, "the upstream is being deleted and deletionPolicy is Orphan"
	}
	switch {
	case own.Live.Deleting:
	case keeps:
		o.Action = operator.ActionRelease
	case wait || !referenced(own.Live, in):
		o.Action = operator.ActionDelete
	}
	return o
}

// RecordedCascade is what the deletion of an upstream asked for when its status was last written.
func RecordedCascade(s *operator.Settings, upstream *unstructured.Unstructured) operator.Cascade {
	first := func(r status.Recorded) bool { return r.State == string(operator.StateDeleteFirst) }
	if upstream.GetDeletionTimestamp() != nil && slices.ContainsFunc(s.Recorded(upstream), first) {
		return operator.CascadeForeground
	}
	return operator.CascadeConfig
}
