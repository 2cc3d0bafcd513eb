package before

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"context"
	"errors"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
)

// GatherEarlier gathers what is known about an unfinished object of an earlier deletion.before; there is no Record if
// it is done by now. No watch shows when it changes.
func (j *Job) GatherEarlier(ctx context.Context) (f operator.BeforeFacts, err error) {
	if !j.Memory.Before.Edit().IsUpstreamRead { // another process may have recorded more than the cache shows
		if err := j.readUpstream(ctx); err != nil {
			return f, err
		}
	}
	j.IsUnwatched = true
	if f.Record = decide.UnfinishedBefore(j.Pipeline.Settings, j.Upstream); f.Record == nil {
		return f, nil
	}
	_, obj, err := j.ReadForgotten(ctx, f.Record)
	// the rights may have gone with the key in the config
	if c := apply.Classify(err); err != nil && c.Reason == apply.ReasonForbidden {
		f.Unread = c.Message
		return f, nil
	}
	if obj == nil {
		return f, err
	}
	f.Live = j.Pipeline.EarlierBeforeLive(obj)
	if f.Record.UID == "" && !marks.MadeForDeletion(f.Live, j.Upstream.GetUID()) {
		f.Live = nil
	}
	return f, nil
}

// ReleaseEarlier releases the object of an earlier deletion.before: the config changed in the middle of the deletion.
func (j *Job) ReleaseEarlier(ctx context.Context) error {
	recorded := decide.EarlierBefore(j.Pipeline.Settings, j.Upstream)
	if recorded == nil || recorded.UID == "" {
		return nil
	}
	t, obj, err := j.ReadForgotten(ctx, recorded)
	if obj == nil {
		return err
	}
	obj, err = j.API.RemoveFinalizer(ctx, t, obj, j.Pipeline.Config.Conventions.Finalizers()...)
	switch {
	case errors.Is(err, apply.ErrGone):
		return nil
	case err != nil:
		return err
	case obj.GetDeletionTimestamp() != nil, len(obj.GetOwnerReferences()) > 0, j.NamesOther(ctx, obj):
		return nil
	}
	_, err = act.Delete(ctx, j.API, t, recorded.UID, metav1.DeletionPropagation(j.Pipeline.Config.Deletion.Propagation))
	return err
}
