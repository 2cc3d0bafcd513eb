package reconcile

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// Reconciler brings what follows from the upstreams of one operator to what its config says, one upstream at a time: from
// what a Cache shows, by the requests of a client. It remembers what saves requests, and nothing that it needs to be right.
type Reconciler struct {
	Name     string
	Pipeline *pipeline.Pipeline
	Client   *apply.Client
	Cache    Cache
	Host     Host
	Log      logr.Logger
	Recorder events.EventRecorder
	// Observer is told what a reconciliation comes to; nil: nobody is.
	Observer Observer
	// Now is the time that decisions, retries and transitions go by; nil: time.Now.
	Now func() time.Time
	// RenderSlots limit how many upstreams that need much time or memory are rendered at once; nil: no limit. SlotWait is how
	// long one waits for a slot.
	RenderSlots chan struct{}
	SlotWait    time.Duration
	// Selector selects upstreams, NamespaceSelector their namespaces; nil if the config has none.
	Selector          labels.Selector
	NamespaceSelector labels.Selector
	ReportsLeftovers  bool // it is a survey, which tells of what is left over too

	memory          memory
	readers         readers
	removals        removals
	unstorable      unstorable
	shared          shared
	cascades        cascades
	lost            lostWatches
	deselected      deselected
	handover        handover
	predecessor     predecessor // while it counts
	droppedReported sync.Once
	counted         atomic.Bool // metrics count its objects
	Counting        atomic.Bool // changes are counted in the place of acting
}

func (r *Reconciler) time() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// Cache is what watches show. What it returns must not be changed, and may be behind what the API server has.
type Cache interface {
	// Upstream is the upstream of that name, a copy; nil where there is none.
	Upstream(ref pipeline.Ref) (*unstructured.Unstructured, error)
	// UpstreamUID is its uid; empty where there is none.
	UpstreamUID(ref pipeline.Ref) types.UID
	// HasApplied tells whether a field manager has applied it, or its status.
	HasApplied(ref pipeline.Ref, manager string) bool
	// Watches tells whether upstreams of a namespace are shown; "" is for cluster-scoped ones.
	Watches(namespace string) bool
	// NamespaceLabels are a Namespace's labels; ok is false where there is none.
	NamespaceLabels(name string) (set labels.Set, ok bool)
	// Live is the object of downstream i, or of pipeline.BeforeIndex, at a place; nil where there is none.
	Live(i int, at pipeline.Ref) *drift.Live
	// OwnedBy lists those that bear the uid of an upstream in their marks.
	OwnedBy(i int, uid types.UID) []*drift.Live
	// BeforeObjectsOf lists the objects of deletion.before that bear the name of an upstream in their marks.
	BeforeObjectsOf(name string) []*drift.Live
	// Input is an object of input i; nil where there is none.
	Input(i int, at pipeline.Ref) Input
}

// Input is an input as a Cache keeps it: what is read of it alone.
type Input interface {
	GetUID() types.UID
	// Digest is over what is read.
	Digest() drift.Sum
	// Unpack returns it, as a copy of its own.
	Unpack() (map[string]any, error)
}

// Host is what a reconciler asks of whoever calls it.
type Host interface {
	// Enqueue has an upstream looked at once more.
	Enqueue(ref pipeline.Ref)
	// RecheckKinds says that a kind may have changed or gone.
	RecheckKinds()
	// Absent returns nil if no object of a kind that is not watched can exist.
	Absent(ctx context.Context, gvk schema.GroupVersionKind) error
	// Served is a kind as the API server serves it now, asked anew.
	Served(ctx context.Context, gvk schema.GroupVersionKind) (*kinds.Kind, error)
	// Kind is a kind as the API server serves it.
	Kind(gvk schema.GroupVersionKind) (*kinds.Kind, error)
	// Batched tells whether guard has an upstream counted before it is worked on, and the digest of it that was counted.
	Batched(ref pipeline.Ref) (own drift.Sum, ok bool)
	// CountBatched takes in what was counted of one; free: it is worked on now, whatever becomes of the others. It returns whether
	// the upstream goes on: it does, too, where that very change was confirmed.
	CountBatched(ref pipeline.Ref, c Counted, own drift.Sum, free bool) bool
	// ReportShared reports that another process uses the same conventions, with an upstream that it works for.
	ReportShared(note, upstream string)
}
