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

// refused is about an apply that the API server refused. If the object was created from the same document, it is repaired as
// far as possible and never recreated. If the document has changed, values that nobody owns may be the reason: then they are removed. Else the
// config may want the object recreated, which takes proof that only immutable fields are the reason.
func (a *Actor) refused(ctx context.Context, o operator.Outcome, doc map[string]any, refusal error) error {
	reason := apply.Classify(refusal).Reason
	switch {
	case reason != apply.ReasonRejected && reason != apply.ReasonDenied || o.Theirs:
		return refusal
	case !isChanged(a.In, o):
		return a.applyAsCreated(ctx, o, doc, refusal)
	}
	way, err := a.wayAround(ctx, o, doc, refusal)
	switch {
	case err != nil:
		return err
	case way != nil:
		return way.apply(ctx)
	case !mayRecreate(a, o):
		return refusal
	}
	return a.proveImmutable(ctx, o, doc, refusal)
}

// isChanged reports whether the document is not the one that the object was created from.
func isChanged(in operator.Input, o operator.Outcome) bool {
	return in.Facts[o.Object].LastHash() != in.Desired.Objects[o.Object].Hash
}

// mayRecreate reports whether the config wants an object recreated if its update needs that.
func mayRecreate(a *Actor, o operator.Outcome) bool {
	return a.Settings.Config.Downstreams[o.Downstream].UpdatePolicy == config.UpdateRecreate && !o.Theirs && isChanged(a.In, o)
}

// confirmImmutable reports whether an object may be deleted to be recreated now. Rights, quotas and policies may have changed since an
// earlier reconciliation proved it, so then it is proved again. False without an error: it is decided on again.
func (a *Actor) confirmImmutable(ctx context.Context, o operator.Outcome) (bool, error) {
	if a.Memory.Object(o.Object).IsProvedAt(a.Now) {
		return true, nil
	}
	return a.askImmutable(ctx, o)
}

// NeedsRecreation asks by dry runs whether an update would delete its object to create it again.
func (a *Actor) NeedsRecreation(ctx context.Context, o operator.Outcome) bool {
	if !mayRecreate(a, o) {
		return false
	}
	needs, _ := a.askImmutable(ctx, o)
	return needs
}

// askImmutable is proveImmutable for an update that was not sent. False without an error: the API server would accept it.
func (a *Actor) askImmutable(ctx context.Context, o operator.Outcome) (bool, error) {
	doc, err := a.dryRunDocument(ctx, o)
	if err != nil {
		return false, err
	}
	refusal := a.Client.AcceptsApply(ctx, a.target(o.Downstream, o.Target), o.UID, doc)
	if apply.Classify(refusal).Reason != apply.ReasonRejected {
		return false, refusal
	}
	if way, err := a.wayAround(ctx, o, doc, refusal); way != nil || err != nil {
		return false, err
	}
	err = a.proveImmutable(ctx, o, doc, refusal)
	return err == nil, err
}

// proveImmutable returns nil, and remembers the result, if a refusal can only be due to immutable fields: the API server's own
// validation names fields, it would accept the document for a new object, and admission accepts every part of the change that
// validation accepts. Validation comes first: if it refuses, no policy or webhook is asked, even one that allows no update at
// all.
func (a *Actor) proveImmutable(ctx context.Context, o operator.Outcome, doc map[string]any, refusal error) error {
	if len(apply.InvalidFields(refusal)) == 0 {
		return notRecreated(refusal, "the refusal does not name a field that is immutable: have admission allow the change, or delete the object")
	}
	t := a.target(o.Downstream, o.Target)
	if err := a.Client.Accepts(ctx, t, doc); err != nil {
		return notRecreated(refusal, "the API server does not accept a new object either: "+Classify(err, a.Settings.Downstreams[o.Downstream].Words).Message)
	}
	live, err := a.Client.Get(ctx, t)
	if err != nil {
		return err
	}
	for i, part := range drift.Partial(doc, live, &a.Settings.Downstreams[o.Downstream].View) {
		err := a.Client.AcceptsApply(ctx, t, o.UID, part)
		if err != nil && (i == 0 || len(apply.InvalidFields(err)) == 0) {
			return notRecreated(refusal, "a change to other fields is refused too: "+Classify(err, a.Settings.Downstreams[o.Downstream].Words).Message)
		}
	}
	hash := a.In.Desired.Objects[o.Object].Hash
	a.Memory.Object(o.Object).ProveImmutable(o.Live, hash, a.Now)
	return nil
}

// notRecreated adds to a refusal why updatePolicy Recreate does not delete the object.
func notRecreated(refusal error, why string) error {
	return fmt.Errorf("%w; not recreated: %s", refusal, why)
}

// applyAsCreated applies the document that the object was created from, with the live values that the API server gives a new
// object made from it: an immutable field that admission changed on creation can have no other value. A difference of any other
// origin stays, and is reported as the refusal.
func (a *Actor) applyAsCreated(ctx context.Context, o operator.Outcome, doc map[string]any, refusal error) error {
	i := o.Downstream
	t := a.target(i, o.Target)
	if len(apply.InvalidFields(refusal)) == 0 {
		return refusal
	}
	live, err := a.Client.Get(ctx, t)
	if err != nil {
		return err
	}
	created, err := a.Client.DryRunCreate(ctx, t, doc)
	if err != nil {
		return immutableDrift(o, refusal)
	}
	kept := drift.AsCreated(doc, live, created, &a.Settings.Downstreams[i].View)
	if kept == nil {
		return immutableDrift(o, refusal)
	}
	resp, err := a.Client.ApplyAt(ctx, t, o.UID, live.GetResourceVersion(), kept)
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		a.Memory.NoteGone(o.UID, a.Now)
		return nil
	case apply.Classify(err).Reason == apply.ReasonRejected:
		return immutableDrift(o, refusal)
	case err != nil:
		return err
	}
	a.reportApplied(o, live, resp)
	return a.rememberApplied(ctx, o, resp, kept)
}

// immutableDrift is the refusal of a document that has not changed, where the difference is not due to the API server.
func immutableDrift(o operator.Outcome, refusal error) error {
	return notRecreated(refusal, fmt.Sprintf("the desired state has not changed; delete %s to have it created again", o.Target))
}
