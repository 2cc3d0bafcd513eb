package reconcile

import (
	"context"
	"fmt"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
)

// releaseHolders takes our marks off forgotten objects that are kept because of what they contain, before that loses its own.
func releaseHolders(ctx context.Context, r *reconciliation, kept []operator.ForgottenObject) error {
	for _, f := range kept {
		t, obj, err := r.ReadForgotten(ctx, &f.Recorded)
		if err == nil && obj != nil {
			_, err = r.API.Release(ctx, t, obj, apply.Marks(marks.Of(r.Pipeline.Settings, r.Upstream.GetUID(), 0)))
		}
		if err != nil {
			return fmt.Errorf("%w; %s of downstream %s, which the config no longer has, cannot be released (%s): allow get and patch on %s",
				err, f.Kind, f.Name, f.Kept, f.Resource)
		}
		if obj == nil {
			continue
		}
		r.Log.Info("released", "upstream", r.Ref.String(), "downstream", f.Name, "kind", f.Kind, "target", f.ObjectName, "why", f.Kept)
		r.Reporter().Event(false, events.EventReleased, "Release", "%s %s released: %s", f.Kind, f.ObjectName, f.Kept)
	}
	return nil
}
