package pipeline

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// pause has the status of a paused upstream say so beside what else it says. It returns the conditions of one that was edited after its
// status was written: nobody acts on that generation, so they still speak of the one before, as summary then does. nil means that the
// conditions follow from the downstreams.
func (p *Pipeline) pause(summary *status.Summary, upstream *unstructured.Unstructured) (frozen []metav1.Condition) {
	if !p.Paused(upstream) {
		return nil
	}
	summary.Held = p.pauseText()
	if !p.EditedSince(upstream) {
		return nil
	}
	return p.freeze(summary, upstream)
}

func (p *Pipeline) pauseText() string {
	return "paused: annotation " + p.Config.Conventions.Pause.Annotation + " is true"
}

// guardText is what the message of Ready begins with while guard holds what is done for the upstream.
const guardText = "held: guard waits for a confirmation, see the event GuardWaiting of the operator or corollary plan"

// ReportHeld computes the status of an upstream for which guard holds what would be done: as it was, and that it is held.
func (p *Pipeline) ReportHeld(upstream *unstructured.Unstructured, now metav1.Time) Report {
	summary := p.summary(upstream)
	summary.Held = guardText
	frozen := p.freeze(&summary, upstream)
	if frozen == nil {
		return Report{} // nothing was said of it yet
	}
	before := p.Recorded(upstream)
	report := Report{draft: &draft{summary: summary, before: before, recorded: p.keepForgotten(before, upstream), now: now, frozen: frozen,
		fields: p.fieldValues(upstream, nil, true, rules.Vars{}, nil)}}
	p.fill(&report, upstream, RefusedFields{})
	return report
}

// freeze returns the conditions of the upstream's last status, for a summary that says why nobody acts.
func (p *Pipeline) freeze(summary *status.Summary, upstream *unstructured.Unstructured) (frozen []metav1.Condition) {
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
			condition.Message = summary.Held
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
