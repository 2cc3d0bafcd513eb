package departures

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
)

// Shared are the upstreams of another process with the same field manager and labels, as far as its objects show in the
// watches.
type Shared struct {
	mu sync.Mutex
	// upstreams has the upstream of each such object, by the object's uid; objects the number of objects of each.
	upstreams map[types.UID]string
	objects   map[string]int
	reported  bool
	// shown is set once the metric shows this session's values.
	shown bool
}

// Note records an object of such an upstream. It returns true for the first one ever.
func (h *Shared) Note(operator string, object types.UID, upstream string) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.upstreams == nil {
		h.upstreams, h.objects = map[types.UID]string{}, map[string]int{}
	}
	h.remove(object)
	h.upstreams[object] = upstream
	h.objects[upstream]++
	h.show(operator)
	first, h.reported = !h.reported, true
	return first
}

// Drop is for an object that is gone, or belongs to an upstream of ours.
func (h *Shared) Drop(operator string, object types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(object)
	h.show(operator)
}

// Forget is for an upstream of this operator.
func (h *Shared) Forget(operator, upstream string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.objects[upstream] == 0 {
		return
	}
	for object, owner := range h.upstreams {
		if owner == upstream {
			h.remove(object)
		}
	}
	h.show(operator)
}

// Begin makes the metric show this session's values.
func (h *Shared) Begin(operator string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown = true
	h.show(operator)
}

func (h *Shared) remove(object types.UID) {
	upstream, ok := h.upstreams[object]
	if !ok {
		return
	}
	delete(h.upstreams, object)
	if h.objects[upstream]--; h.objects[upstream] == 0 {
		delete(h.objects, upstream)
	}
}

func (h *Shared) show(operator string) {
	if h.shown {
		counters.SetShared(operator, len(h.objects))
	}
}
