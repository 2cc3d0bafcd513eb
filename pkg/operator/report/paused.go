package report

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// pause has the status of a paused upstream say so beside what else it says. It returns the conditions of one that was
// edited after its status was written: nobody acts on that generation, so they still speak of the one before, as
// summary then does. nil means that the conditions follow from the downstreams.
func pause(
	s *operator.Settings, summary *status.Summary, upstream *unstructured.Unstructured,
) (frozen []metav1.Condition) {
	if !s.Paused(upstream) {
		return nil
	}
	summary.Held = pauseText(s)
	if !s.EditedSince(upstream) {
		return nil
	}
	return freeze(s, summary, upstream)
}

func pauseText(s *operator.Settings) string {
	return "paused: annotation " + s.Config.Conventions.Pause.Annotation + " is true"
}

// What the message of Ready begins with while guard, or a rollout, holds what is done for the upstream.
const (
	HeldByGuard   = "held: guard waits for a confirmation, see the event GuardWaiting of the operator or corollary plan"
	HeldByRollout = "held: Rollout: the changed config has yet to reach it, see corollary rollout status"
)

// Held computes the status of an upstream for which nothing is done: as it was, and why it is held.
func Held(
	s *operator.Settings, upstream *unstructured.Unstructured, unrecorded []status.Recorded, why string, now metav1.Time,
) Report {
	summary := summary(s, upstream)
	summary.Held = why
	frozen := freeze(s, &summary, upstream)
	if frozen == nil {
		return Report{} // nothing was said of it yet
	}
	before := s.Recorded(upstream)
	report := Report{draft: &draft{summary: summary, before: before,
		recorded: keepForgotten(s, before, upstream, unrecorded, func(r status.Recorded) string { return r.State }),
		now:      now, frozen: frozen, fields: currentValues(s.StatusFields, upstream)}}
	fill(s, &report, upstream, RefusedFields{})
	return report
}

// freeze returns the conditions of the upstream's last status, for a summary that says why nobody acts.
func freeze(
	s *operator.Settings, summary *status.Summary, upstream *unstructured.Unstructured,
) (frozen []metav1.Condition) {
	list, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		name := textOf(c, "type")
		if !slices.Contains(s.OwnTypes(), name) || name == summary.Types.Reconciling {
			continue // nothing is in progress
		}
		condition := metav1.Condition{Type: name, Status: metav1.ConditionStatus(textOf(c, "status")),
			Reason: textOf(c, "reason"), Message: textOf(c, "message")}
		condition.ObservedGeneration, _ = c["observedGeneration"].(int64)
		if name == summary.Types.Ready {
			condition.Message = summary.Held
		}
		frozen = append(frozen, condition)
	}
	if frozen != nil {
		summary.Generation, _, _ = unstructured.NestedInt64(upstream.Object, "status", "observedGeneration")
	}
	return frozen
}
