package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
)

// reportShared reports an object of such an upstream: the first in the log and by an event of the operator, and each
// upstream in the metric.
func (r *Reconciler) reportShared(object types.UID, upstream string) {
	if !r.shared.Note(r.Name, object, upstream) {
		return
	}
	note := "objects with this operator's field manager and labels belong to upstreams that it does not watch; they " +
		"are left alone: " + whyShared +
		"; give each process its own conventions"
	logging.Warn(r.Log, note, "upstream", upstream, "fieldManager", r.Pipeline.Config.Conventions.FieldManager)
	r.Host.ReportShared(note, upstream)
}

const whyShared = "another process uses the same conventions, or an earlier config selected or watched more"

// otherOwner returns the upstream of an object that our field manager has applied, if this operator does not watch that
// upstream: it is another process's, or left over from a config that watched more. It is empty for any other object.
func otherOwner(p *compile.Pipeline, cache observe.Cache, live *drift.Live) string {
	if !live.Managed {
		return ""
	}
	for _, owner := range live.Owners {
		if owner.Controller && owner.Kind != p.Upstream.GVK.Kind {
			return owner.Kind + " " + owner.Name
		}
	}
	if ref, _, ok := marks.ParseOwnerMark(live.OwnerMark); ok && !cache.Watches(ref.Namespace) {
		return ref.String()
	}
	return ""
}

// NoteOwner records whose an object is after a change; before is nil for one that the watch shows for the first time.
func (r *Reconciler) NoteOwner(before, after *drift.Live) {
	was, is := "", otherOwner(r.Pipeline, r.Cache, after)
	if before != nil {
		was = otherOwner(r.Pipeline, r.Cache, before)
	}
	switch {
	case was == is:
	case is == "":
		r.shared.Drop(r.Name, after.UID)
	default:
		r.reportShared(after.UID, is)
	}
}

// NoteObjectGone records that an object is gone.
func (r *Reconciler) NoteObjectGone(uid types.UID) { r.shared.Drop(r.Name, uid) }

// ShowShared makes the metric show what this reconciler knows.
func (r *Reconciler) ShowShared() { r.shared.Begin(r.Name) }

// noteShared is for an upstream that is not selected and keeps its downstreams: see isLeftOver.
func (r *reconciliation) noteShared() {
	if r.Deselected.Has(r.Ref, r.Upstream.GetUID()) {
		return
	}
	owned := r.Owned()
	if len(owned) == 0 {
		r.shared.Forget(r.Name, r.Ref.String())
	}
	for _, live := range owned {
		r.reportShared(live.UID, r.Ref.String())
	}
}
