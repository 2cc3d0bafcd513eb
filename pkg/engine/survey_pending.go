package engine

import (
	"cmp"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// pendingRefs is the queue of a survey: it takes what the watches would have an operator look at.
type pendingRefs struct {
	// nil: nobody works on this queue, it is only added to.
	priorityqueue.PriorityQueue[pipeline.Ref]
	// more has an element while there is something to take.
	more chan struct{}

	mu   sync.Mutex
	refs map[pipeline.Ref]bool // true: not taken yet
}

func newPendingRefs() *pendingRefs {
	return &pendingRefs{more: make(chan struct{}, 1), refs: map[pipeline.Ref]bool{}}
}

// AddWithOpts takes refs in, whatever their priority.
func (h *pendingRefs) AddWithOpts(_ priorityqueue.AddOpts, refs ...pipeline.Ref) {
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
