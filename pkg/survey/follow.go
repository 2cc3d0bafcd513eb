package survey

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// FollowAll follows several surveys until ctx is done, or one of them fails, which ends the others and the context of
// visit.
func FollowAll(
	ctx context.Context, list []*Survey, visit func(context.Context, *Survey, *preview.Finding) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, v := range list {
		wg.Go(func() {
			if err := v.Follow(ctx, func(f *preview.Finding) error { return visit(ctx, v, f) }); err != nil {
				cancel(fmt.Errorf("operator %s: %w", v.Pipeline().Name, err))
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}
