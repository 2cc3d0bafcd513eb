package pipeline

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/status"
)

// pause has the status of a paused upstream say so beside what else it says. It returns the conditions of one that was edited after its
// status was written: nobody acts on that generation, so they still speak of the one before, as summary then does. nil means that the
// conditions follow from the downstreams.
func (p *Pipeline) pause(summary *status.Summary, upstream *unstructured.Unstructured) (frozen []metav1.Condition) {
	if !p.Paused(upstream) {
		return nil
	}
	summary.Paused = "paused: annotation " + p.Config.Conventions.Pause.Annotation + " is true"
	if !p.EditedSince(upstream) {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		name := textOf(c, "type")
		if !slices.Contains(p.ownTypes(), name) || name == summary.Types.Reconciling {
			continue // nothing is in progress
		}
		condition := metav1.Condition{Type: name, Status: metav1.ConditionStatus(textOf(c, "status")), Reason: textOf(c, "reason"), Message: textOf(c, "message")}
		condition.ObservedGeneration, _ = c["observedGeneration"].(int64)
		if name == summary.Types.Ready {
			condition.Message = summary.WithPause(condition.Message)
		}
		frozen = append(frozen, condition)
	}
	if frozen != nil {
		summary.Generation, _, _ = unstructured.NestedInt64(upstream.Object, "status", "observedGeneration")
	}
	return frozen
}

// verdictIn is what the condition Ready says.
func verdictIn(list []metav1.Condition, ready string) (v status.Verdict) {
	for _, c := range list {
		if c.Type == ready {
			v = status.Verdict{Ready: c.Status, Reason: c.Reason}
		}
	}
	return v
}

func textOf(m map[string]any, key string) string {
	text, _ := m[key].(string)
	return text
}
