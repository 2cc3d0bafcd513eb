package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/status"
)

// carryGenerated says, of each object that is about to get generated values, which objects of ours it takes them from,
// and of each Secret whether values that the upstream had are lost.
func carryGenerated(s *operator.Settings, in operator.Input, out *operator.Decision) {
	for k := range out.Outcomes {
		o, uid := &out.Outcomes[k], in.Facts[k].RecordedUID
		var others []*drift.Live
		if getsGenerated(s.Downstreams[o.Downstream], *o) {
			o.ValuesFrom, others = predecessors(s, in, out, *o)
			slices.SortStableFunc(o.ValuesFrom, func(a, b *drift.Live) int { return rank(a, uid) - rank(b, uid) })
		}
		if o.LostValues = lostValues(s, in, *o, others, &in.Facts[k]); o.LostValues != "" {
			o.Message += "; " + o.LostValues
		}
	}
}

// lostValues says which values are lost by an outcome whose ValuesFrom is set, and why; empty for none. others are
// objects that it may replace as well.
func lostValues(
	s *operator.Settings, in operator.Input, o operator.Outcome, others []*drift.Live, f *operator.Facts,
) string {
	d := s.Downstreams[o.Downstream]
	lost := droppedValues(s, in, o, o.ValuesFrom)
	if lost != "" || len(o.ValuesFrom) > 0 {
		return lost
	}
	if stray := strayOf(d, in, o); stray != nil {
		return newValueFor(d) + " of its item: Secret " + operator.RefOf(stray).String() +
			" has the last one, and goes or becomes another item's"
	}
	if !getsGenerated(d, o) || f.HasKeptValues {
		return ""
	}
	why := whyNew(s, in, o, others, f)
	if why != "" {
		why = newValueFor(d) + ": " + why
	}
	return why
}

// whyNew says why an object for which no predecessor is known gets new values though the upstream may have had some;
// empty if it had none.
func whyNew(
	s *operator.Settings, in operator.Input, o operator.Outcome, others []*drift.Live, f *operator.Facts,
) string {
	d := s.Downstreams[o.Downstream]
	switch old := justForgotten(s, in, d); {
	case len(others) > 0:
		return fmt.Sprintf("which of the replaced objects had the last one cannot be told (%s)", refsOf(others))
	case f.RecordedUID != "" && (o.Live == nil || o.Live.UID != f.RecordedUID):
		return fmt.Sprintf("%s %s, which had the last one, is gone, or lacks marks or labels of conventions",
			d.Config.Kind, f.RecordedAt)
	case f.RecordedUID == "" && old != "":
		return old + ", which the config no longer has, keeps its own"
	}
	return ""
}

// rank is lower for the object of a uid.
func rank(live *drift.Live, uid types.UID) int {
	if live.UID == uid {
		return 0
	}
	return 1
}

// justForgotten names an object of the kind of a downstream that is left over by this config: the downstream may be its
// own under another name.
func justForgotten(s *operator.Settings, in operator.Input, d *operator.Downstream) string {
	for _, r := range forgottenBy(s, in) {
		if IsJustForgotten(s, in.Upstream, r) && r.GroupKind() == d.GVK().GroupKind() {
			return fmt.Sprintf("%s %s of downstream %s", r.Kind, operator.Ref{Namespace: r.Namespace,
				Name: r.ObjectName}, r.Name)
		}
	}
	return ""
}

// IsJustForgotten reports whether what is recorded of an object that the config has forgotten was recorded by a config
// that had it. The status of an upstream that was not selected says Leftover of everything.
func IsJustForgotten(s *operator.Settings, upstream *unstructured.Unstructured, r status.Recorded) bool {
	if r.State != string(operator.StateLeftover) {
		return true
	}
	reason := status.ReasonOf(upstream, s.Config.Status.Conditions.Ready)
	return reason == status.ReasonLeftover || reason == status.ReasonNotSelected
}

// droppedValues says which values of a Secret, or of one that it replaces, are lost with their keys; empty for none. A
// value whose generated key was renamed moves.
func droppedValues(s *operator.Settings, in operator.Input, o operator.Outcome, replaced []*drift.Live) string {
	d, w := s.Downstreams[o.Downstream], &in.Desired.Objects[o.Object]
	if w.Secret == nil {
		return ""
	}
	if hasSuccessor(o) && !o.Theirs {
		replaced = append(replaced, o.Live)
	} else if d.Config.DeletionPolicy == config.DeletionOrphan {
		return "" // what is replaced stays
	}
	var goes, unclear []string
	isMade := false
	for _, live := range replaced {
		c := generated.ChangeOf(d, w, live)
		goes = append(goes, droppedKeys(s, in, o, c, live)...)
		if c.Renamed() || !getsGenerated(d, o) {
			continue
		}
		isMade = true
		if !c.Known || len(c.Added) > 0 {
			unclear = append(unclear, c.Others...)
		}
	}
	why := whyLost(goes, unclear)
	if why != "" && isMade {
		return newValueFor(d) + ": " + why
	}
	return why
}

// whyLost is about keys that go, and those of other managers that may have been renamed.
func whyLost(goes, unclear []string) string {
	all := func(keys []string) string {
		slices.Sort(keys)
		return "data." + strings.Join(slices.Compact(keys), ", data.")
	}
	switch {
	case len(goes) > 0:
		return all(goes) + " goes, which nothing gives any more"
	case len(unclear) > 0:
		return "which of them replaces " + all(unclear) + " cannot be told"
	}
	return ""
}

// droppedKeys are the keys of a Secret of ours that the desired one does not have, of which c says which were
// generated: without the one that was renamed. What others own goes too where the Secret is recreated. An edit of the
// upstream may drop what it gave, but no generated key.
func droppedKeys(
	s *operator.Settings, in operator.Input, o operator.Outcome, c generated.Change, live *drift.Live,
) (goes []string) {
	if live.Secret == nil {
		return nil
	}
	keys := live.Secret.Keys
	if o.State == operator.StateRecreate {
		keys = slices.Concat(keys, live.Secret.Others)
	}
	for _, key := range keys {
		wasGenerated := slices.Contains(c.Dropped, key)
		moves := wasGenerated && c.Renamed()
		mayGo := s.EditedSince(in.Upstream) && !wasGenerated && (c.Known || !getsGenerated(s.Downstreams[o.Downstream], o))
		if !moves && !mayGo && !slices.Contains(in.Desired.Objects[o.Object].Secret.Keys, key) {
			goes = append(goes, key)
		}
	}
	return goes
}

// hasSuccessor reports whether an outcome changes an object, or replaces it by one of its name.
func hasSuccessor(o operator.Outcome) bool {
	return o.Live != nil && (o.Action == operator.ActionApply || o.State == operator.StateRecreate &&
		o.Action == operator.ActionDelete)
}

// newValueFor is what previews and events call the generated values of an object that replace lost ones.
func newValueFor(d *operator.Downstream) string { return "a new random value for " + generated.Keys(d) }

// getsGenerated reports whether an outcome creates an object with generated values, or adds those that an object lacks.
func getsGenerated(d *operator.Downstream, o operator.Outcome) bool {
	return d.HasGenerated() && (o.Action == operator.ActionCreate || hasSuccessor(o) && d.View.LacksGenerated(o.Live))
}

func refsOf(list []*drift.Live) string {
	names := make([]string, len(list))
	for i, live := range list {
		names[i] = operator.RefOf(live).String()
	}
	return strings.Join(names, ", ")
}

// predecessors are the objects at no target that an object replaces, and others that it may replace as well as another
// one does. One of several objects says of which item it is. Where it does not, its name is its identity: one of
// another name is the same item only if the upstream did not change, so that the template renamed it.
func predecessors(
	s *operator.Settings, in operator.Input, out *operator.Decision, o operator.Outcome,
) (sources, others []*drift.Live) {
	d := s.Downstreams[o.Downstream]
	for i := range in.Leftovers {
		own := &in.Leftovers[i]
		switch {
		case !s.Downstreams[own.Downstream].HasGenerated() && own.Certain,
			s.Downstreams[own.Downstream].GVK().GroupKind() != d.GVK().GroupKind():
		case own.Certain && own.Downstream != o.Downstream:
		case !own.Certain && !isOnlyGenerated(s, d):
			others = append(others, own.Live)
		case !d.Several():
			sources = append(sources, own.Live)
		default:
			switch k := wantedFor(in, o.Downstream, own.Live); {
			case k == o.Object, k == operator.NoIndex && isSameItem(s, in, out, o, own.Live):
				sources = append(sources, own.Live)
			case k == operator.NoIndex && !isOfItem(o.Live, &in.Desired.Objects[o.Object]):
				others = append(others, own.Live)
			}
		}
	}
	if !d.Several() {
		return withoutItems(sources, others)
	}
	// Of an item that was renamed more than once, the newest has what was carried on.
	slices.SortStableFunc(sources, func(a, b *drift.Live) int { return cmp.Compare(b.Created, a.Created) })
	if len(sources) > 1 && sources[0].Created == sources[1].Created {
		return nil, append(sources, others...)
	}
	return sources, others
}

// strayOf is another object that says that it is of the item for which one is created, or updated from another item;
// nil for none. What is only created keeps the hash of the item that it was created for.
func strayOf(d *operator.Downstream, in operator.Input, o operator.Outcome) *drift.Live {
	w := &in.Desired.Objects[o.Object]
	if o.State != operator.StateCreate && o.State != operator.StateUpdate || isOfItem(o.Live, w) ||
		d.Config.UpdatePolicy == config.UpdateCreateOnly {
		return nil
	}
	first := in.Desired.First(o.Downstream)
	for i := range in.Desired.Of(o.Downstream) {
		if live := in.Facts[first+i].Live; first+i != o.Object && isOfItem(live, w) {
			return live
		}
	}
	for _, own := range in.Leftovers {
		if own.Downstream == o.Downstream && isOfItem(own.Live, w) {
			return own.Live
		}
	}
	return nil
}

// withoutItems are the predecessors of an object whose downstream has no items. If it had several,
// none of them is.
func withoutItems(sources, others []*drift.Live) ([]*drift.Live, []*drift.Live) {
	hasItem := func(live *drift.Live) bool { return generated.ItemIn(live.Hash) != "" }
	plain := slices.DeleteFunc(slices.Clone(sources), hasItem)
	if len(plain) == 0 && len(sources) > 1 {
		return nil, append(sources, others...)
	}
	if len(plain) > 0 {
		sources = plain
	}
	return sources, others
}

// isOfItem reports whether an object says that it is of the item for which one is wanted.
func isOfItem(live *drift.Live, w *operator.DesiredObject) bool {
	return live != nil && generated.ItemIn(live.Hash) != "" && generated.ItemIn(live.Hash) == generated.ItemIn(w.Hash)
}

// wantedFor is the index of the object that is wanted for the item of which an object at no target says that it is;
// NoIndex if it does not say, or more than one is wanted for it.
func wantedFor(in operator.Input, downstream int, live *drift.Live) (k int) {
	item, first := generated.ItemIn(live.Hash), in.Desired.First(downstream)
	if item == "" {
		return operator.NoIndex
	}
	k = operator.NoIndex
	for i, o := range in.Desired.Of(downstream) {
		switch {
		case !o.Wanted || generated.ItemIn(o.Hash) != item:
		case k != operator.NoIndex:
			return operator.NoIndex
		default:
			k = first + i
		}
	}
	return k
}

// isOnlyGenerated reports whether no other downstream of the kind has generated values.
func isOnlyGenerated(s *operator.Settings, d *operator.Downstream) bool {
	return !slices.ContainsFunc(s.Downstreams, func(other *operator.Downstream) bool {
		return other.Index != d.Index && other.HasGenerated() && other.GVK().GroupKind() == d.GVK().GroupKind()
	})
}

// isSameItem reports whether one of several objects is of the same item as one that is to be created: they have one
// name, in two namespaces, and either that is made of the item or the items are the same; or, with the same items,
// everything but the name is the same. No other pair may be alike.
func isSameItem(
	s *operator.Settings, in operator.Input, out *operator.Decision, o operator.Outcome, live *drift.Live,
) bool {
	d := s.Downstreams[o.Downstream]
	sameItems := isUnedited(s, in.Upstream) && !d.ItemsVary
	alike := func(o operator.Outcome, live *drift.Live) bool {
		secret := in.Desired.Objects[o.Object].Secret
		return live.Name == o.Target.Name || sameItems && secret != nil && live.Secret != nil &&
			live.Secret.Content == secret.Content
	}
	if !sameItems && !d.NamesItems || !alike(o, live) {
		return false
	}
	for _, other := range out.Outcomes {
		if other.Downstream == o.Downstream && other.Object != o.Object &&
			in.Desired.Objects[other.Object].Wanted && alike(other, live) {
			return false
		}
	}
	return !slices.ContainsFunc(in.Leftovers, func(own operator.Owned) bool {
		return own.Downstream == o.Downstream && own.Live.UID != live.UID && alike(o, own.Live)
	})
}

// isUnedited reports whether the upstream is known to be as it was when its status was written.
func isUnedited(s *operator.Settings, upstream *unstructured.Unstructured) bool {
	_, known, _ := unstructured.NestedInt64(upstream.Object, "status", "observedGeneration")
	return known && s.TrustsStatus() && !s.EditedSince(upstream)
}
