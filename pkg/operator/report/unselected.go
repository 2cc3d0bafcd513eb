package report

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Unselected computes the status of an upstream that is no longer selected: that alone, and the downstreams that are
// still to go. unmet is the match condition that it does not meet, if that is why. Rules are not asked any more, so
// nothing is said of validity.
func Unselected(
	s *operator.Settings, upstream *unstructured.Unstructured, unmet string, out operator.Decision,
	failed map[int]*operator.Failure, unrecorded []status.Recorded, now metav1.Time,
) Report {
	report := Report{Verdict: status.Verdict{Ready: metav1.ConditionFalse, Reason: status.ReasonNotSelected}}
	if s.Storable == nil {
		return report
	}
	messages := []string{whyUnselected(s, upstream, unmet)}
	for _, o := range out.Leftovers {
		text := s.Downstreams[o.Downstream].Config.Kind + " " + o.Target.String() + " will be removed"
		if fail := failed[o.Downstream]; fail != nil {
			text += " (" + fail.Message + ")"
		}
		messages = append(messages, text)
	}
	for i, d := range s.Downstreams {
		left := slices.ContainsFunc(out.Leftovers, func(o operator.Outcome) bool { return o.Downstream == i })
		if fail := failed[i]; fail != nil && !left {
			messages = append(messages, "downstream "+d.Name+": "+fail.Message)
		}
	}
	slices.Sort(messages[1:])
	ready := metav1.Condition{Type: s.Config.Status.Conditions.Ready, Status: metav1.ConditionFalse,
		Reason:  status.ReasonNotSelected,
		Message: strings.Join(messages, "; "), ObservedGeneration: observedGeneration(s, upstream)}
	report.Conditions = []metav1.Condition{ready}
	if t := s.Config.Status.Conditions.Reconciling; t != "" && len(out.Leftovers) > 0 {
		ready.Type, ready.Status = t, metav1.ConditionTrue
		report.Conditions = append(report.Conditions, ready)
	}
	recorded := keepForgotten(s, RecordedGoing(s, upstream, out, failed), upstream, unrecorded, noneHeld)
	content := statusOf(s, &report, upstream, recorded, now)
	store(s, &report, upstream, content)
	return report
}

// whyUnselected says which selector of the config excludes an upstream.
func whyUnselected(s *operator.Settings, upstream *unstructured.Unstructured, unmet string) string {
	if list := s.Config.Watch.Namespaces; len(list) > 0 && !slices.Contains(list, upstream.GetNamespace()) {
		return "watch.namespaces does not list its namespace"
	}
	if unmet != "" {
		return "the upstream does not meet the match condition " + unmet
	}
	return "the upstream or its namespace lacks the labels that the config selects by"
}

// whyLeft says why the downstreams of an upstream that is not selected stay, before the reason why it is not.
func whyLeft(s *operator.Settings, upstream *unstructured.Unstructured) string {
	if s.Paused(upstream) {
		return "it is paused, and not selected any more: "
	}
	return "the config was changed and does not select the upstream any more: "
}

// Leftover computes the status of an upstream that a changed config does not select any more: its downstreams stay, and
// nobody knows how they do. What has finished stays so.
func Leftover(s *operator.Settings, upstream *unstructured.Unstructured, unmet string, unrecorded []status.Recorded,
	now metav1.Time,
) Report {
	report := Report{Verdict: status.Verdict{Ready: metav1.ConditionUnknown, Reason: status.ReasonLeftover}}
	if s.Storable == nil {
		return report
	}
	report.Conditions = []metav1.Condition{{Type: s.Config.Status.Conditions.Ready, Status: metav1.ConditionUnknown,
		Reason:             status.ReasonLeftover,
		ObservedGeneration: observedGeneration(s, upstream),
		Message: whyLeft(s, upstream) + whyUnselected(s, upstream, unmet) +
			"; its downstreams stay as they are and are unmanaged: select it again, or delete them"}}
	recorded := s.Recorded(upstream)
	for i := range recorded {
		if !recorded[i].Done() {
			recorded[i].State = string(operator.StateLeftover)
		}
	}
	content := statusOf(s, &report, upstream, keepForgotten(s, recorded, upstream, unrecorded, noneHeld), now)
	store(s, &report, upstream, content)
	return report
}

// SaysDeleting reports whether the upstream's status says that a process deletes what was made for it.
func SaysDeleting(s *operator.Settings, upstream *unstructured.Unstructured) bool {
	return status.ReasonOf(upstream, s.Config.Status.Conditions.Ready) == status.ReasonDeleting
}

// SaysLeftover reports whether the upstream's status says that no config selects it.
func SaysLeftover(s *operator.Settings, upstream *unstructured.Unstructured) bool {
	return status.ReasonOf(upstream, s.Config.Status.Conditions.Ready) == status.ReasonLeftover
}

// SaysNotSelected reports whether the upstream's status says that it is not selected: then what it records is on its
// way out.
func SaysNotSelected(s *operator.Settings, upstream *unstructured.Unstructured) bool {
	return s.StatusEnabled() && status.ReasonOf(upstream, s.Config.Status.Conditions.Ready) == status.ReasonNotSelected
}

// SaysItIsKept reports whether the upstream's status says that it is kept: that has to be taken back once it is not.
func SaysItIsKept(s *operator.Settings, upstream *unstructured.Unstructured) bool {
	if !s.StatusEnabled() {
		return false
	}
	reason := status.ReasonOf(upstream, s.Config.Status.Conditions.Ready)
	return reason != "" && reason != status.ReasonNotSelected && reason != status.ReasonLeftover ||
		len(s.Recorded(upstream)) > 0
}
