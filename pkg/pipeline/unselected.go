package pipeline

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/status"
)

// decideUnselected is about an upstream that lost the label (or whose namespace did), or that does not meet a match condition any more: all
// its downstreams are unwanted.
func (p *Pipeline) decideUnselected(in Input) Decision {
	if in.Desired == nil {
		in.Desired = p.failed(nil)
	}
	var out Decision
	message := "the upstream is no longer selected"
	if p.isGone(in.Upstream) {
		message = "the query does not return the row"
	}
	if err := p.Match(in.Upstream).Err; err != nil {
		message = "whether the upstream is selected is not known, so it is left as it is: " + err.Error()
	}
	for k, o := range in.Desired.Objects {
		out.Outcomes = append(out.Outcomes, Outcome{Downstream: o.Downstream, Object: k, State: StateUnwanted, Message: message})
	}
	p.decideLeftovers(in, &out)
	if in.HasFinalizer && len(in.Leftovers) == 0 {
		out.Finalizer = FinalizerRemove
	}
	return out
}

// ReportUnselected computes the status of an upstream that is no longer selected: that alone, and the downstreams that are
// still to go. Rules are not asked any more, so nothing is said of validity.
func (p *Pipeline) ReportUnselected(upstream *unstructured.Unstructured, out Decision, failed map[int]*Failure, now metav1.Time) Report {
	report := Report{Verdict: status.Verdict{Ready: metav1.ConditionFalse, Reason: status.ReasonNotSelected}}
	if p.Storable == nil {
		return report
	}
	messages := []string{p.whyUnselected(upstream)}
	for _, o := range out.Leftovers {
		text := p.Downstreams[o.Downstream].Config.Kind + " " + o.Target.String() + " will be removed"
		if fail := failed[o.Downstream]; fail != nil {
			text += " (" + fail.Message + ")"
		}
		messages = append(messages, text)
	}
	for i, d := range p.Downstreams {
		left := slices.ContainsFunc(out.Leftovers, func(o Outcome) bool { return o.Downstream == i })
		if fail := failed[i]; fail != nil && !left {
			messages = append(messages, "downstream "+d.Name+": "+fail.Message)
		}
	}
	slices.Sort(messages[1:])
	ready := metav1.Condition{Type: p.Config.Status.Conditions.Ready, Status: metav1.ConditionFalse, Reason: status.ReasonNotSelected,
		Message: strings.Join(messages, "; "), ObservedGeneration: p.observedGeneration(upstream)}
	report.Conditions = []metav1.Condition{ready}
	if t := p.Config.Status.Conditions.Reconciling; t != "" && len(out.Leftovers) > 0 {
		ready.Type, ready.Status = t, metav1.ConditionTrue
		report.Conditions = append(report.Conditions, ready)
	}
	content := p.statusOf(&report, upstream, p.recordedGoing(upstream, out, failed), now)
	p.store(&report, upstream, content)
	return report
}

// whyUnselected says which selector of the config excludes an upstream.
func (p *Pipeline) whyUnselected(upstream *unstructured.Unstructured) string {
	if list := p.Config.Watch.Namespaces; len(list) > 0 && !slices.Contains(list, upstream.GetNamespace()) {
		return "watch.namespaces does not list its namespace"
	}
	if unmet := p.Match(upstream).Unmet; unmet != "" {
		return "the upstream does not meet the match condition " + unmet
	}
	return "the upstream or its namespace lacks the labels that the config selects by"
}

// ReportLeftover computes the status of an upstream that a changed config does not select any more: its downstreams stay, and nobody knows
// how they do. What has finished stays so.
func (p *Pipeline) ReportLeftover(upstream *unstructured.Unstructured, now metav1.Time) Report {
	report := Report{Verdict: status.Verdict{Ready: metav1.ConditionUnknown, Reason: status.ReasonLeftover}}
	if p.Storable == nil {
		return report
	}
	report.Conditions = []metav1.Condition{{Type: p.Config.Status.Conditions.Ready, Status: metav1.ConditionUnknown, Reason: status.ReasonLeftover,
		ObservedGeneration: p.observedGeneration(upstream), Message: "the config was changed and does not select the upstream any more: " + p.whyUnselected(upstream) +
			"; its downstreams stay as they are and are unmanaged: select it again, or delete them"}}
	recorded := p.Recorded(upstream)
	for i := range recorded {
		if !recorded[i].Done() {
			recorded[i].State = string(StateLeftover)
		}
	}
	content := p.statusOf(&report, upstream, recorded, now)
	p.store(&report, upstream, content)
	return report
}

// SaysLeftover reports whether the upstream's status says that no config selects it.
func (p *Pipeline) SaysLeftover(upstream *unstructured.Unstructured) bool {
	return p.readyReason(upstream) == status.ReasonLeftover
}

// SaysNotSelected reports whether the upstream's status says that it is not selected: then what stands is on its way out.
func (p *Pipeline) SaysNotSelected(upstream *unstructured.Unstructured) bool {
	return p.StatusEnabled() && p.readyReason(upstream) == status.ReasonNotSelected
}

// readyReason is the reason of our condition Ready; empty if there is none.
func (p *Pipeline) readyReason(upstream *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	for _, item := range conditions {
		if c, _ := item.(map[string]any); c["type"] == p.Config.Status.Conditions.Ready {
			reason, _ := c["reason"].(string)
			return reason
		}
	}
	return ""
}

// SaysItIsKept reports whether the upstream's status says that it is kept: that has to be taken back once it is not.
func (p *Pipeline) SaysItIsKept(upstream *unstructured.Unstructured) bool {
	if !p.StatusEnabled() {
		return false
	}
	reason := p.readyReason(upstream)
	return reason != "" && reason != status.ReasonNotSelected && reason != status.ReasonLeftover || len(p.Recorded(upstream)) > 0
}

// EditedSince reports whether the upstream was edited since its status was last written: while no process ran, as a rule.
// Where the status has no generation, or is not ours to believe, it cannot be told.
func (p *Pipeline) EditedSince(upstream *unstructured.Unstructured) bool {
	if !p.Upstream.HasStatus || !p.StatusEnabled() {
		return false
	}
	seen, ok, _ := unstructured.NestedInt64(upstream.Object, "status", "observedGeneration")
	return ok && seen != upstream.GetGeneration()
}
