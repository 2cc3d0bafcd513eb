package reconcile

import (
	"slices"
	"time"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// nextForUnseen is when objects are looked for again that the cache does not show: no event reports their end.
func (r *reconciliation) nextForUnseen() time.Duration {
	exists := func(own operator.Owned) bool { return !r.Memory.IsNotOurs(own.Live.UID, r.Began) }
	if len(r.Unread) == 0 && !slices.ContainsFunc(r.Unseen, exists) {
		r.Memory.Notes.Set(false, func(n *memory.Notes) { n.Waiting = memory.Retry{} })
		return 0
	}
	waiting := &r.Memory.Notes.Edit().Waiting
	if wait := waiting.Wait(r.Memory.Cause(), r.Began); wait > 0 {
		return wait
	}
	return r.delay(waiting)
}

// leftToReport are the objects at no target that the status records: those of the decision, and those that could not be read.
func (r *reconciliation) leftToReport(d operator.Decision) []operator.Outcome {
	left := slices.Clone(d.Leftovers)
	for _, own := range r.Unread {
		if own.Live.UID != "" {
			o := r.OutcomeOf(own.Downstream, operator.Ref{Namespace: own.Live.Namespace, Name: own.Live.Name})
			o.State, o.UID, o.Live = operator.StateWaiting, own.Live.UID, own.Live
			left = append(left, o)
		}
	}
	return left
}
