package reconcile

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Finding is what a survey found of one upstream.
type Finding struct {
	Operator string
	Ref      pipeline.Ref
	// Upstream is without its managedFields; nil where there is none any more.
	Upstream *unstructured.Unstructured
	// Selected is false where the upstream stands and the config does not select it.
	Selected bool
	// Inputs are what it reads of other objects.
	Inputs pipeline.Inputs
	// Desired is what the upstream asks for; nil where it is being deleted.
	Desired *pipeline.Desired
	// Decision is the first that `run` would take, before it asks the API server for anything.
	Decision pipeline.Decision
	// Finalizer is what `run` would do to the upstream's finalizer.
	Finalizer pipeline.FinalizerAction
	// Changes has each downstream of the config, in order, and then what is left over. An upstream that is being deleted has
	// leftovers only.
	Changes []Change
	// GuardCount is what the config's guard counts of it; zero if there is no guard.
	GuardCount GuardCount
	// GuardDigest is the digest of what would be changed or deleted.
	GuardDigest drift.Sum
	// Forgotten are objects that the status records, that stand, and that no downstream of the config looks at.
	Forgotten []Forgotten
	// Left are objects of an earlier upstream of the same name, which is gone: they are unmanaged.
	Left []Change
}

// Forgotten is an object that nothing looks at any more.
type Forgotten struct {
	status.Recorded
	// Unread is why it could not be read; empty where it was, and stands.
	Unread string
}

// ChangeAction is what would be done about one object.
type ChangeAction string

// The actions.
const (
	// ChangeNone: it is as it should be.
	ChangeNone ChangeAction = "none"
	// ChangeCreate: it would be made.
	ChangeCreate ChangeAction = "create"
	// ChangeUpdate: it would be changed, since something else is asked for now; or adopted.
	ChangeUpdate ChangeAction = "update"
	// ChangeRepair: it would be changed back.
	ChangeRepair ChangeAction = "repair"
	// ChangeRecreate: it would be deleted and recreated.
	ChangeRecreate ChangeAction = "recreate"
	// ChangeSupersede: it would be deleted, since another one has taken its place.
	ChangeSupersede ChangeAction = "supersede"
	// ChangeDelete: it would be deleted.
	ChangeDelete ChangeAction = "delete"
	// ChangeRelease: it would stay, without our marks.
	ChangeRelease ChangeAction = "release"
	// ChangeLeave: it would be left as it is, though it is not as it should be.
	ChangeLeave ChangeAction = "leave"
	// ChangeRefuse: it would be written, and the API server refuses that.
	ChangeRefuse ChangeAction = "refuse"
	// ChangeWait: something must happen first.
	ChangeWait ChangeAction = "wait"
	// ChangeLeftover: the config no longer selects its upstream, and it stays.
	ChangeLeftover ChangeAction = "leftover"
	// ChangeConflict: an object that is not ours is in the way.
	ChangeConflict ChangeAction = "conflict"
)

// Writes tells whether the action asks for a write, be it one that is refused.
func (a ChangeAction) Writes() bool {
	switch a {
	case ChangeNone, ChangeLeave, ChangeLeftover, ChangeWait, ChangeConflict:
		return false
	}
	return true
}

// Change is what would be done about one object.
type Change struct {
	// Index is the downstream's in the config, Downstream its name.
	Index      int
	Downstream string
	// Leftover is true for an object that stands at no target.
	Leftover bool
	Kind     schema.GroupVersionKind
	// Target is where the object stands or would stand; empty where that cannot be told.
	Target pipeline.Ref
	Action ChangeAction
	// State is the decision's word for it, and Reason the decision's text.
	State  pipeline.State
	Reason string
	// Note says what is uncertain about it; empty where nothing is.
	Note string
	// Failure is what the API server refused the write with.
	Failure *pipeline.Failure
	// Live is the object as the cache has it; nil where none stands. Theirs tells that it is not ours.
	Live   *drift.Live
	Theirs bool
	// Document is what would be applied; nil where nothing would.
	Document map[string]any
	// Before and After are the object as it stands and as the API server would store it; nil for none, and without
	// SurveyOptions.Documents.
	Before, After *unstructured.Unstructured
	// Drift is what of our fields is not as an apply would leave it, with the last writers; with Documents only.
	Drift []drift.Difference
}

// actionOf is the word for a decision that asks for a write.
func actionOf(o pipeline.Outcome) ChangeAction {
	switch {
	case o.Action == pipeline.ActionCreate:
		return ChangeCreate
	case o.Action == pipeline.ActionApply && o.State == pipeline.StateRepair:
		return ChangeRepair
	case o.Action == pipeline.ActionApply, o.Action == pipeline.ActionReplaceMarks:
		return ChangeUpdate
	case o.Action == pipeline.ActionRelease, o.State == pipeline.StateRelease:
		return ChangeRelease
	case o.State == pipeline.StateRecreate:
		return ChangeRecreate
	case o.State == pipeline.StateSuperseded:
		return ChangeSupersede
	}
	return ChangeDelete
}

// idleActionOf is the word for a decision that asks for none.
func idleActionOf(o pipeline.Outcome) ChangeAction {
	switch o.State {
	case pipeline.StateInSync:
		return ChangeNone
	case pipeline.StateUnwanted:
		if o.Live == nil {
			return ChangeNone
		}
	case pipeline.StateConflict:
		return ChangeConflict
	case pipeline.StateWaiting, pipeline.StateContested:
		return ChangeWait
	}
	if o.Live != nil && o.Live.Deleting {
		return ChangeWait
	}
	return ChangeLeave
}
