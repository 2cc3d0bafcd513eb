package reconcile

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// This file is about values that the API server derived when an object was created, and that nobody owns: an update keeps them, though a
// new object made from the same document would have others, or none.

// verifiedAs says whether object k of the desired state, live, must be verified, and in which fields it stays stale. An update that was not
// verified stays so, whatever is decided next. After a restart, the upstream's status says it: it records another hash if the process ended
// between the update and its report, and StateUpdate until the object is verified.
func (r *reconciliation) verifiedAs(k int, live *drift.Live, rec *status.Recorded) (unverified bool, stale string) {
	t, d := r.record.Object(k), r.downstream(k)
	v := t.Unusual.Get().Verified
	switch {
	case d.OwnsFields() || d.Config.UpdatePolicy == config.UpdateCreateOnly:
		return false, ""
	case v.UID == live.UID && (v.IsPending || v.Hash == r.record.Desired().Objects[k].Hash):
		return v.IsPending, v.Stale
	case rec == nil || rec.UID != live.UID || t.UID == live.UID && t.Contest.Get().Written != "":
		return false, ""
	}
	isComplete := rec.State != string(operator.StateStale) && rec.State != string(operator.StateUpdate)
	return !isComplete || rec.Hash != "" && rec.Hash != live.Hash, ""
}

// needsVerification reports whether a write may have left derived values behind: an update has changed which fields are ours, the API server
// has stored other values than were sent, and did not before, or the reverse, or it is not known whether an earlier update did. An object
// without a spec in which we own everything has nothing derived.
func (r *reconciliation) needsVerification(o operator.Outcome, in operator.Input, live *drift.Live, resp *unstructured.Unstructured,
	doc map[string]any, isRewritten bool) bool {
	d := r.Pipeline.Downstreams[o.Downstream]
	if o.State != operator.StateUpdate && o.State != operator.StateRepair {
		return false
	}
	facts := in.Facts[o.Object]
	isRewritten = isRewritten || facts.Baseline != nil && live.P == in.Desired.Objects[o.Object].Sum
	return facts.Unverified || o.State == operator.StateUpdate && !d.OwnsFields() && (isRewritten || live.Shape != o.Live.Shape) &&
		drift.HasDerived(resp, doc, d.View.Manager)
}

// maxCompared is how often an object is compared with a new one in a row, while others change it, as a controller that reports its status.
const maxCompared = 4

// verify compares an updated object with a dry-run create of its document. What differs and has no other owner is set to what a new
// object has; what stays is remembered, so that the status says it. An error is temporary: the object is verified later.
func (r *reconciliation) verify(ctx context.Context, o operator.Outcome, in operator.Input, resp *unstructured.Unstructured, doc map[string]any) error {
	d, t := r.Pipeline.Downstreams[o.Downstream], r.record.Object(o.Object)
	v := memory.Verification{UID: resp.GetUID(), Hash: in.Desired.Objects[o.Object].Hash, IsPending: true}
	t.Unusual.Edit().Verified = v
	n, err := r.newObject(ctx, o, doc)
	if err != nil {
		return err
	}
	list, err := r.compareWith(ctx, n, o, in, resp, doc)
	for i := 1; errors.Is(err, apply.ErrConflict) && i < maxCompared; i++ {
		if resp, err = r.client.Get(ctx, n.target); err == nil && resp.GetUID() == v.UID {
			list, err = r.compareWith(ctx, n, o, in, resp, doc)
		}
	}
	if err != nil {
		return err
	}
	v.IsPending, v.Stale = false, drift.DescribeUnlike(list, &d.View)
	t.Unusual.Edit().Verified = v
	return nil
}

// compareWith makes live like the new object n, and returns what still differs. ErrConflict: live has changed since.
func (r *reconciliation) compareWith(ctx context.Context, n *newObject, o operator.Outcome, in operator.Input, live *unstructured.Unstructured,
	doc map[string]any) ([]drift.Unlike, error) {
	list, err := n.differences(ctx, live)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	fixed, err := r.makeLikeNew(ctx, o, live, doc, n, list)
	if err != nil || fixed == nil {
		return list, err
	}
	o.State = operator.StateInSync // what is returned is remembered, and not verified again
	if err := r.rememberApplied(ctx, o, in, fixed, doc); err != nil {
		return nil, err
	}
	return drift.WithoutTheirs(n.unlike(fixed), doc), nil
}

// makeLikeNew makes the fields of list those of a new object, as far as the API server lets it; it returns nil if it would change nothing.
// By an apply with their live values they become ours; without them, the next one removes them, and the API server derives them again. This
// leaves no other mark of ours, and also reaches into lists.
func (r *reconciliation) makeLikeNew(ctx context.Context, o operator.Outcome, live *unstructured.Unstructured, doc map[string]any,
	n *newObject, list []drift.Unlike) (*unstructured.Unstructured, error) {
	list, err := n.possible(ctx, live, list)
	t := r.target(o.Downstream, o.Target)
	switch {
	case err != nil || len(list) == 0:
		return nil, err
	case r.client.Dry():
		return r.client.Stored(ctx, t, drift.LikeNew(live, list))
	}
	if claim, ok := drift.Claim(doc, list); ok {
		if _, err := r.client.ApplyAt(ctx, t, live.GetUID(), live.GetResourceVersion(), claim); err != nil {
			return nil, err
		}
	}
	live, err = r.client.Apply(ctx, t, live.GetUID(), doc)
	if err != nil {
		return nil, err
	}
	if rest := drift.Removable(n.unlike(live)); len(rest) > 0 { // an empty list that an apply cannot own
		return r.client.Null(ctx, t, live.GetUID(), live.GetResourceVersion(), rest)
	}
	return live, nil
}

// newObject is what dry-run creates of one document return.
type newObject struct {
	client  *apply.Client
	view    *drift.View
	target  apply.Target
	doc     map[string]any
	created *unstructured.Unstructured // nil: the API server does not say
	random  []drift.Unlike
}

// newObject makes a dry-run create. If the API server refuses it, or cannot make one, the result knows nothing.
func (r *reconciliation) newObject(ctx context.Context, o operator.Outcome, doc map[string]any) (*newObject, error) {
	n := &newObject{client: r.client, view: &r.Pipeline.Downstreams[o.Downstream].View, target: r.target(o.Downstream, o.Target), doc: doc}
	created, err := r.client.DryRunCreate(ctx, n.target, doc)
	f := apply.Classify(err)
	switch {
	case err == nil:
		n.created = created
	case !f.Persistent() && f.Reason != apply.ReasonForbidden && f.Reason != apply.ReasonAlreadyExists && f.Reason != apply.ReasonNamespaceTerminating:
		return nil, err
	default:
		r.Log.V(1).Info("not compared with a new object", "upstream", r.ref.String(), "target", o.Target.String(), "reason", f.Reason, "message", f.Message)
	}
	return n, nil
}

// differences returns in which fields live is not like a new object, apart from those of other managers and random values.
func (n *newObject) differences(ctx context.Context, live *unstructured.Unstructured) ([]drift.Unlike, error) {
	list := drift.WithoutTheirs(n.unlike(live), n.doc)
	if len(list) == 0 {
		return nil, nil
	}
	again, err := n.client.DryRunCreate(ctx, n.target, n.doc)
	if err != nil {
		return nil, err
	}
	n.random = drift.UnlikeNew(n.created, again, n.view)
	return drift.Apart(list, n.random), nil
}

func (n *newObject) unlike(live *unstructured.Unstructured) []drift.Unlike {
	if n.created == nil {
		return nil
	}
	return drift.Apart(drift.UnlikeNew(live, n.created, n.view), n.random)
}

// maxTried limits the dry runs for one update.
const maxTried = 8

// possible returns those of list that the API server would make like new: all at once, or else each that it accepts alone.
func (n *newObject) possible(ctx context.Context, live *unstructured.Unstructured, list []drift.Unlike) ([]drift.Unlike, error) {
	would, err := n.client.WouldStore(ctx, n.target, drift.LikeNew(live, list))
	if apply.Classify(err).Persistent() && len(list) > 1 {
		var some []drift.Unlike
		for _, f := range list[:min(len(list), maxTried)] {
			if _, err := n.client.WouldStore(ctx, n.target, drift.LikeNew(live, []drift.Unlike{f})); err == nil {
				some = append(some, f)
			}
		}
		list = some
		would, err = n.client.WouldStore(ctx, n.target, drift.LikeNew(live, list))
	}
	switch {
	case apply.Classify(err).Persistent():
		return nil, nil
	case err != nil:
		return nil, err
	}
	return drift.Apart(list, n.unlike(would)), nil
}
