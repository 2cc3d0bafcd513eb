package act

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
)

// remove deletes an object of ours. A dry run shows what follows from it, once it is gone.
func (x *action) remove(ctx context.Context) error {
	if x.State == operator.StateRecreate {
		if immutable, err := x.confirmImmutable(ctx); !immutable {
			return err
		}
		if x.d.HasGenerated() {
			if ok, err := x.keepGenerated(ctx); !ok {
				return err
			}
		}
	}
	answer, err := Delete(ctx, x.Client, x.target, x.UID, x.Propagation)
	if err != nil {
		return err
	}
	x.Did, x.ValuesLost = events.EventDeleted, true
	if answer.Gone || x.Live == nil || x.Client.Dry() {
		return x.unlessGone(apply.ErrGone)
	}
	live := *x.Live
	if answer.Terminating != nil {
		live = *x.d.View.Live(answer.Terminating)
	}
	live.Deleting = true
	x.Answer = &live
	return nil
}

// Delete deletes an object by its uid. If another one has its name, it is gone.
func Delete(
	ctx context.Context, client *apply.Client, t apply.Target, uid types.UID, propagation metav1.DeletionPropagation,
) (apply.Deletion, error) {
	answer, err := client.Delete(ctx, t, uid, propagation)
	if errors.Is(err, apply.ErrReplaced) {
		return apply.Deletion{Gone: true}, nil
	}
	return answer, err
}

// release removes our marks from an object that is kept, and our fields from one of others, unless it is deleted with
// --cascade=orphan.
func (x *action) release(ctx context.Context) error {
	if x.d.OwnsFields() && x.Cascade != operator.CascadeOrphan {
		if err := x.takePreviousFields(ctx); err != nil {
			return x.unlessGone(err)
		}
		left, err := x.Client.Withdraw(ctx, x.target, x.d.GVK(), x.UID)
		if err != nil {
			return x.notWithdrawn(err)
		}
		return x.released(left)
	}
	live, err := x.read(ctx, x.target, x.UID)
	if err != nil {
		return x.unlessGone(err)
	}
	live, err = x.Client.Release(ctx, x.target, live, apply.Marks(marks.Of(x.Settings, x.Upstream.GetUID(),
		x.Downstream)))
	if err != nil {
		return err
	}
	return x.released(live)
}

// takePreviousFields makes the fields of the previous managers ours, which an empty apply then removes.
func (x *action) takePreviousFields(ctx context.Context) error {
	previous := marks.PreviousMarks(x.Settings, x.Downstream).Managers
	if x.Live == nil || !x.Live.NeedsTakeover || len(previous) == 0 {
		return nil
	}
	obj, err := x.read(ctx, x.target, x.UID)
	if err != nil {
		return err
	}
	_, err = x.Client.TakeOver(ctx, x.target, obj, previous)
	return err
}

// released is about an object that was released, as the API server returned it; nil: it is gone.
func (x *action) released(obj *unstructured.Unstructured) error {
	x.Did, x.Stored = events.EventReleased, obj
	if obj == nil || x.Client.Dry() {
		return x.unlessGone(apply.ErrGone)
	}
	x.Answer = x.d.View.Live(obj)
	return nil
}

// notWithdrawn adds to a refusal to remove our fields, as from an object that is immutable by now, what a person can do
// about it.
func (x *action) notWithdrawn(err error) error {
	switch apply.Classify(err).Reason {
	case apply.ReasonRejected, apply.ReasonDenied:
		return fmt.Errorf("%w; our fields of %s cannot be removed: have the change allowed, delete the object, or let the "+
			"fields stay: "+
			"kubectl delete --cascade=orphan, also if the upstream is being deleted already", err, x.Target)
	}
	return err
}
