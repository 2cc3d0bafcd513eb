package reconcile

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
)

// shared are the upstreams of another process with the same field manager and labels, as far as its objects show in the
// watches.
type shared struct {
	mu sync.Mutex
	// upstreams has the upstream of each such object, by the object's uid; objects the number of objects of each.
	upstreams map[types.UID]string
	objects   map[string]int
	reported  bool
	// shown is set once the metric shows this session's values.
	shown bool
}

// note records an object of such an upstream. It returns true for the first one ever.
func (h *shared) note(operator string, object types.UID, upstream string) (first bool) {
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

// drop is for an object that is gone, or belongs to an upstream of ours.
func (h *shared) drop(operator string, object types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(object)
	h.show(operator)
}

// forget is for an upstream of this operator.
func (h *shared) forget(operator, upstream string) {
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

// begin makes the metric show this session's values.
func (h *shared) begin(operator string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown = true
	h.show(operator)
}

func (h *shared) remove(object types.UID) {
	upstream, ok := h.upstreams[object]
	if !ok {
		return
	}
	delete(h.upstreams, object)
	if h.objects[upstream]--; h.objects[upstream] == 0 {
		delete(h.objects, upstream)
	}
}

func (h *shared) show(operator string) {
	if h.shown {
		counters.SetShared(operator, len(h.objects))
	}
}

// reportShared reports an object of such an upstream: the first in the log and by an event of the operator, and each upstream
// in the metric.
func (r *Reconciler) reportShared(object types.UID, upstream string) {
	if !r.shared.note(r.Name, object, upstream) {
		return
	}
	note := "objects with this operator's field manager and labels belong to upstreams that it does not watch; they are left alone: " + whyShared +
		"; give each process its own conventions"
	logging.Warn(r.Log, note, "upstream", upstream, "fieldManager", r.Pipeline.Config.Conventions.FieldManager)
	r.Host.ReportShared(note, upstream)
}

const whyShared = "another process uses the same conventions, or an earlier config selected or watched more"

// otherOwner returns the upstream of an object that our field manager has applied, if this operator does not watch that
// upstream: it is another process's, or left over from a config that watched more. It is empty for any other object.
func (r *Reconciler) otherOwner(live *drift.Live) string {
	if !live.Managed {
		return ""
	}
	for _, owner := range live.Owners {
		if owner.Controller && owner.Kind != r.Pipeline.Upstream.GVK.Kind {
			return owner.Kind + " " + owner.Name
		}
	}
	if ref, _, ok := marks.ParseOwnerMark(live.OwnerMark); ok && !r.Cache.Watches(ref.Namespace) {
		return ref.String()
	}
	return ""
}

// NoteOwner records whose an object is after a change; before is nil for one that the watch shows for the first time.
func (r *Reconciler) NoteOwner(before, after *drift.Live) {
	was, is := "", r.otherOwner(after)
	if before != nil {
		was = r.otherOwner(before)
	}
	switch {
	case was == is:
	case is == "":
		r.shared.drop(r.Name, after.UID)
	default:
		r.reportShared(after.UID, is)
	}
}

// NoteObjectGone records that an object is gone.
func (r *Reconciler) NoteObjectGone(uid types.UID) { r.shared.drop(r.Name, uid) }

// ShowShared makes the metric show what this reconciler knows.
func (r *Reconciler) ShowShared() { r.shared.begin(r.Name) }

// noteShared is for an upstream that is not selected and keeps its downstreams: see isLeftOver.
func (r *reconciliation) noteShared() {
	if r.deselected.Has(r.Ref, r.Upstream.GetUID()) {
		return
	}
	owned := r.Owned()
	if len(owned) == 0 {
		r.shared.forget(r.Name, r.Ref.String())
	}
	for _, live := range owned {
		r.reportShared(live.UID, r.Ref.String())
	}
}
