package reconcile

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// orphanedBefore finds the objects of deletion.before that bear our finalizer and whose upstream, of that name, is not the one that
// is watched: there is none, or one that was made later.
func (s *Reconciler) orphanedBefore(ref pipeline.Ref) []*drift.Live {
	var found []*drift.Live
	standing := s.Cache.UpstreamUID(ref)
	for _, live := range s.Cache.BeforeObjectsOf(ref.Name) {
		if s.Pipeline.HasOurFinalizer(live) && s.owns(ref, live) && (standing == "" || !pipeline.Marked(live, standing)) {
			found = append(found, live)
		}
	}
	return found
}

func (s *Reconciler) owns(ref pipeline.Ref, live *drift.Live) bool {
	for _, owner := range s.OwnersOf(live) {
		if owner == ref {
			return true
		}
	}
	return false
}

// releaseOrphanedBefore lets go of the objects of deletion.before whose upstream is gone, as where somebody took the finalizer off it
// by force: nothing is left to wait for them, and our finalizer on them would keep them for ever.
func (s *Reconciler) releaseOrphanedBefore(ctx context.Context, ref pipeline.Ref) error {
	if s.Pipeline.Before == nil || s.Pipeline.Observing() {
		return nil
	}
	strays := s.orphanedBefore(ref)
	if len(strays) == 0 || !s.Cache.Watches(ref.Namespace) {
		return nil
	}
	// It may stand all the same: without the labels that the config selects by, or ahead of the watch.
	up, err := s.Client.Get(ctx, s.UpstreamTarget(ref))
	if err != nil && !errors.Is(err, apply.ErrGone) {
		return err
	}
	for _, live := range strays {
		if err == nil && pipeline.Marked(live, up.GetUID()) {
			continue
		}
		if err := s.releaseOneOrphanedBefore(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

// releaseBeforeOfOtherKind lets go of the object that the status records and the config no longer knows the kind of: the config was
// changed in the middle of the deletion. What never bore a mark of this operator was not made by it, whatever is recorded.
func (l *reconciliation) releaseBeforeOfOtherKind(ctx context.Context) error {
	r := l.Pipeline.RecordedOfOtherKind(l.upstream)
	if r == nil {
		return nil
	}
	kind, err := l.Host.Served(ctx, schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
	if kinds.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	t := apply.Target{GVR: kind.GVR, Namespace: r.Namespace, Name: r.ObjectName}
	obj, err := l.client.Get(ctx, t)
	switch {
	case errors.Is(err, apply.ErrGone):
		return nil
	case err != nil:
		return err
	case obj.GetUID() != r.UID, !l.hasOurMarks(obj):
		return nil
	}
	obj, err = l.client.RemoveFinalizer(ctx, t, obj, l.Pipeline.Config.Conventions.Finalizers()...)
	switch {
	case errors.Is(err, apply.ErrGone):
		return nil
	case err != nil:
		return err
	case obj.GetDeletionTimestamp() != nil, len(obj.GetOwnerReferences()) > 0:
		return nil
	}
	if err := l.client.Delete(ctx, t, r.UID, metav1.DeletionPropagation(l.Pipeline.Config.Deletion.Propagation)); err != nil && !errors.Is(err, apply.ErrReplaced) {
		return err
	}
	return nil
}

// hasOurMarks tells whether an object bears the hash or the finalizer of this operator, which whatever it makes before a deletion
// has from the beginning.
func (s *Reconciler) hasOurMarks(obj *unstructured.Unstructured) bool {
	held := func(name string) bool { return slices.Contains(s.Pipeline.Config.Conventions.Finalizers(), name) }
	return s.Pipeline.HasHash(obj) || slices.ContainsFunc(obj.GetFinalizers(), held)
}

func (s *Reconciler) releaseOneOrphanedBefore(ctx context.Context, live *drift.Live) error {
	at := pipeline.Ref{Namespace: live.Namespace, Name: live.Name}
	s.Log.Info("letting go of what was made before a deletion: its upstream is gone", "object", s.beforeTarget(at).String())
	resp, err := s.removeOurFinalizer(ctx, live)
	if err != nil || resp == nil || resp.GetDeletionTimestamp() != nil || len(live.Owners) > 0 {
		return err // what has an owner reference is the garbage collector's
	}
	propagation := metav1.DeletionPropagation(s.Pipeline.Config.Deletion.Propagation)
	if err := s.Client.Delete(ctx, s.beforeTarget(at), live.UID, propagation); err != nil && !errors.Is(err, apply.ErrReplaced) {
		return err
	}
	return nil
}
