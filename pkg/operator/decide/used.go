package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// IsHolder reports whether an object of an API version and kind contains others, which are deleted with it.
func IsHolder(apiVersion, kind string) bool {
	return contentsOf(nil, schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind(), "") != nil
}

// Contains reports whether an object of a kind at a place would be deleted with a holder, as far as its kind gives its
// resource.
func Contains(holder schema.GroupVersionKind, name string, kind schema.GroupVersionKind, at operator.Ref) bool {
	c := contentsOf(nil, holder.GroupKind(), name)
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return c != nil && c.contains(plural.GroupResource(), at)
}

// keptHolders are the forgotten objects that the garbage collector would delete with one that stays.
func keptHolders(s *operator.Settings, in operator.Input, left []operator.Outcome) (kept []operator.ForgottenObject) {
	for _, f := range in.Forgotten {
		c := contentsOf(s, schema.FromAPIVersionAndKind(f.APIVersion, f.Kind).GroupKind(), f.ObjectName)
		if c == nil || !f.Referenced {
			continue
		}
		if why := staying(c, in, left); why != "" {
			f.Kept = "it is kept, since " + why
			kept = append(kept, f)
		}
	}
	return kept
}

// mayKeepHolder reports whether a deletion of the upstream may have to keep an object because of a forgotten one in it,
// for which only the finalizer leaves time.
func mayKeepHolder(s *operator.Settings, in operator.Input) bool {
	forgotten := forgottenBy(s, in)
	if len(forgotten) == 0 {
		return false
	}
	return slices.ContainsFunc(append(s.Recorded(in.Upstream), forgotten...), func(r status.Recorded) bool {
		holds := func(other status.Recorded) bool { return r.Kind != "Namespace" || other.Namespace == r.ObjectName }
		return IsHolder(r.APIVersion, r.Kind) && slices.ContainsFunc(forgotten, holds)
	})
}

// forgottenBy lists what the config has forgotten, as the status or the objects themselves say.
func forgottenBy(s *operator.Settings, in operator.Input) []status.Recorded {
	return slices.Concat(s.Forgotten(in.Upstream), in.Unrecorded)
}

// holdUsed lets what is to be deleted or released wait for the objects that may still use it: those that come after it,
// and those that would be deleted with it. left are the outcomes of in.Leftovers, in order. Without ordered, it does
// not matter what comes after what.
func holdUsed(s *operator.Settings, in operator.Input, outcomes, left []operator.Outcome, ordered bool) {
	var users map[int]string
	if ordered && len(left) > 0 {
		users = usersByOrder(s, in, outcomes, left)
	}
	deleted := in.Upstream.GetDeletionTimestamp() != nil
	for i := range left {
		o := &left[i]
		if o.Action != operator.ActionDelete && (o.Action != operator.ActionRelease || deleted) || users == nil {
			continue
		}
		if user := cmp.Or(users[o.Downstream], unknownUser(s, in, left, i)); user != "" {
			o.Action, o.GoesLater, o.Message = operator.ActionNone, true, "it stays until "+user
		}
	}
	for i := range left {
		if c := contentsAt(s, left[i]); c != nil && !left[i].Live.Deleting &&
			left[i].Action != operator.ActionRelease && !keeps(s, in.Leftovers[i]) {
			keep(c, in, &left[i], left)
			hold(c, in, &left[i], outcomes, left)
		}
	}
}

// usersByOrder says, by downstream, which object may still use what is left over of it, and until when: one that reads
// the downstream or comes after it, and is not up to date.
func usersByOrder(s *operator.Settings, in operator.Input, outcomes, left []operator.Outcome) map[int]string {
	users := map[int]string{}
	note := func(earlier []int, downstream int, at operator.Ref, until string) {
		for _, i := range earlier {
			if users[i] == "" {
				users[i] = fmt.Sprintf("%s, which comes after it, %s", named(s, downstream, at), until)
			}
		}
	}
	for _, o := range outcomes {
		if o.Live != nil && !o.Theirs && !inPlace(o) && o.State != operator.StateUnwanted {
			note(s.ComesAfter(s.Downstreams[o.Downstream]), o.Downstream, o.Target, "is up to date")
		}
	}
	for _, other := range in.Unread {
		note(allBefore(s, other.Downstream), other.Downstream, operator.RefOf(other.Live), "can be read")
	}
	for i, other := range left {
		if in.Leftovers[i].Certain {
			note(allBefore(s, other.Downstream), other.Downstream, other.Target, "is gone")
		}
	}
	if k := slices.IndexFunc(in.Forgotten, func(f operator.ForgottenObject) bool { return f.Deleting }); k >= 0 {
		f := in.Forgotten[k] // nothing says any more what it comes after
		for i := range s.Downstreams {
			users[i] = cmp.Or(users[i], fmt.Sprintf("%s %s, which the config no longer has and which is being deleted, is gone",
				f.Kind, placeOf(f)))
		}
	}
	return users
}

// unknownUser says which object at no target may come after one, where it is not known of which downstreams they are:
// one that can only come after it, or, where it may be the other way round, too, one that is being deleted already, or
// was created later. What comes after something is created after it.
func unknownUser(s *operator.Settings, in operator.Input, left []operator.Outcome, i int) string {
	own := in.Leftovers[i]
	for j, other := range in.Leftovers {
		if j == i || own.Certain && other.Certain || !mayComeAfter(s, other, own) {
			continue
		}
		if !mayComeAfter(s, own, other) || other.Live.Deleting || isLater(other.Live, own.Live) {
			return fmt.Sprintf("%s, which may come after it, is gone", named(s, other.Downstream, left[j].Target))
		}
	}
	return ""
}

// mayComeAfter reports whether one object may be of a downstream that comes after another one's.
func mayComeAfter(s *operator.Settings, later, earlier operator.Owned) bool {
	earliers := homesOf(s, earlier)
	return slices.ContainsFunc(homesOf(s, later), func(home int) bool {
		return slices.ContainsFunc(allBefore(s, home), func(before int) bool { return slices.Contains(earliers, before) })
	})
}

// isLater reports whether one object was created after another one. Those of the same second are distinguished by their
// versions, which is right as long as neither was changed.
func isLater(a, b *drift.Live) bool {
	version := func(l *drift.Live) (n int) { n, _ = strconv.Atoi(l.ResourceVersion); return n }
	return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(version(a), version(b)), cmp.Compare(a.UID, b.UID)) > 0
}

// contents knows what would be deleted with a Namespace or CustomResourceDefinition, whatever comes after what.
type contents struct {
	*operator.Settings
	// contains reports whether an object of a resource at a place would.
	contains func(resource schema.GroupResource, at operator.Ref) bool
	// is says so in a sentence.
	is string
}

func contentsAt(s *operator.Settings, holder operator.Outcome) *contents {
	return contentsOf(s, s.Downstreams[holder.Downstream].GVK().GroupKind(), holder.Live.Name)
}

// contentsOf returns nil for an object of another kind.
func contentsOf(s *operator.Settings, holder schema.GroupKind, name string) *contents {
	switch holder {
	case schema.GroupKind{Kind: "Namespace"}:
		return &contents{s, func(_ schema.GroupResource, at operator.Ref) bool { return at.Namespace == name }, "in it"}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return &contents{s, func(r schema.GroupResource, _ operator.Ref) bool { return r.String() == name }, "of this kind"}
	}
	return nil
}

// has is contains for an object of a downstream.
func has(c *contents, downstream int, at operator.Ref) bool {
	return c.contains(c.Downstreams[downstream].Kind.GVR.GroupResource(), at)
}

// stays reports whether what is left over is among the contents and deletionPolicy: Orphan keeps it.
func stays(c *contents, own operator.Owned, o operator.Outcome) bool {
	released := o.Action == operator.ActionRelease || o.GoesLater && keeps(c.Settings, own)
	return released && !c.Downstreams[o.Downstream].OwnsFields() && has(c, o.Downstream, o.Target)
}

// staying names one of the contents that stays, and says why; empty for none.
func staying(c *contents, in operator.Input, left []operator.Outcome) string {
	for i, o := range left {
		if stays(c, in.Leftovers[i], o) {
			return fmt.Sprintf("%s, which deletionPolicy %s keeps, is %s", named(c.Settings, o.Downstream, o.Target),
				config.DeletionOrphan, c.is)
		}
	}
	for _, f := range in.Forgotten {
		if !f.Unread && !f.Deleting && (!f.Referenced || in.Upstream.GetDeletionTimestamp() == nil) &&
			c.contains(f.Resource, placeOf(f)) {
			return fmt.Sprintf("%s %s, which is left over, is %s", f.Kind, placeOf(f), c.is)
		}
	}
	return ""
}

// named names an object for a message; without a place, any of the downstream.
func named(s *operator.Settings, downstream int, at operator.Ref) string {
	kind := s.Downstreams[downstream].Config.Kind
	if at == (operator.Ref{}) {
		return "any " + kind
	}
	return kind + " " + at.String()
}

// keep releases what was to be deleted and has an object that stays. That object has our marks until then: without
// them, nothing would say that it is to be kept.
func keep(c *contents, in operator.Input, holder *operator.Outcome, left []operator.Outcome) {
	deleted := in.Upstream.GetDeletionTimestamp() != nil // then the garbage collector may delete it
	goes, why := holder.Action == operator.ActionDelete || holder.GoesLater || deleted, staying(c, in, left)
	for i := range left {
		if o := &left[i]; stays(c, in.Leftovers[i], *o) {
			o.Action, o.GoesLater = operator.ActionNone, true
			o.Message = fmt.Sprintf("%s; it is released after %s", o.Message,
				named(c.Settings, holder.Downstream, holder.Target))
		}
	}
	if goes && why != "" {
		if holder.Action, holder.GoesLater = operator.ActionRelease, false; deleted {
			holder.State = operator.StateRelease
		}
		holder.Message = fmt.Sprintf("%s; it is kept, since %s", holder.Message, why)
	}
}

// wanted names an object that is wanted; empty if there is none.
func wanted(c *contents, outcomes []operator.Outcome) string {
	for _, o := range outcomes {
		at := o.Target
		if o.Live != nil { // of one that cannot be rendered, no target is known
			at = operator.RefOf(o.Live)
		}
		if o.State != operator.StateUnwanted && (has(c, o.Downstream, o.Target) || has(c, o.Downstream, at)) {
			return named(c.Settings, o.Downstream, at)
		}
	}
	return ""
}

// hold lets what is to be deleted wait for an object that is wanted, must stay, could not be read, or is of a custom
// kind, whose operator may have to work before it is gone: a terminating namespace takes nothing new. One that itself
// waits for what is to be deleted, because it comes before it, is deleted with it.
func hold(c *contents, in operator.Input, holder *operator.Outcome, outcomes, left []operator.Outcome) {
	collected := holder.State == operator.StateDelete && in.Upstream.GetDeletionTimestamp() != nil
	if holder.Action != operator.ActionDelete && !holder.GoesLater && !collected {
		return
	}
	if wanted := wanted(c, outcomes); wanted != "" {
		holder.Action, holder.GoesLater = operator.ActionNone, false
		holder.Message = fmt.Sprintf("it stays: %s is wanted, and is %s", wanted, c.is)
		return
	}
	wait := func(name, until string) {
		holder.Action, holder.GoesLater = operator.ActionNone, true
		holder.Message = fmt.Sprintf("it stays until %s, which is %s, %s", name, c.is, until)
	}
	if first := goesFirst(c, holder, left); first != "" {
		wait(first, "is gone")
		return
	}
	if name := unread(c, in); name != "" {
		wait(name, "can be read")
		return
	}
	for _, other := range in.Others {
		if has(c, other.Downstream, other.At) {
			wait(fmt.Sprintf("%s of %s", named(c.Settings, other.Downstream, other.At), other.Of), "is gone")
			holder.RequeueAfter = othersAgain
		}
	}
}

// goesFirst names one of the contents for which a holder that is to be deleted waits; empty for none. Those are deleted
// also if they have an owner reference: the garbage collector would begin after the upstream, which waits for the
// holder.
func goesFirst(c *contents, holder *operator.Outcome, left []operator.Outcome) (first string) {
	before := allBefore(c.Settings, holder.Downstream)
	for i := range left {
		o, d := &left[i], c.Downstreams[left[i].Downstream]
		goesBefore := o.GoesLater && slices.Contains(before, o.Downstream)
		isCustom := !kinds.IsBuiltin(d.GVK().GroupKind()) && !d.OwnsFields()
		if !isCustom && !mustStay(*o) || goesBefore || !has(c, o.Downstream, o.Target) {
			continue
		}
		first = cmp.Or(first, named(c.Settings, o.Downstream, o.Target))
		if o.State == operator.StateDelete && !o.GoesLater && !o.Live.Deleting {
			o.Action = operator.ActionDelete
		}
	}
	return first
}

// mustStay reports whether an object that was to go stays for now.
func mustStay(o operator.Outcome) bool {
	return o.Action == operator.ActionNone && !o.Live.Deleting && o.State != operator.StateDelete
}

// othersAgain is when it is seen whether what belongs to another upstream still does: events of the object say when it
// is gone, none that its upstream is gone without it.
const othersAgain = 10 * time.Minute

// Holds returns a function that reports whether an object of a downstream would be deleted with a holder, and an
// upstream would not.
func Holds(s *operator.Settings, holder operator.Owned) func(downstream int, at, of operator.Ref) bool {
	c := contentsOf(s, s.Downstreams[holder.Downstream].GVK().GroupKind(), holder.Live.Name)
	return func(downstream int, at, of operator.Ref) bool {
		return c != nil && has(c, downstream, at) && !c.contains(s.Upstream.GVR.GroupResource(), of)
	}
}

// unread names one of the contents that could not be read; empty for none.
func unread(c *contents, in operator.Input) string {
	for _, o := range in.Unread {
		if at := operator.RefOf(o.Live); at == (operator.Ref{}) || has(c, o.Downstream, at) {
			return named(c.Settings, o.Downstream, at)
		}
	}
	for _, f := range in.Forgotten {
		if f.Unread && (f.Resource.Empty() || c.contains(f.Resource, placeOf(f))) {
			return f.Kind + " " + placeOf(f).String()
		}
	}
	return ""
}

// allBefore are the downstreams that one comes after, directly or with others between them, which may be gone before
// it.
func allBefore(s *operator.Settings, downstream int) []int {
	list := s.ComesAfter(s.Downstreams[downstream])
	for n := 0; n < len(list); n++ {
		for _, i := range s.ComesAfter(s.Downstreams[list[n]]) {
			if !slices.Contains(list, i) {
				list = append(list, i)
			}
		}
	}
	return list
}

func placeOf(f operator.ForgottenObject) operator.Ref {
	return operator.Ref{Namespace: f.Namespace, Name: f.ObjectName}
}
