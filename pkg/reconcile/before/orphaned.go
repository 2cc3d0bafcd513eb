package before

import (
	"context"
	"errors"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
)

// Orphans are the deletion.before objects of an operator whose upstream is gone.
type Orphans struct {
	Pipeline *compile.Pipeline
	Cache    observe.Cache
	Client   *apply.Client
	Log      logr.Logger
	// ReadUpstream reads an upstream. It returns apply.ErrGone if there is none.
	ReadUpstream func(ctx context.Context, ref operator.Ref) (*unstructured.Unstructured, error)
	// EnterShard returns a context for writes for an upstream; ok is false if another process acts for it.
	EnterShard func(ctx context.Context, upstream types.UID) (acting context.Context, leave func(), ok bool)
}

// find returns the deletion.before objects with our finalizer whose upstream is gone, or was replaced by a later one
// of that name.
func (o *Orphans) find(ref operator.Ref) []*drift.Live {
	var found []*drift.Live
	standing := o.Cache.UpstreamUID(ref)
	for _, live := range o.Cache.BeforeObjectsOf(ref.Name) {
		if marks.HasOurFinalizer(o.Pipeline.Settings, live) &&
			slices.Contains(marks.UpstreamsOf(o.Pipeline.Settings, live), ref) &&
			(standing == "" || !marks.Marked(live, standing)) {
			found = append(found, live)
		}
	}
	return found
}

// Release releases the deletion.before objects whose upstream is gone, as after someone removed its finalizer by
// force: nobody waits for them any more, and our finalizer would keep them forever.
func (o *Orphans) Release(ctx context.Context, ref operator.Ref) error {
	if o.Pipeline.Before == nil || o.Pipeline.Observing() {
		return nil
	}
	strays := o.find(ref)
	if len(strays) == 0 || !o.Cache.Watches(ref.Namespace) {
		return nil
	}
	// The upstream may exist: without the labels that the config selects by, or newer than the watch shows.
	up, err := o.ReadUpstream(ctx, ref)
	if err != nil && !errors.Is(err, apply.ErrGone) {
		return err
	}
	for _, live := range strays {
		if err == nil && marks.Marked(live, up.GetUID()) || o.isAwaited(live) {
			continue
		}
		acting, leave, ok := o.EnterShard(ctx, marks.UIDOf(o.Pipeline.Settings, ref, live))
		if !ok {
			continue
		}
		err := o.release(acting, live)
		if leave(); err != nil {
			return err
		}
	}
	return nil
}

// isAwaited reports whether an upstream that is being deleted waits for a deletion.before object, according to its
// status. Someone may have put the name of another one on the object.
func (o *Orphans) isAwaited(live *drift.Live) bool {
	return slices.ContainsFunc(o.Cache.Deleting(), func(ref operator.Ref) bool {
		up, err := o.Cache.Upstream(ref)
		if err != nil || up == nil {
			return err != nil // not known
		}
		recorded := o.Pipeline.RecordedBefore(up)
		return recorded != nil && recorded.UID == live.UID && !decide.BeforePassed(o.Pipeline.Settings, recorded)
	})
}

func (o *Orphans) release(ctx context.Context, live *drift.Live) error {
	at := operator.Ref{Namespace: live.Namespace, Name: live.Name}
	o.Log.Info("releasing the deletion.before object: its upstream is gone", "object", Target(o.Pipeline, at).String())
	resp, err := RemoveFinalizer(ctx, o.Client, o.Pipeline, live)
	if err != nil || resp == nil || resp.GetDeletionTimestamp() != nil || len(live.Owners) > 0 {
		return err // the garbage collector deletes what has an owner reference
	}
	_, err = act.Delete(ctx, o.Client, Target(o.Pipeline, at), live.UID,
		metav1.DeletionPropagation(o.Pipeline.Config.Deletion.Propagation))
	return err
}
