package survey

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/rollout"
	"github.com/corollary-dev/corollary/pkg/source"
)

// pendingRefs is the queue of a survey: upstreams with events.
type pendingRefs struct {
	// more has an element while an upstream is pending.
	more chan struct{}

	mu   sync.Mutex
	refs map[operator.Ref]bool // true: not taken yet
}

func newPendingRefs() *pendingRefs {
	return &pendingRefs{more: make(chan struct{}, 1), refs: map[operator.Ref]bool{}}
}

// Join implements informers.Queue: it does nothing.
func (h *pendingRefs) Join([]operator.Ref) {}

// JoinRows implements informers.Queue: nothing is counted.
func (h *pendingRefs) JoinRows(int, []operator.Ref, source.Doubt) {}

// NoteInputRows implements informers.Queue: nothing is counted.
func (h *pendingRefs) NoteInputRows(string, int) {}

// Add implements informers.Queue: priority and time are ignored.
func (h *pendingRefs) Add(_ int, _ time.Duration, refs ...operator.Ref) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ref := range refs {
		h.refs[ref] = true
	}
	select {
	case h.more <- struct{}{}:
	default:
	}
}

// all returns every upstream that was ever added, and marks them as taken.
func (h *pendingRefs) all() []operator.Ref {
	return h.list(func(bool) bool { return true })
}

// take returns the upstreams that were added since the last call.
func (h *pendingRefs) take() []operator.Ref {
	return h.list(func(isPending bool) bool { return isPending })
}

func (h *pendingRefs) list(include func(isPending bool) bool) []operator.Ref {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.more:
	default:
	}
	list := make([]operator.Ref, 0, len(h.refs))
	for ref, isPending := range h.refs {
		if include(isPending) {
			list = append(list, ref)
			h.refs[ref] = false
		}
	}
	slices.SortFunc(list, operator.Ref.Compare)
	return list
}

// Enqueue implements reconcile.Host.
func (v *Survey) Enqueue(ref operator.Ref) { v.pending.Add(informers.PriorityNow, 0, ref) }

// RecheckKinds implements reconcile.Host: a survey keeps the kinds that it began with.
func (v *Survey) RecheckKinds() {}

// Rollout implements reconcile.Host: a survey moves nothing.
func (v *Survey) Rollout() *rollout.Rollout { return nil }

// Trails implements reconcile.Host.
func (v *Survey) Trails() (trails, keeps bool) { return false, false }

// CountedByGuard implements reconcile.Host: a survey holds nothing.
func (v *Survey) CountedByGuard(operator.Ref) bool { return false }

// MayProceed implements reconcile.Host.
func (v *Survey) MayProceed(operator.Ref, guard.Counted, bool) bool { return true }

// GuardWaits implements reconcile.Host.
func (v *Survey) GuardWaits() bool { return false }

// Deselects implements reconcile.Host.
func (v *Survey) Deselects(schema.GroupKind, operator.Ref, map[string]any) int { return 0 }

// DeletesLater implements reconcile.Host.
func (v *Survey) DeletesLater(operator.Ref, bool) time.Duration { return 0 }

// ReportShared implements reconcile.Host.
func (v *Survey) ReportShared(string, string) {}
