package act

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// needsVerification has the object verified if a write may have left derived values behind: an update has changed which
// fields are ours, the API server has stored other values than were sent, and did not before, or the reverse, or it is
// not known whether an earlier update did. An object without a spec in which we own everything has nothing derived.
func (x *action) needsVerification() {
	if x.State != operator.StateUpdate && x.State != operator.StateRepair {
		return
	}
	facts, sent := x.In.Facts[x.Object], x.Applied
	isRewritten := sent.Rewritten != x.known.Rewritten(x.Answer.UID) || facts.Baseline != nil && x.Answer.P == x.want.Sum
	if facts.Unverified || x.State == operator.StateUpdate && !x.d.OwnsFields() &&
		(isRewritten || x.Answer.Shape != x.Live.Shape) &&
		drift.HasDerived(x.Stored, sent.document, x.d.View.Manager) {
		x.Verified = &memory.Verification{UID: x.Answer.UID, Hash: x.want.Hash, IsPending: true}
	}
}

// maxCompared is how often an object is compared with a new one in a row, while others change it, as a controller that
// reports its status.
const maxCompared = 4

// Verify compares the object of a Result whose verification is pending with a dry-run create of its document. What
// differs and has no other owner is set to what a new object has; what stays is in the Result. An error is temporary:
// the object is verified later.
func (a *Actor) Verify(ctx context.Context, of Result) Result {
	x := a.begin(of.Outcome)
	x.State = operator.StateInSync // what is written is not verified again
	x.Err = x.verify(ctx, *of.Verified, of.Stored, of.Applied.document)
	return *x.Result
}

func (x *action) verify(
	ctx context.Context, v memory.Verification, live *unstructured.Unstructured, doc map[string]any,
) error {
	n, err := x.newObjectOf(ctx, doc)
	if err != nil {
		return err
	}
	list, err := n.fix(ctx, live)
	for i := 1; errors.Is(err, apply.ErrConflict) && i < maxCompared; i++ {
		if live, err = x.Client.Get(ctx, x.target); err == nil && live.GetUID() == v.UID {
			list, err = n.fix(ctx, live)
		}
	}
	if err != nil {
		return err
	}
	v.IsPending, v.Stale = false, drift.DescribeUnlike(list, &x.d.View)
	x.Verified = &v
	return nil
}

// fix makes live like the new object, and returns what still differs. ErrConflict: live has changed since.
func (n *newObject) fix(ctx context.Context, live *unstructured.Unstructured) ([]drift.Unlike, error) {
	list, err := n.differences(ctx, live)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	fixed, err := n.makeLikeNew(ctx, live, list)
	if err != nil || fixed == nil {
		return list, err
	}
	if err := n.applied(ctx, fixed, n.doc); err != nil {
		return nil, err
	}
	return drift.WithoutTheirs(n.unlike(fixed), n.doc), nil
}

// makeLikeNew makes the fields of list those of a new object, as far as the API server lets it; it returns nil if it
// would change nothing. By an apply with their live values they become ours; without them, the next one removes them,
// and the API server derives them again. This leaves no other mark of ours, and also reaches into lists.
func (n *newObject) makeLikeNew(
	ctx context.Context, live *unstructured.Unstructured, list []drift.Unlike,
) (*unstructured.Unstructured, error) {
	list, err := n.possible(ctx, live, list)
	client, t, doc := n.Client, n.target, n.doc
	switch {
	case err != nil || len(list) == 0:
		return nil, err
	case client.Dry():
		return client.WouldStore(ctx, t, drift.LikeNew(live, list))
	}
	if claim, ok := drift.Claim(doc, list); ok {
		if _, err := client.ApplyAt(ctx, t, live.GetUID(), live.GetResourceVersion(), claim); err != nil {
			return nil, err
		}
	}
	live, err = client.Apply(ctx, t, live.GetUID(), doc)
	if err != nil {
		return nil, err
	}
	if rest := drift.Removable(n.unlike(live)); len(rest) > 0 { // an empty list that an apply cannot own
		return client.Null(ctx, t, live.GetUID(), live.GetResourceVersion(), rest)
	}
	return live, nil
}

// newObject is what dry-run creates of one document return.
type newObject struct {
	*action
	doc     map[string]any
	created *unstructured.Unstructured // nil: the API server does not say
	random  []drift.Unlike
}

// newObjectOf makes a dry-run create. If the API server refuses it, or cannot make one, the result knows nothing.
func (x *action) newObjectOf(ctx context.Context, doc map[string]any) (*newObject, error) {
	n := &newObject{action: x, doc: doc}
	created, err := x.Client.DryRunCreate(ctx, x.target, doc)
	f := apply.Classify(err)
	switch {
	case err == nil:
		n.created = created
	case !f.Persistent() && f.Reason != apply.ReasonForbidden && f.Reason != apply.ReasonAlreadyExists &&
		f.Reason != apply.ReasonNamespaceTerminating:
		return nil, err
	default:
		x.Log.V(1).Info("not compared with a new object", "upstream", x.Ref.String(), "target", x.Target.String(), "reason",
			f.Reason, "message", f.Message)
	}
	return n, nil
}

// differences returns in which fields live is not like a new object, apart from those of other managers and random
// values.
func (n *newObject) differences(ctx context.Context, live *unstructured.Unstructured) ([]drift.Unlike, error) {
	list := drift.WithoutTheirs(n.unlike(live), n.doc)
	if len(list) == 0 {
		return nil, nil
	}
	again, err := n.Client.DryRunCreate(ctx, n.target, n.doc)
	if err != nil {
		return nil, err
	}
	n.random = drift.UnlikeNew(n.created, again, &n.d.View)
	return drift.Apart(list, n.random), nil
}

func (n *newObject) unlike(live *unstructured.Unstructured) []drift.Unlike {
	if n.created == nil {
		return nil
	}
	return drift.Apart(drift.UnlikeNew(live, n.created, &n.d.View), n.random)
}

// maxTried limits the dry runs for one update.
const maxTried = 8

// possible returns those of list that the API server would make like new: all at once, or else each that it accepts
// alone.
func (n *newObject) possible(
	ctx context.Context, live *unstructured.Unstructured, list []drift.Unlike,
) ([]drift.Unlike, error) {
	would, err := n.Client.WouldStore(ctx, n.target, drift.LikeNew(live, list))
	if apply.Classify(err).Persistent() && len(list) > 1 {
		var some []drift.Unlike
		for _, f := range list[:min(len(list), maxTried)] {
			if _, err := n.Client.WouldStore(ctx, n.target, drift.LikeNew(live, []drift.Unlike{f})); err == nil {
				some = append(some, f)
			}
		}
		list = some
		would, err = n.Client.WouldStore(ctx, n.target, drift.LikeNew(live, list))
	}
	switch {
	case apply.Classify(err).Persistent():
		return nil, nil
	case err != nil:
		return nil, err
	}
	return drift.Apart(list, n.unlike(would)), nil
}
