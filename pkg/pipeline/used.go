package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// holdUsed lets what is to be deleted or released wait for the objects that may still use it: those that come after it, and those that
// would be deleted with it. left are the outcomes of in.Leftovers, in order. Without ordered, it does not matter what comes after what.
func (p *Pipeline) holdUsed(in Input, outcomes, left []Outcome, ordered bool) {
	var users map[int]string
	if ordered && len(left) > 0 {
		users = p.usersByOrder(in, outcomes, left)
	}
	deleted := in.Upstream.GetDeletionTimestamp() != nil
	for i := range left {
		o := &left[i]
		if o.Action != ActionDelete && (o.Action != ActionRelease || deleted) || users == nil {
			continue
		}
		if user := cmp.Or(users[o.Downstream], p.unknownUser(in, left, i)); user != "" {
			o.Action, o.GoesLater, o.Message = ActionNone, true, "it stays until "+user
		}
	}
	for i := range left {
		if c := p.contentsOf(left[i]); c != nil && !left[i].Live.Deleting && left[i].Action != ActionRelease && !p.keeps(in.Leftovers[i]) {
			c.keep(in, &left[i], left)
			c.hold(in, &left[i], outcomes, left)
		}
	}
}

// usersByOrder says, by downstream, which object may still use what is left over of it, and until when: one that reads the downstream or
// comes after it, and is not up to date.
func (p *Pipeline) usersByOrder(in Input, outcomes, left []Outcome) map[int]string {
	users := map[int]string{}
	note := func(earlier []int, downstream int, at Ref, until string) {
		for _, i := range earlier {
			if users[i] == "" {
				users[i] = fmt.Sprintf("%s, which comes after it, %s", p.nameOf(downstream, at), until)
			}
		}
	}
	for _, o := range outcomes {
		if o.Live != nil && !o.Theirs && !inPlace(o) && o.State != StateUnwanted {
			note(p.comesAfter(p.Downstreams[o.Downstream]), o.Downstream, o.Target, "is up to date")
		}
	}
	for _, other := range in.Unread {
		note(p.allBefore(other.Downstream), other.Downstream, refOf(other.Live), "can be read")
	}
	for i, other := range left {
		if in.Leftovers[i].Certain {
			note(p.allBefore(other.Downstream), other.Downstream, other.Target, "is gone")
		}
	}
	return users
}

// unknownUser says which object at no target may come after one, where it is not known of which downstreams they are: one that can only come
// after it, or, where it may be the other way round, too, one that is being deleted already, or was created later. What comes after
// something is created after it.
func (p *Pipeline) unknownUser(in Input, left []Outcome, i int) string {
	own := in.Leftovers[i]
	for j, other := range in.Leftovers {
		if j == i || own.Certain && other.Certain || !p.mayComeAfter(other, own) {
			continue
		}
		if !p.mayComeAfter(own, other) || other.Live.Deleting || isLater(other.Live, own.Live) {
			return fmt.Sprintf("%s, which may come after it, is gone", p.nameOf(other.Downstream, left[j].Target))
		}
	}
	return ""
}

// mayComeAfter reports whether one object may be of a downstream that comes after another one's.
func (p *Pipeline) mayComeAfter(later, earlier Owned) bool {
	earliers := p.homesOf(earlier)
	return slices.ContainsFunc(p.homesOf(later), func(home int) bool {
		return slices.ContainsFunc(p.allBefore(home), func(before int) bool { return slices.Contains(earliers, before) })
	})
}

// homesOf are the downstreams of which an object may be.
func (p *Pipeline) homesOf(own Owned) (list []int) {
	gk := p.Downstreams[own.Downstream].GVK().GroupKind()
	for i, d := range p.Downstreams {
		if i == own.Downstream || !own.Certain && d.GVK().GroupKind() == gk && p.mayStandIn(d, own.Live) {
			list = append(list, i)
		}
	}
	return list
}

// isLater reports whether one object was created after another one. Those of the same second are told apart by their versions, which is
// right as long as neither was changed.
func isLater(a, b *drift.Live) bool {
	version := func(l *drift.Live) (n int) { n, _ = strconv.Atoi(l.ResourceVersion); return n }
	return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(version(a), version(b)), cmp.Compare(a.UID, b.UID)) > 0
}

// contents knows what would be deleted with a Namespace or CustomResourceDefinition, whatever comes after what.
type contents struct {
	*Pipeline
	// contains reports whether an object of a resource at a place would.
	contains func(resource schema.GroupResource, at Ref) bool
	// is says so in a sentence.
	is string
}

func (p *Pipeline) contentsOf(holder Outcome) *contents {
	return contentsOf(p, p.Downstreams[holder.Downstream].GVK().GroupKind(), holder.Live.Name)
}

// contentsOf returns nil for an object of another kind.
func contentsOf(p *Pipeline, holder schema.GroupKind, name string) *contents {
	switch holder {
	case schema.GroupKind{Kind: "Namespace"}:
		return &contents{p, func(_ schema.GroupResource, at Ref) bool { return at.Namespace == name }, "in it"}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return &contents{p, func(r schema.GroupResource, _ Ref) bool { return r.String() == name }, "of this kind"}
	}
	return nil
}

// has is contains for an object of a downstream.
func (c *contents) has(downstream int, at Ref) bool {
	return c.contains(c.Downstreams[downstream].Kind.GVR.GroupResource(), at)
}

// stays reports whether what is left over is among the contents and deletionPolicy: Orphan keeps it.
func (c *contents) stays(own Owned, o Outcome) bool {
	released := o.Action == ActionRelease || o.GoesLater && c.keeps(own)
	return released && !c.Downstreams[o.Downstream].OwnsFields() && c.has(o.Downstream, o.Target)
}

// staying names one of the contents that stays, and says why; empty for none.
func (c *contents) staying(in Input, left []Outcome) string {
	for i, o := range left {
		if c.stays(in.Leftovers[i], o) {
			return fmt.Sprintf("%s, which deletionPolicy %s keeps, is %s", c.nameOf(o.Downstream, o.Target), config.DeletionOrphan, c.is)
		}
	}
	for _, f := range in.Forgotten {
		if !f.Unread && (!f.Referenced || in.Upstream.GetDeletionTimestamp() == nil) && c.contains(f.Resource, f.at()) {
			return fmt.Sprintf("%s %s, which is left over, is %s", f.Kind, f.at(), c.is)
		}
	}
	return ""
}

// nameOf names an object for a message; without a place, any of the downstream.
func (p *Pipeline) nameOf(downstream int, at Ref) string {
	kind := p.Downstreams[downstream].Config.Kind
	if at == (Ref{}) {
		return "any " + kind
	}
	return kind + " " + at.String()
}

// keep releases what was to be deleted and has an object that stays. That object has our marks until then: without them, nothing would say
// that it is to be kept.
func (c *contents) keep(in Input, holder *Outcome, left []Outcome) {
	deleted := in.Upstream.GetDeletionTimestamp() != nil // then the garbage collector may delete it
	goes, why := holder.Action == ActionDelete || holder.GoesLater || deleted, c.staying(in, left)
	for i := range left {
		if o := &left[i]; c.stays(in.Leftovers[i], *o) {
			o.Action, o.GoesLater = ActionNone, true
			o.Message = fmt.Sprintf("%s; it is released after %s", o.Message, c.nameOf(holder.Downstream, holder.Target))
		}
	}
	if goes && why != "" {
		if holder.Action, holder.GoesLater = ActionRelease, false; deleted {
			holder.State = StateRelease
		}
		holder.Message = fmt.Sprintf("%s; it is kept, since %s", holder.Message, why)
	}
}

// wanted names an object that is wanted; empty if there is none.
func (c *contents) wanted(outcomes []Outcome) string {
	for _, o := range outcomes {
		at := o.Target
		if o.Live != nil { // of one that cannot be rendered, no target is known
			at = refOf(o.Live)
		}
		if o.State != StateUnwanted && (c.has(o.Downstream, o.Target) || c.has(o.Downstream, at)) {
			return c.nameOf(o.Downstream, at)
		}
	}
	return ""
}

// hold lets what is to be deleted wait for an object that is wanted, must stay, or could not be read. One that itself waits for what is to
// be deleted, because it comes before it, is deleted with it.
func (c *contents) hold(in Input, holder *Outcome, outcomes, left []Outcome) {
	collected := holder.State == StateDelete && in.Upstream.GetDeletionTimestamp() != nil
	if holder.Action != ActionDelete && !holder.GoesLater && !collected {
		return
	}
	if wanted := c.wanted(outcomes); wanted != "" {
		holder.Action, holder.GoesLater = ActionNone, false
		holder.Message = fmt.Sprintf("it stays: %s is wanted, and is %s", wanted, c.is)
		return
	}
	wait := func(name, until string) {
		holder.Action, holder.GoesLater = ActionNone, true
		holder.Message = fmt.Sprintf("it stays until %s, which is %s, %s", name, c.is, until)
	}
	before := c.allBefore(holder.Downstream)
	for _, o := range left {
		goesBefore := o.GoesLater && slices.Contains(before, o.Downstream)
		stays := o.Action == ActionNone && !o.Live.Deleting && o.State != StateDelete && !goesBefore
		if stays && c.has(o.Downstream, o.Target) {
			wait(c.nameOf(o.Downstream, o.Target), "is gone")
			return
		}
	}
	if name := c.unread(in); name != "" {
		wait(name, "can be read")
		return
	}
	for _, other := range in.Others {
		if c.has(other.Downstream, other.At) {
			wait(fmt.Sprintf("%s of %s", c.nameOf(other.Downstream, other.At), other.Of), "is gone")
			holder.RequeueAfter = othersAgain
		}
	}
}

// othersAgain is when it is seen whether what belongs to another upstream still does: events of the object say when it is gone, none that its
// upstream is gone without it.
const othersAgain = 10 * time.Minute

// OtherObject is an object of a downstream that belongs to another upstream.
type OtherObject struct {
	Downstream int
	At, Of     Ref
}

// Holds returns a function that reports whether an object of a downstream would be deleted with a holder, and an upstream would not.
func (p *Pipeline) Holds(holder Owned) func(downstream int, at, of Ref) bool {
	c := contentsOf(p, p.Downstreams[holder.Downstream].GVK().GroupKind(), holder.Live.Name)
	return func(downstream int, at, of Ref) bool {
		return c != nil && c.has(downstream, at) && !c.contains(p.Upstream.GVR.GroupResource(), of)
	}
}

// unread names one of the contents that could not be read; empty for none.
func (c *contents) unread(in Input) string {
	for _, o := range in.Unread {
		if at := refOf(o.Live); at == (Ref{}) || c.has(o.Downstream, at) {
			return c.nameOf(o.Downstream, at)
		}
	}
	for _, f := range in.Forgotten {
		if f.Unread && (f.Resource.Empty() || c.contains(f.Resource, f.at())) {
			return f.Kind + " " + f.at().String()
		}
	}
	return ""
}
