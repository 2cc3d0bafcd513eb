package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Surveyed is what the cluster shows of one upstream under the changed config.
type Surveyed struct {
	// Changes: an object of it would be created, changed by the config, or deleted.
	Changes bool
	// Edited: it is new, or its own spec was changed, so that it does not wait.
	Edited bool
	// Paused: nothing is done for it, whatever was edited.
	Paused bool
	// Refuses is why it would fail before anything of it is written, such as RenderFailed; empty if it would not.
	Refuses string
	// Said is the reason of Ready in its status. Ready: that is True, and about its present generation.
	Said  string
	Ready bool
	// marks are those of its objects.
	marks []Mark
}

// Moved is when the last rollout began that has applied an object of it; zero for none.
func (s *Surveyed) Moved() (began time.Time) {
	for _, m := range s.marks {
		if at := time.Unix(m.Began, 0); at.After(began) {
			began = at
		}
	}
	return began
}

// Survey finds out what a decision does to an upstream. It sends no request.
func Survey(
	s *operator.Settings, upstream *unstructured.Unstructured, w *operator.Desired, d operator.Decision, now time.Time,
) Surveyed {
	found := Surveyed{Said: status.ReasonOf(upstream, s.Config.Status.Conditions.Ready), Edited: s.EditedSince(upstream)}
	found.Ready = status.IsTrue(upstream, s.Config.Status.Conditions.Ready) && !found.Edited
	exists := len(d.Leftovers) > 0
	for k, o := range d.Outcomes {
		if o.Live == nil || o.Theirs {
			continue
		}
		exists = true
		changes := rewrites(s, w, k, o)
		if m := markOf(s, o.Live, now); m != (Mark{}) {
			m.outdated = changes // a mark alone applies nothing
			found.marks = append(found.marks, m)
		}
		found.Changes = found.Changes || changes
	}
	found.Changes = found.Changes || slices.ContainsFunc(d.Outcomes, func(o operator.Outcome) bool {
		return o.Live == nil && o.State == operator.StateCreate && !isRecorded(s, upstream, w, o) ||
			o.State == operator.StateUnwanted && o.Action != operator.ActionNone
	}) || slices.ContainsFunc(d.Leftovers, func(o operator.Outcome) bool {
		return o.Action != operator.ActionNone || o.GoesLater
	})
	found.Edited = found.Edited || !exists && found.Said == ""
	found.Refuses = refuses(w, d)
	return found
}

// isRecorded reports whether the status records an object that is missing as the config gives it: then it is only made
// again.
func isRecorded(
	s *operator.Settings, upstream *unstructured.Unstructured, w *operator.Desired, o operator.Outcome,
) bool {
	desired := &w.Objects[o.Object]
	return slices.ContainsFunc(s.Recorded(upstream), func(r status.Recorded) bool {
		return r.Hash == desired.Hash && r.Namespace == o.Target.Namespace && r.ObjectName == o.Target.Name
	})
}

// rewrites reports whether an object of ours gets another document than it has: its hash says so, whatever else waits.
func rewrites(s *operator.Settings, w *operator.Desired, k int, o operator.Outcome) bool {
	desired := &w.Objects[k]
	return desired.Wanted && desired.Err == nil && desired.Hash != "" && o.Live.Hash != desired.Hash && !o.Finished &&
		s.Downstreams[o.Downstream].Config.UpdatePolicy != config.UpdateCreateOnly
}

// refuses is the reason by which an upstream fails before anything is written; empty for none.
func refuses(w *operator.Desired, d operator.Decision) string {
	if len(w.Invalid) > 0 {
		return status.ReasonInvalid
	}
	for _, o := range d.Outcomes {
		if o.State == operator.StateRenderFailed || o.State == operator.StateConflict {
			return string(o.State)
		}
	}
	return ""
}

// failures are the reasons of Ready by which an upstream has failed: a person has to act.
var failures = []string{status.ReasonFailed, status.ReasonInvalid, string(operator.StateRenderFailed),
	string(operator.StateConflict), string(operator.StateContested), apply.ReasonRejected, apply.ReasonDenied,
	apply.ReasonForbidden, apply.ReasonSchemaMismatch, apply.ReasonUnencodable, apply.ReasonTooLarge}

// forgiven are those that count only if they were not there before.
var forgiven = []string{status.ReasonInvalid, string(operator.StateConflict), string(operator.StateContested)}

// hasFailed reports whether a reason is a failure, for an upstream whose reason was said before.
func hasFailed(reason, said string) bool {
	return slices.Contains(failures, reason) && (reason != said || !slices.Contains(forgiven, reason))
}

// names are the first few of a list, as text says them, and how many more there are.
func names(refs []operator.Ref, text func(operator.Ref) string) string {
	list := make([]string, len(refs))
	for i, ref := range refs {
		list[i] = text(ref)
	}
	return status.Few(list)
}
