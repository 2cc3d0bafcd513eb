package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

// withdrawStatus removes what the previous field manager has in the upstream's status, after ours was written: otherwise its
// conditions would stay forever. With mode Observe the previous manager may still be at work, and its status stays.
func (r *reconciliation) withdrawStatus(ctx context.Context, t apply.Target, written *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	previous := marks.PreviousManager(r.Pipeline.Settings)
	if previous == "" || r.Pipeline.Observing() {
		return written, nil
	}
	out, err := r.API.WithdrawStatus(ctx, t, written, r.Pipeline.Upstream.HasStatus, previous)
	r.Memory.Steps.IsWithdrawn = err == nil
	return out, err
}

// previousInStatus reports whether the watch has shown that the previous field manager applied to the status and this was not
// withdrawn yet: ours has not written the status, or a process died before it withdrew the previous one.
func (r *reconciliation) previousInStatus() bool {
	previous := marks.PreviousManager(r.Pipeline.Settings)
	return previous != "" && r.Cache.HasApplied(r.Ref, previous) && !r.Memory.Steps.IsWithdrawn && !r.Pipeline.Observing() &&
		r.Pipeline.Storable.Conditions == status.ConditionsKeyed
}

// swapFinalizer replaces the previous finalizer by the current one.
func (r *reconciliation) swapFinalizer(ctx context.Context) bool {
	up, err := r.API.SwapFinalizer(ctx, r.UpstreamTarget(r.Ref), r.Upstream, marks.PreviousFinalizer(r.Pipeline.Settings), r.Pipeline.Config.Conventions.Finalizer)
	if err != nil {
		r.failUpstream("renaming the finalizer", err)
		return false
	}
	r.wroteFinalizer(up)
	return true
}
