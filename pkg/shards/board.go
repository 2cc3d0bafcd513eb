package shards

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// Board is a Lease that nobody holds: in its annotations, the processes that share shards keep what they must agree on
// for an operator.
type Board struct {
	Client interface {
		Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
		Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error)
		Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error)
	}
	Name string
}

// boardTries is how often a board is read and written until no other process writes in between.
var boardTries = wait.Backoff{Steps: 20, Duration: 10 * time.Millisecond, Factor: 1.3, Jitter: 1}

// Update reads the annotations and writes what change makes of them, if it returns true. Where another process writes
// in between, it does so again. It returns the annotations as they are then.
func (b Board) Update(ctx context.Context, change func(annotations map[string]string) bool) (map[string]string, error) {
	var lease *coordinationv1.Lease
	err := retry.OnError(boardTries, func(err error) bool {
		return ctx.Err() == nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err))
	}, func() (err error) {
		lease, err = b.Client.Get(ctx, b.Name, metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		if absent {
			lease, err = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: b.Name}}, nil
		}
		if err != nil {
			return err
		}
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		switch changed := change(lease.Annotations); {
		case !changed:
		case absent:
			lease, err = b.Client.Create(ctx, lease, metav1.CreateOptions{})
		default: // with the resource version that was read
			lease, err = b.Client.Update(ctx, lease, metav1.UpdateOptions{})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return lease.Annotations, nil
}
