package pipeline

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
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
		if o := &left[i]; (o.Action == ActionDelete || o.Action == ActionRelease && !deleted) && users[o.Downstream] != "" {
			o.Action, o.GoesLater, o.Message = ActionNone, true, "it stays until "+users[o.Downstream]
		}
	}
	for i := range left {
		if c := contentsOf(p, left[i]); c != nil && !left[i].Live.Deleting && left[i].Action != ActionRelease && !p.keeps(in.Leftovers[i]) {
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
	for _, other := range left {
		note(p.allBefore(other.Downstream), other.Downstream, other.Target, "is gone")
	}
	return users
}

// contents knows what would be deleted with a Namespace or CustomResourceDefinition, whatever comes after what.
type contents struct {
	*Pipeline
	// has reports whether an object at a place would.
	has func(downstream int, at Ref) bool
	// is says so in a sentence.
	is string
}

// contentsOf returns nil for an object of another kind.
func contentsOf(p *Pipeline, holder Outcome) *contents {
	switch p.Downstreams[holder.Downstream].GVK().GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return &contents{p, func(_ int, at Ref) bool { return at.Namespace == holder.Live.Name }, "in it"}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return &contents{p, func(i int, _ Ref) bool { return p.Downstreams[i].Kind.GVR.GroupResource().String() == holder.Live.Name }, "of this kind"}
	}
	return nil
}

// nameOf names an object for a message; without a place, any of the downstream.
func (p *Pipeline) nameOf(downstream int, at Ref) string {
	kind := p.Downstreams[downstream].Config.Kind
	if at == (Ref{}) {
		return "any " + kind
	}
	return kind + " " + at.String()
}

// keep releases what was to be deleted and has an object that deletionPolicy: Orphan keeps. That object has our marks until then: without
// them, nothing would say that it is to be kept.
func (c *contents) keep(in Input, holder *Outcome, left []Outcome) {
	deleted := in.Upstream.GetDeletionTimestamp() != nil // then the garbage collector may delete it
	goes := holder.Action == ActionDelete || holder.GoesLater || deleted
	for i := range left {
		o := &left[i]
		released := o.Action == ActionRelease || o.GoesLater && c.keeps(in.Leftovers[i])
		if !released || c.Downstreams[o.Downstream].OwnsFields() || !c.has(o.Downstream, o.Target) {
			continue
		}
		o.Action, o.GoesLater = ActionNone, true
		o.Message = fmt.Sprintf("%s; it is released after %s", o.Message, c.nameOf(holder.Downstream, holder.Target))
		if goes && holder.Action != ActionRelease {
			if holder.Action, holder.GoesLater = ActionRelease, false; deleted {
				holder.State = StateRelease
			}
			holder.Message = fmt.Sprintf("%s; it is kept, since %s, which deletionPolicy %s keeps, is %s", holder.Message, c.nameOf(o.Downstream, o.Target), config.DeletionOrphan, c.is)
		}
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
	if holder.Action != ActionDelete && !holder.GoesLater {
		return
	}
	if wanted := c.wanted(outcomes); wanted != "" {
		holder.Action, holder.GoesLater = ActionNone, false
		holder.Message = fmt.Sprintf("it stays: %s is wanted, and is %s", wanted, c.is)
		return
	}
	wait := func(downstream int, at Ref, until string) {
		holder.Action, holder.GoesLater = ActionNone, true
		holder.Message = fmt.Sprintf("it stays until %s, which is %s, %s", c.nameOf(downstream, at), c.is, until)
	}
	before := c.allBefore(holder.Downstream)
	for _, o := range left {
		goesBefore := o.GoesLater && slices.Contains(before, o.Downstream)
		stays := o.Action == ActionNone && !o.Live.Deleting && o.State != StateDelete && !goesBefore
		if stays && c.has(o.Downstream, o.Target) {
			wait(o.Downstream, o.Target, "is gone")
			return
		}
	}
	for _, o := range in.Unread {
		if at := refOf(o.Live); at == (Ref{}) || c.has(o.Downstream, at) {
			wait(o.Downstream, refOf(o.Live), "can be read")
			return
		}
	}
}
