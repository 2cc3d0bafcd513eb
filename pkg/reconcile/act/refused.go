package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// refused is about an apply that the API server refused. If the object was created from the same document, it is
// repaired as far as possible and never recreated. If the document has changed, values that nobody owns may be the
// reason: then they are removed. Else the config may want the object recreated, which takes proof that only immutable
// fields are the reason.
func (x *action) refused(ctx context.Context, doc map[string]any, refusal error) error {
	reason := apply.Classify(refusal).Reason
	switch {
	case reason != apply.ReasonRejected && reason != apply.ReasonDenied || x.Theirs:
		return refusal
	case !x.isChanged():
		return x.applyAsCreated(ctx, doc, refusal)
	}
	way, err := x.wayAround(ctx, doc, refusal)
	switch {
	case err != nil:
		return err
	case way != nil:
		return way.applyWithout(ctx)
	case !x.mayRecreate():
		return refusal
	}
	return x.proveImmutable(ctx, doc, refusal)
}

// isChanged reports whether the document is not the one that the object was created from.
func (x *action) isChanged() bool { return x.In.Facts[x.Object].LastHash(x.Live) != x.want.Hash }

// mayRecreate reports whether the config wants an object recreated if its update needs that.
func (x *action) mayRecreate() bool {
	return x.d.Config.UpdatePolicy == config.UpdateRecreate && !x.Theirs && x.isChanged()
}

// confirmImmutable reports whether an object may be deleted to be recreated now. Rights, quotas and policies may have
// changed since an earlier reconciliation proved it, so then it is proved again. False without an error: it is decided
// on again. From here to the creation, no other object of this process is recreated.
func (x *action) confirmImmutable(ctx context.Context) (bool, error) {
	isFresh := x.Client.Dry()
	if !isFresh {
		var err error
		if isFresh, err = x.TakeTurn(ctx); err != nil {
			return false, err
		}
	}
	if isFresh && x.known.IsProvedAt(x.In.Now) {
		return true, nil
	}
	x.Immutable = new(false)
	return x.askImmutable(ctx)
}

// NeedsRecreation asks by dry runs whether an update would delete its object to create it again.
func (a *Actor) NeedsRecreation(ctx context.Context, o operator.Outcome) Result {
	x := a.begin(o)
	if x.mayRecreate() {
		_, x.Err = x.askImmutable(ctx)
	}
	return *x.Result
}

// askImmutable is proveImmutable for an update that was not sent. False without an error: the API server would accept
// it.
func (x *action) askImmutable(ctx context.Context) (bool, error) {
	doc, err := x.dryRunDocument(ctx)
	if err != nil {
		return false, err
	}
	refusal := x.Client.AcceptsApply(ctx, x.target, x.UID, doc)
	if apply.Classify(refusal).Reason != apply.ReasonRejected {
		return false, refusal
	}
	if way, err := x.wayAround(ctx, doc, refusal); way != nil || err != nil {
		return false, err
	}
	err = x.proveImmutable(ctx, doc, refusal)
	return err == nil, err
}

// proveImmutable returns nil, if a refusal can only be due to immutable fields: the API server's own validation names
// fields, it would accept the document for a new object, and admission accepts every part of the change that validation
// accepts. Validation comes first: if it refuses, no policy or webhook is asked, even one that allows no update at all.
func (x *action) proveImmutable(ctx context.Context, doc map[string]any, refusal error) error {
	if len(apply.InvalidFields(refusal)) == 0 {
		return notRecreated(refusal,
			"the refusal does not name a field that is immutable: have admission allow the change, or delete the object")
	}
	if err := x.Client.Accepts(ctx, x.target, doc); err != nil {
		return notRecreated(refusal, "the API server does not accept a new object either: "+x.classify(err).Message)
	}
	live, err := x.Client.Get(ctx, x.target)
	if err != nil {
		return err
	}
	for i, part := range drift.Partial(doc, live, &x.d.View) {
		err := x.Client.AcceptsApply(ctx, x.target, x.UID, part)
		if err != nil && (i == 0 || len(apply.InvalidFields(err)) == 0) {
			return notRecreated(refusal, "a change to other fields is refused too: "+x.classify(err).Message)
		}
	}
	x.Immutable = new(true)
	return nil
}

// notRecreated adds to a refusal why updatePolicy Recreate does not delete the object.
func notRecreated(refusal error, why string) error {
	return fmt.Errorf("%w; not recreated: %s", refusal, why)
}

// applyAsCreated applies the document that the object was created from, with the live values that the API server gives
// a new object made from it: an immutable field that admission changed on creation can have no other value. A
// difference of any other origin stays, and is reported as the refusal.
func (x *action) applyAsCreated(ctx context.Context, doc map[string]any, refusal error) error {
	if len(apply.InvalidFields(refusal)) == 0 {
		return refusal
	}
	live, err := x.Client.Get(ctx, x.target)
	if err != nil {
		return err
	}
	created, err := x.Client.DryRunCreate(ctx, x.target, doc)
	if err != nil {
		return x.immutableDrift(refusal)
	}
	kept := drift.AsCreated(doc, live, created, &x.d.View)
	if kept == nil {
		return x.immutableDrift(refusal)
	}
	resp, err := x.Client.ApplyAt(ctx, x.target, x.UID, live.GetResourceVersion(), kept)
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		return x.unlessGone(apply.ErrGone)
	case apply.Classify(err).Reason == apply.ReasonRejected:
		return x.immutableDrift(refusal)
	case err != nil:
		return err
	}
	x.didApply(live, resp)
	return x.applied(ctx, resp, kept)
}

// immutableDrift is the refusal of a document that has not changed, where the difference is not due to the API server.
func (x *action) immutableDrift(refusal error) error {
	return notRecreated(refusal,
		fmt.Sprintf("the desired state has not changed; delete %s to have it created again", x.Target))
}
