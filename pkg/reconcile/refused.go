package reconcile

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
func (r *reconciliation) refused(ctx context.Context, o operator.Outcome, doc map[string]any, in operator.Input, refusal error) error {
	reason := apply.Classify(refusal).Reason
	switch {
	case reason != apply.ReasonRejected && reason != apply.ReasonDenied || o.Theirs:
		return refusal
	case !isChanged(o, in):
		return r.applyAsCreated(ctx, o, doc, in, refusal)
	}
	way, err := r.wayAround(ctx, o, doc, refusal)
	switch {
	case err != nil:
		return err
	case way != nil:
		return r.applyAround(ctx, o, in, doc, way)
	case !mayRecreate(r.Pipeline.Settings, o, in):
		return refusal
	}
	return r.proveImmutable(ctx, o, doc, refusal)
}

// isChanged reports whether the document is not the one that the object was created from.
func isChanged(o operator.Outcome, in operator.Input) bool {
	return in.Facts[o.Object].LastHash() != in.Desired.Objects[o.Object].Hash
}

// mayRecreate reports whether the config wants an object recreated if its update needs that.
func mayRecreate(s *operator.Settings, o operator.Outcome, in operator.Input) bool {
	return s.Config.Downstreams[o.Downstream].UpdatePolicy == config.UpdateRecreate && !o.Theirs && isChanged(o, in)
}

// confirmImmutable reports whether an object may be deleted to be recreated now. Rights, quotas and policies may have changed since an
// earlier reconciliation proved it, so then it is proved again. False without an error: it is decided on anew.
func confirmImmutable(ctx context.Context, r *reconciliation, o operator.Outcome) (bool, error) {
	if r.record.Object(o.Object).IsProvedAt(r.now) {
		return true, nil
	}
	return askImmutable(ctx, r, o)
}

// askImmutable is proveImmutable for an update that was not sent. False without an error: the API server would accept it.
func askImmutable(ctx context.Context, r *reconciliation, o operator.Outcome) (bool, error) {
	doc, err := r.dryRunDocument(ctx, r.record.Desired(), o)
	if err != nil {
		return false, err
	}
	refusal := r.client.AcceptsApply(ctx, r.target(o.Downstream, o.Target), o.UID, doc)
	if apply.Classify(refusal).Reason != apply.ReasonRejected {
		return false, refusal
	}
	if way, err := r.wayAround(ctx, o, doc, refusal); way != nil || err != nil {
		return false, err
	}
	err = r.proveImmutable(ctx, o, doc, refusal)
	return err == nil, err
}

// proveImmutable returns nil, and remembers the result, if a refusal can only be due to immutable fields: the API server's own
// validation names fields, it would accept the document for a new object, and admission accepts every part of the change that
// validation accepts. Validation comes first: if it refuses, no policy or webhook is asked, even one that allows no update at
// all.
func (r *reconciliation) proveImmutable(ctx context.Context, o operator.Outcome, doc map[string]any, refusal error) error {
	if len(apply.InvalidFields(refusal)) == 0 {
		return notRecreated(refusal, "the refusal does not name a field that is immutable: have admission allow the change, or delete the object")
	}
	t := r.target(o.Downstream, o.Target)
	if err := r.client.Accepts(ctx, t, doc); err != nil {
		return notRecreated(refusal, "the API server does not accept a new object either: "+classify(r.Pipeline.Downstreams[o.Downstream], err).Message)
	}
	live, err := r.client.Get(ctx, t)
	if err != nil {
		return err
	}
	for i, part := range drift.Partial(doc, live, &r.Pipeline.Downstreams[o.Downstream].View) {
		err := r.client.AcceptsApply(ctx, t, o.UID, part)
		if err != nil && (i == 0 || len(apply.InvalidFields(err)) == 0) {
			return notRecreated(refusal, "a change to other fields is refused too: "+classify(r.Pipeline.Downstreams[o.Downstream], err).Message)
		}
	}
	hash := r.record.Desired().Objects[o.Object].Hash
	r.record.Object(o.Object).ProveImmutable(o.Live, hash, r.now)
	return nil
}

// notRecreated adds to a refusal why updatePolicy Recreate does not delete the object.
func notRecreated(refusal error, why string) error {
	return fmt.Errorf("%w; not recreated: %s", refusal, why)
}

// applyAsCreated applies the document that the object was created from, with the live values that the API server gives a new
// object made from it: an immutable field that admission changed on creation can have no other value. A difference of any other
// origin stays, and is reported as the refusal.
func (r *reconciliation) applyAsCreated(ctx context.Context, o operator.Outcome, doc map[string]any, in operator.Input, refusal error) error {
	i := o.Downstream
	t := r.target(i, o.Target)
	if len(apply.InvalidFields(refusal)) == 0 {
		return refusal
	}
	live, err := r.client.Get(ctx, t)
	if err != nil {
		return err
	}
	created, err := r.client.DryRunCreate(ctx, t, doc)
	if err != nil {
		return immutableDrift(o, refusal)
	}
	kept := drift.AsCreated(doc, live, created, &r.Pipeline.Downstreams[i].View)
	if kept == nil {
		return immutableDrift(o, refusal)
	}
	resp, err := r.client.ApplyAt(ctx, t, o.UID, live.GetResourceVersion(), kept)
	switch {
	case errors.Is(err, apply.ErrGone), errors.Is(err, apply.ErrReplaced):
		r.record.NoteGone(o.UID, r.now)
		return nil
	case apply.Classify(err).Reason == apply.ReasonRejected:
		return immutableDrift(o, refusal)
	case err != nil:
		return err
	}
	r.reportApplied(o, live, resp)
	return r.rememberApplied(ctx, o, in, resp, kept)
}

// immutableDrift is the refusal of a document that has not changed, where the difference is not due to the API server.
func immutableDrift(o operator.Outcome, refusal error) error {
	return notRecreated(refusal, fmt.Sprintf("the desired state has not changed; delete %s to have it created again", o.Target))
}
