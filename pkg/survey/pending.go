package survey

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// pendingRefs is the queue of a survey: it takes what the watches would have an operator look at.
type pendingRefs struct {
	// more has an element while there is something to take.
	more chan struct{}

	mu   sync.Mutex
	refs map[pipeline.Ref]bool // true: not taken yet
}

func newPendingRefs() *pendingRefs {
	return &pendingRefs{more: make(chan struct{}, 1), refs: map[pipeline.Ref]bool{}}
}

// Join implements informers.Queue: nothing is counted here.
func (h *pendingRefs) Join([]pipeline.Ref) {}

// Add implements informers.Queue: whatever the priority and the time.
func (h *pendingRefs) Add(_ int, _ time.Duration, refs ...pipeline.Ref) {
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

// all lists everything that was ever heard of, and takes it.
func (h *pendingRefs) all() []pipeline.Ref {
	return h.list(func(bool) bool { return true })
}

// take lists what is new since the last time.
func (h *pendingRefs) take() []pipeline.Ref {
	return h.list(func(news bool) bool { return news })
}

func (h *pendingRefs) list(wanted func(news bool) bool) []pipeline.Ref {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.more:
	default:
	}
	list := make([]pipeline.Ref, 0, len(h.refs))
	for ref, news := range h.refs {
		if wanted(news) {
			list = append(list, ref)
			h.refs[ref] = false
		}
	}
	slices.SortFunc(list, func(a, b pipeline.Ref) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}
