package report

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Deletion computes the status of an upstream that is being deleted and is not gone yet. failed has what could not be
// carried out, by downstream, BeforeIndex for deletion.before. What the status had beside our conditions and
// identifiers stays as it is.
func Deletion(
	s *operator.Settings, upstream *unstructured.Unstructured, d operator.Decision,
	failed map[int]*operator.Failure, unrecorded []status.Recorded, now metav1.Time,
) Report {
	var report Report
	report.Facts = deletionFacts(s, d, failed)
	if len(report.Facts) == 0 {
		return report
	}
	summary := summary(s, upstream)
	summary.Downstreams = report.Facts
	summary.Types.Valid = "" // it stays as it is: rules are not asked any more
	report.draft = &draft{summary: summary, more: currentValidCondition(s, upstream), now: now,
		recorded: keepForgotten(s, RecordedGoing(s, upstream, d, failed), upstream, unrecorded, noneHeld),
		fields:   currentValues(s.StatusFields, upstream)}
	fill(s, &report, upstream, RefusedFields{})
	return report
}

// currentValidCondition is our condition about validity as the status has it.
func currentValidCondition(s *operator.Settings, upstream *unstructured.Unstructured) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		if t := textOf(c, "type"); t != "" && t == s.Config.Status.Conditions.Valid {
			generation, _ := c["observedGeneration"].(int64)
			return []metav1.Condition{{Type: t, Status: metav1.ConditionStatus(textOf(c, "status")),
				Reason: textOf(c, "reason"), Message: textOf(c, "message"), ObservedGeneration: generation}}
		}
	}
	return nil
}

const terminating = "%s %s is terminating: finalizers, or objects that it owns, hold it"

func deletionFacts(s *operator.Settings, d operator.Decision, failed map[int]*operator.Failure) []status.Fact {
	var facts []status.Fact
	if d.Before != nil && (d.WaitsForBefore || failed[operator.BeforeIndex] != nil) {
		return []status.Fact{beforeFact(s, *d.Before, failed[operator.BeforeIndex])}
	}
	if f := d.Awaited; f != nil {
		facts = append(facts, status.Fact{Name: f.Name, Progressing: true, Reason: status.ReasonDeleting,
			Message: fmt.Sprintf(terminating, f.Kind, operator.Ref{Namespace: f.Namespace, Name: f.ObjectName})})
	}
	for _, o := range d.Leftovers {
		if f := goingFact(s.Downstreams[o.Downstream], o, d.Waits, failed[o.Downstream]); f.Message != "" {
			facts = append(facts, f)
		}
	}
	for i, down := range s.Downstreams {
		of := func(f status.Fact) bool { return f.Name == down.Name }
		if fail := failed[i]; fail != nil && !slices.ContainsFunc(facts, of) { // what is left of it could not be found out
			facts = append(facts, status.Fact{Name: down.Name, Progressing: true, Reason: fail.Reason, Message: fail.Message})
		}
	}
	if h := d.Before; h != nil && h.State != operator.StateBeforeFinished && len(facts) > 0 {
		facts = append(facts, status.Fact{Name: operator.BeforeName, Progressing: true,
			Reason: status.ReasonDeleting, Message: h.Message})
	}
	return facts
}

// goingFact is about what is left over of a downstream; without a message if nothing waits for it.
func goingFact(d *operator.Downstream, o operator.Outcome, waits bool, fail *operator.Failure) status.Fact {
	f := status.Fact{Name: d.Name, Progressing: true, Reason: status.ReasonDeleting}
	switch kind := d.Config.Kind; {
	case fail != nil:
		f.Reason, f.Message = fail.Reason, fail.Message
	case o.GoesLater:
		f.Message = fmt.Sprintf("%s %s: %s", kind, o.Target, o.Message)
	case waits && o.Live.Deleting:
		f.Message = fmt.Sprintf(terminating, kind, o.Target)
	case waits:
		f.Message = fmt.Sprintf("waiting for %s %s to be deleted", kind, o.Target)
	}
	return f
}

// beforeFact is what deletion.before contributes to the conditions.
func beforeFact(s *operator.Settings, o operator.Outcome, fail *operator.Failure) status.Fact {
	f := status.Fact{Name: operator.BeforeName, Reason: string(o.State), Message: o.Message}
	if o.Earlier != nil {
		f.Failed, f.Progressing = o.Failed, !o.Failed
		return f
	}
	b := s.Config.Deletion.Before
	switch {
	case o.State == operator.StateBeforeTimedOut && fail != nil:
		f.Failed, f.Message = b.OnTimeout != config.BeforeProceed, o.Message+" ("+fail.Message+")"
	case o.State == operator.StateBeforeTimedOut:
		f.Failed = b.OnTimeout != config.BeforeProceed
	case o.State == operator.StateBeforeFailed:
		f.Failed = b.OnFailure != config.BeforeProceed
	case fail != nil:
		f.Reason, f.Message = fail.Reason, fail.Message
	case o.State.NeedsPerson():
		f.Failed = true
	}
	f.Progressing = !f.Failed
	return f
}
