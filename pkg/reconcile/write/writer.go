package write

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/read"
)

// Writer writes the status and the finalizer of one upstream.
type Writer struct {
	*read.Reader
	Session
	// EnsureLatest is called before the first write for an upstream that may be stale, which must wait for what it
	// returns.
	EnsureLatest func(ctx context.Context) (time.Duration, error)
	// OnReport is called with the report that the status is to contain, and BeforeFinalizer before the finalizer is added.
	OnReport        func(report.Report)
	BeforeFinalizer func()
	// IsGone is true for an upstream that does not exist any more.
	IsGone bool
	// HasFailed is true if a request for the upstream itself failed.
	HasFailed bool
	// MinRetry is the longest Retry-After of the API server.
	MinRetry time.Duration
	// StatusDelay is how long the status waits because our writes to it do not last; ContestedBy says why.
	StatusDelay time.Duration
	ContestedBy string
}

// Session is what the upstreams of an operator have in common.
type Session struct {
	events.Operator
	Host       Host
	Unstorable *Unstorable
}

// Host is what a Writer needs from its caller.
type Host interface {
	// Enqueue has an upstream reconciled again.
	Enqueue(ref operator.Ref)
	// RecheckKinds says that a kind may have changed or gone.
	RecheckKinds()
}

func (w *Writer) target() apply.Target { return read.UpstreamTarget(w.Pipeline.Settings, w.Ref) }

func (w *Writer) spacing() memory.Spacing { return memory.SpacingOf(w.Pipeline.Config.Retry) }

// WithoutManagedFields removes what is only needed once.
func WithoutManagedFields(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetManagedFields(nil)
	return u
}
