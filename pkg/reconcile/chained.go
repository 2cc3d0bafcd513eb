package reconcile

import (
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
)

// LostByDocument counts the objects of an upstream that go because the operator does not select it any more, once a
// document is applied to it. What the document does not have any more, its labels included, is not known.
func LostByDocument(r *Reconciler, kind schema.GroupKind, at operator.Ref, document map[string]any) int {
	p := r.Pipeline
	if p.Upstream.GVK.GroupKind() != kind || p.Config.Watch.LabelSelector == nil && !p.HasMatchConditions() {
		return 0
	}
	now, err := r.Cache.Upstream(at)
	if err != nil || now == nil || now.GetDeletionTimestamp() != nil {
		return 0
	}
	after := &unstructured.Unstructured{Object: act.Merged(now.Object, document).(map[string]any)}
	selected := r.Selector == nil || r.Selector.Matches(labels.Set(after.GetLabels()))
	if selected && p.Match(after).IsMet() {
		return 0
	}
	if recorded := p.Recorded(now); len(recorded) > 0 {
		return len(recorded)
	}
	return len(p.Downstreams) // its status does not say
}

// countChained counts what other operators of this process delete because of what this one applies to their upstreams.
// What its author has changed since its status was written is intended.
func (r *reconciliation) countChained(d operator.Decision, c *guard.Counted) {
	if r.Pipeline.EditedSince(r.Upstream) {
		return
	}
	for _, o := range d.Outcomes {
		if o.State != operator.StateUpdate || o.Live == nil {
			continue
		}
		document, err := r.DocumentOf(r.Memory.Desired(), o.Object, o.Live)
		if err != nil {
			continue // its state says so
		}
		kind := r.Pipeline.Downstreams[o.Downstream].GVK().GroupKind()
		if lost := r.Host.Deselects(kind, o.Target, document); lost > 0 {
			c.Add(guard.Count{Existing: lost, Changed: lost, Deleted: lost})
			c.First = fmt.Sprintf("%s: %s %s is not selected any more by the operator that makes %d objects for it",
				r.Pipeline.Downstreams[o.Downstream].Name, kind.Kind, o.Target, lost)
			c.Digest = canonical.Digest([]any{hex.EncodeToString(c.Digest[:]), "deselected", o.Target.String(), int64(lost)})
		}
	}
}
