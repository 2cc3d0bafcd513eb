package decide

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// EarlierBefore is what the upstream's status has of an object of an earlier config's deletion.before: the config has
// none any more, or one of another kind. It is nil if there is nothing of that. A status that is written like any other
// field of the upstream has nothing: no config with a deletion.before is taken for such a kind, so anyone who may write
// the upstream wrote that.
func EarlierBefore(s *operator.Settings, upstream *unstructured.Unstructured) *status.Recorded {
	r := s.RecordedBefore(upstream)
	if r == nil || r.Kind == "" || !s.Upstream.HasStatus {
		return nil
	}
	before := s.Config.Deletion.Before
	if before != nil && r.GroupKind() == schema.FromAPIVersionAndKind(before.APIVersion,
		before.Kind).GroupKind() {
		return nil
	}
	return r
}

// UnfinishedBefore is EarlierBefore if what it says does not let the downstreams go: the policies that the earlier
// config had are not known.
func UnfinishedBefore(s *operator.Settings, upstream *unstructured.Unstructured) *status.Recorded {
	if r := EarlierBefore(s, upstream); r != nil && operator.State(r.State) != operator.StateBeforeFinished {
		return r
	}
	return nil
}

// decideEarlier is about an object of an earlier deletion.before. The config has no doneWhen for it, so only a Job says
// that it has finished: for kstatus, a Job that runs is as ready as one that is complete, and so is an object without a
// status.
func decideEarlier(s *operator.Settings, r *status.Recorded, f operator.BeforeFacts) operator.Outcome {
	live := f.Live
	o := operator.Outcome{Downstream: operator.BeforeIndex, Earlier: r, State: operator.State(r.State),
		Failed: true, UID: r.UID, Live: live,
		Target: operator.Ref{Namespace: r.Namespace, Name: r.ObjectName}}
	if live != nil {
		o.UID = live.UID
	}
	what, isJob := r.Kind, r.GroupKind() == batchv1.SchemeGroupVersion.WithKind("Job").GroupKind()
	if r.ObjectName != "" {
		what += " " + o.Target.String()
	}
	switch {
	case f.Unread != "":
		o.Message = fmt.Sprintf("whether %s has finished is not known: %s", what, f.Unread)
	case o.UID == "":
		o.Message = what + " was not created"
	case live == nil:
		o.State, o.Message = operator.StateBeforeFailed, what+" disappeared before it finished"
	case isJob && jobHas(live, batchv1.JobComplete):
		o.State, o.Failed, o.Message = operator.StateBeforeFinished, false, what+" finished"
	case isJob && jobHas(live, batchv1.JobFailed):
		o.State, o.Message = operator.StateBeforeFailed, what+" failed"
	case live.Deleting:
		o.State, o.Message = operator.StateBeforeFailed, what+" was deleted before it finished"
	case isJob:
		o.State, o.Failed, o.Message = operator.StateBeforeRunning, false, fmt.Sprintf("waiting for %s to finish", what)
	default:
		o.State, o.Message = operator.StateBeforeRunning, fmt.Sprintf("only doneWhen knows whether %s has finished", what)
	}
	if o.State != operator.StateBeforeFinished {
		o.Message += fmt.Sprintf(
			"; nothing is deleted, although the config has no deletion.before of this kind any more: put it back, "+
				"or, for this upstream only, set the state of %s in its %s to %s",
			operator.BeforeName, s.Config.Status.Downstreams, operator.StateBeforeFinished)
	}
	if want := BeforeRecord(s, o); want.State != r.State || want.UID != r.UID {
		o.Action = operator.ActionRecord
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
