package act

import (
	"cmp"
	"context"
	"errors"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/status"
)

// create creates an object. If one exists after all, it is read: an object that lost the labels of the watch is still
// ours by its uid; any other is decided on as it is. Then the outcome becomes that of an apply.
func (x *action) create(ctx context.Context) error {
	doc, err := x.document(ctx, nil)
	if err != nil {
		return err
	}
	resp, err := x.Client.Create(ctx, x.target, doc)
	if err != nil && !errors.Is(err, apply.ErrExists) {
		x.MayExist = new(mayHaveSucceeded(err))
		return err
	}
	if !x.want.Reference || x.Settings.HoldsDeletion() {
		x.MayExist = new(true)
	}
	if err != nil {
		return x.resolveExisting(ctx, doc)
	}
	x.Did, x.ValuesLost = events.EventCreated, true
	return x.applied(ctx, resp, doc)
}

// resolveExisting reads the object that kept a create from succeeding, so that the next round decides on it. If its
// recorded uid is known to be ours, only the labels were removed: it is applied without a read. With shards, its owner
// marks may have been edited.
func (x *action) resolveExisting(ctx context.Context, doc map[string]any) error {
	rec := x.Settings.RecordedOf(x.Settings.Recorded(x.Upstream), x.want)
	x.State, x.Action, x.Message = operator.StateRepair, operator.ActionApply,
		"it had lost labels that the watch selects by"
	if hash, ok := x.unreadHash(rec); ok {
		if hash != x.want.Hash { // the labels are part of it
			x.State, x.Message = operator.StateUpdate, decide.MessageChanged
		}
		resp, err := x.Client.Apply(ctx, x.target, rec.UID, doc)
		switch {
		case err == nil:
			x.didApply(nil, resp)
			x.Stored, x.Answer, x.Written = resp, x.LiveOf(x.d, resp), x.want.Hash
			x.noteHidden(resp)
			return nil
		case !errors.Is(err, apply.ErrReplaced) && !errors.Is(err, apply.ErrGone) &&
			apply.Classify(err).Reason != apply.ReasonRejected:
			return err // what is refused is read, and decided on
		}
	}
	live, err := x.Client.Get(ctx, x.target)
	if err != nil {
		return err // also if it has just gone: that is retried like any other failure
	}
	if x.Answer = x.LiveOf(x.d, live); !marks.Applied(x.Answer, x.Upstream.GetUID()) {
		x.MayExist = new(false)
	}
	return nil
}

// unreadHash is the hash of what was applied last to an object, if the status records as rec that it is where it is to
// be, this process agrees, and an apply needs to know no more about it.
func (x *action) unreadHash(rec *status.Recorded) (hash string, ok bool) {
	if x.IsSharded || rec == nil || rec.UID == "" || rec.UID != x.known.UID || rec.Namespace != x.Target.Namespace ||
		rec.ObjectName != x.Target.Name {
		return "", false
	}
	hash = cmp.Or(x.known.Contest.Get().Written, rec.Hash)
	return hash, hash != "" && marks.IsOfFields(hash) == x.d.OwnsFields() && len(x.d.View.Initial) == 0 &&
		x.d.Repairs() && len(x.d.View.TakeoverManagers()) == 0
}

// mayHaveSucceeded reports whether a failed request may have been carried out nevertheless.
func mayHaveSucceeded(err error) bool {
	switch apply.Classify(err).Reason {
	case apply.ReasonUnavailable, apply.ReasonInternalError, apply.ReasonCanceled, apply.ReasonUnknown:
		return true
	}
	return false
}
