package pipeline

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/status"
)

// EarlierBefore is what the upstream's status has of an object of an earlier config's deletion.before: the config has none any more,
// or one of another kind. It is nil if there is nothing of that. A status that is written like any other field of the upstream has
// nothing: no config with a deletion.before is taken for such a kind, so whoever may write the upstream wrote that.
func (p *Pipeline) EarlierBefore(upstream *unstructured.Unstructured) *status.Recorded {
	r := p.RecordedBefore(upstream)
	if r == nil || r.Kind == "" || !p.Upstream.HasStatus {
		return nil
	}
	if p.Before != nil && groupKindOf(r) == schema.FromAPIVersionAndKind(p.Before.Config.APIVersion, p.Before.Config.Kind).GroupKind() {
		return nil
	}
	return r
}

// UnfinishedBefore is EarlierBefore if what it says does not let the downstreams go: the policies that the earlier config had are not
// known.
func (p *Pipeline) UnfinishedBefore(upstream *unstructured.Unstructured) *status.Recorded {
	if r := p.EarlierBefore(upstream); r != nil && State(r.State) != StateBeforeFinished {
		return r
	}
	return nil
}

func groupKindOf(r *status.Recorded) schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
}

// EarlierBeforeLive is the live object of an earlier deletion.before, with what says whether it has finished.
func (p *Pipeline) EarlierBeforeLive(obj *unstructured.Unstructured) (*drift.Live, error) {
	v := p.beforeView("status", "conditions")
	return v.Live(obj)
}

// decideEarlier is about an object of an earlier deletion.before. The config has no doneWhen for it, so only a Job says that it has
// finished: for kstatus, a Job that runs is as ready as one that is complete, and so is an object without a status.
func (p *Pipeline) decideEarlier(r *status.Recorded, f BeforeFacts) Outcome {
	live := f.Live
	o := Outcome{Downstream: BeforeIndex, Earlier: r, State: State(r.State), Failed: true, UID: r.UID, Live: live,
		Target: Ref{Namespace: r.Namespace, Name: r.ObjectName}}
	if live != nil {
		o.UID = live.UID
	}
	what, isJob := r.Kind, groupKindOf(r) == batchv1.SchemeGroupVersion.WithKind("Job").GroupKind()
	if r.ObjectName != "" {
		what += " " + o.Target.String()
	}
	switch {
	case f.Unread != "":
		o.Message = fmt.Sprintf("whether %s has finished is not known: %s", what, f.Unread)
	case o.UID == "":
		o.Message = what + " was not created"
	case live == nil:
		o.State, o.Message = StateBeforeFailed, what+" disappeared before it finished"
	case isJob && jobHas(live, batchv1.JobComplete):
		o.State, o.Failed, o.Message = StateBeforeFinished, false, what+" finished"
	case isJob && jobHas(live, batchv1.JobFailed):
		o.State, o.Message = StateBeforeFailed, what+" failed"
	case live.Deleting:
		o.State, o.Message = StateBeforeFailed, what+" was deleted before it finished"
	case isJob:
		o.State, o.Failed, o.Message = StateBeforeRunning, false, fmt.Sprintf("waiting for %s to finish", what)
	default:
		o.State, o.Message = StateBeforeRunning, fmt.Sprintf("only doneWhen knows whether %s has finished", what)
	}
	if o.State != StateBeforeFinished {
		o.Message += fmt.Sprintf("; nothing is deleted, although the config has no deletion.before of this kind any more: put it back, "+
			"or, for this upstream only, set the state of %s in its %s to %s", BeforeName, p.Config.Status.Downstreams, StateBeforeFinished)
	}
	if want := p.BeforeRecord(o); want.State != r.State || want.UID != r.UID {
		o.Action = ActionRecord
	}
	return o
}

// jobHas reports whether a condition of a Job is true.
func jobHas(live *drift.Live, condition batchv1.JobConditionType) bool {
	list, _, _ := unstructured.NestedSlice(live.Kept, "status", "conditions")
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == string(condition) && c["status"] == "True" {
			return true
		}
	}
	return false
}
