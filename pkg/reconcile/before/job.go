package before

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

// Job makes the deletion.before object of one upstream, follows it and cleans up after it.
type Job struct {
	*write.Writer
	// Report writes the status of the upstream, and Tell reports the progress.
	Report func(ctx context.Context, d operator.Decision)
	Tell   func(d operator.Decision)
	// Document completes the document to send.
	Document func(document map[string]any) map[string]any
	// Shard is the shard of an upstream; nil if there are no shards.
	Shard func(upstream types.UID) int
	// OnCreated is called once the object is created, and OnFailed for a failed request for it.
	OnCreated func(o operator.Outcome)
	OnFailed  func(o operator.Outcome, f apply.Failure)
	// IsUnwatched is true if the watch does not show the object.
	IsUnwatched bool
	// ReportedState is the state in the status when this reconciliation began.
	ReportedState string
}
