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
	"github.com/corollary-dev/corollary/pkg/reconcile/before"
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

func (r *Reconciler) releaseOneOrphanedBefore(ctx context.Context, live *drift.Live) error {
	at := operator.Ref{Namespace: live.Namespace, Name: live.Name}
	r.Log.Info("releasing the deletion.before object: its upstream is gone", "object", before.Target(r.Pipeline, at).String())
	resp, err := before.RemoveFinalizer(ctx, r.Client, r.Pipeline, live)
	if err != nil || resp == nil || resp.GetDeletionTimestamp() != nil || len(live.Owners) > 0 {
		return err // the garbage collector deletes what has an owner reference
	}
	_, err = act.Delete(ctx, r.Client, before.Target(r.Pipeline, at), live.UID, metav1.DeletionPropagation(r.Pipeline.Config.Deletion.Propagation))
	return err
}
