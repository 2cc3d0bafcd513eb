package reconcile

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
)

// orphanedBefore returns the deletion.before objects with our finalizer whose upstream is gone, or was replaced by a later one
// of that name.
func (r *Reconciler) orphanedBefore(ref operator.Ref) []*drift.Live {
	var found []*drift.Live
	standing := r.Cache.UpstreamUID(ref)
	for _, live := range r.Cache.BeforeObjectsOf(ref.Name) {
		if marks.HasOurFinalizer(r.Pipeline.Settings, live) && r.owns(ref, live) && (standing == "" || !marks.Marked(live, standing)) {
			found = append(found, live)
		}
	}
	return found
}

func (r *Reconciler) owns(ref operator.Ref, live *drift.Live) bool {
	for _, owner := range marks.UpstreamsOf(r.Pipeline.Settings, live) {
		if owner == ref {
			return true
		}
	}
	return false
}

// releaseOrphanedBefore releases the deletion.before objects whose upstream is gone, as after somebody removed its finalizer by
// force: nobody waits for them any more, and our finalizer would keep them forever.
func (r *Reconciler) releaseOrphanedBefore(ctx context.Context, ref operator.Ref) error {
	if r.Pipeline.Before == nil || r.Pipeline.Observing() {
		return nil
	}
	strays := r.orphanedBefore(ref)
	if len(strays) == 0 || !r.Cache.Watches(ref.Namespace) {
		return nil
	}
	// The upstream may exist: without the labels that the config selects by, or newer than the watch shows.
	up, err := r.ReadUpstream(ctx, ref)
	if err != nil && !errors.Is(err, apply.ErrGone) {
		return err
	}
	for _, live := range strays {
		if err == nil && marks.Marked(live, up.GetUID()) || r.isAwaited(live) {
			continue
		}
		acting, leave, ok := r.enterShardOf(ctx, marks.UIDOf(r.Pipeline.Settings, ref, live))
		if !ok {
			continue
		}
		err := r.releaseOneOrphanedBefore(acting, live)
		if leave(); err != nil {
			return err
		}
	}
	return nil
}

// isAwaited reports whether an upstream that is being deleted waits for a deletion.before object, according to its status. Someone may have
// put the name of another one on the object.
func (r *Reconciler) isAwaited(live *drift.Live) bool {
	return slices.ContainsFunc(r.Cache.Deleting(), func(ref operator.Ref) bool {
		up, err := r.Cache.Upstream(ref)
		if err != nil || up == nil {
			return err != nil // not known
		}
		recorded := r.Pipeline.RecordedBefore(up)
		return recorded != nil && recorded.UID == live.UID && !decide.BeforePassed(r.Pipeline.Settings, recorded)
	})
}

// gatherEarlierBefore gathers what is known about an unfinished object of an earlier deletion.before; there is no Record if it is done by
// now. No watch shows when it changes.
func (r *reconciliation) gatherEarlierBefore(ctx context.Context) (f operator.BeforeFacts, err error) {
	if !r.Memory.Before.Edit().IsUpstreamRead { // another process may have recorded more than the cache shows
		if err := r.readUpstream(ctx); err != nil {
			return f, err
		}
	}
	r.unwatched = true
	if f.Record = decide.UnfinishedBefore(r.Pipeline.Settings, r.Upstream); f.Record == nil {
		return f, nil
	}
	_, obj, err := r.ReadForgotten(ctx, f.Record)
	if c := apply.Classify(err); err != nil && c.Reason == apply.ReasonForbidden { // the rights may have gone with the key in the config
		f.Unread = c.Message
		return f, nil
	}
	if obj == nil {
		return f, err
	}
	f.Live, err = r.Pipeline.EarlierBeforeLive(obj)
	if err == nil && f.Record.UID == "" && !marks.MadeForDeletion(f.Live, r.Upstream.GetUID()) {
		f.Live = nil
	}
	return f, err
}

// releaseEarlierBefore releases the object of an earlier deletion.before: the config changed in the middle of the deletion.
func (r *reconciliation) releaseEarlierBefore(ctx context.Context) error {
	recorded := decide.EarlierBefore(r.Pipeline.Settings, r.Upstream)
	if recorded == nil || recorded.UID == "" {
		return nil
	}
	t, obj, err := r.ReadForgotten(ctx, recorded)
	if obj == nil {
		return err
	}
	obj, err = r.API.RemoveFinalizer(ctx, t, obj, r.Pipeline.Config.Conventions.Finalizers()...)
	switch {
	case errors.Is(err, apply.ErrGone):
		return nil
	case err != nil:
		return err
	case obj.GetDeletionTimestamp() != nil, len(obj.GetOwnerReferences()) > 0, r.NamesOther(ctx, obj):
		return nil
	}
	_, err = act.Delete(ctx, r.API, t, recorded.UID, metav1.DeletionPropagation(r.Pipeline.Config.Deletion.Propagation))
	return err
}

func (r *Reconciler) releaseOneOrphanedBefore(ctx context.Context, live *drift.Live) error {
	at := operator.Ref{Namespace: live.Namespace, Name: live.Name}
	r.Log.Info("releasing the deletion.before object: its upstream is gone", "object", beforeTarget(r.Pipeline, at).String())
	resp, err := r.removeOurFinalizer(ctx, live)
	if err != nil || resp == nil || resp.GetDeletionTimestamp() != nil || len(live.Owners) > 0 {
		return err // the garbage collector deletes what has an owner reference
	}
	_, err = act.Delete(ctx, r.Client, beforeTarget(r.Pipeline, at), live.UID, metav1.DeletionPropagation(r.Pipeline.Config.Deletion.Propagation))
	return err
}
