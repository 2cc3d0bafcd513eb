package reconcile

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Finding is what a survey found about one upstream.
type Finding struct {
	Operator string
	Ref      operator.Ref
	// Upstream is without its managedFields; nil if it is gone.
	Upstream *unstructured.Unstructured
	// Selected is false if the upstream exists and the config does not select it.
	Selected bool
	// Match is what watch.matchConditions say of it.
	Match pipeline.MatchResult
	// Inputs are the inputs that it reads.
	Inputs pipeline.Inputs
	// Desired is the desired state; nil if the upstream is being deleted.
	Desired *operator.Desired
	// Decision is the first decision of `run`, before any request to the API server.
	Decision operator.Decision
	// Finalizer is what `run` would do with the upstream's finalizer.
	Finalizer operator.FinalizerAction
	// Changes has each downstream of the config, in order, and then what is left over. An upstream that is being deleted has
	// leftovers only.
	Changes []Change
	// GuardCount is what the config's guard counts; zero without a guard.
	GuardCount guard.Count
	// GuardDigest is the digest of what would be changed or deleted.
	GuardDigest drift.Sum
	// Forgotten are existing objects that the status records and that belong to no downstream of the config.
	Forgotten []Forgotten
	// Left are objects of an earlier upstream of the same name: they are unmanaged.
	Left []Change
}

// Forgotten is an unmanaged object.
type Forgotten struct {
	status.Recorded
	// Note is why it could not be read, or is kept at the deletion of its upstream; else empty.
	Note string
}

// ChangeAction is what would be done with one object.
type ChangeAction string

// The actions.
const (
	// ChangeNone: it is in its desired state.
	ChangeNone ChangeAction = "none"
	// ChangeCreate: it would be created.
	ChangeCreate ChangeAction = "create"
	// ChangeUpdate: it would be changed, because its desired state has changed, or adopted.
	ChangeUpdate ChangeAction = "update"
	// ChangeRepair: its drift would be corrected.
	ChangeRepair ChangeAction = "repair"
	// ChangeRecreate: it would be deleted and recreated.
	ChangeRecreate ChangeAction = "recreate"
	// ChangeSupersede: it would be deleted, because another one has taken its place.
	ChangeSupersede ChangeAction = "supersede"
	// ChangeDelete: it would be deleted.
	ChangeDelete ChangeAction = "delete"
	// ChangeRelease: it would be kept, without our marks.
	ChangeRelease ChangeAction = "release"
	// ChangeLeave: it would be left as it is, though it is not in its desired state.
	ChangeLeave ChangeAction = "leave"
	// ChangeRefuse: it would be written, and the API server refuses that.
	ChangeRefuse ChangeAction = "refuse"
	// ChangeWait: something must happen first.
	ChangeWait ChangeAction = "wait"
	// ChangeLeftover: the config no longer selects its upstream, and it is kept.
	ChangeLeftover ChangeAction = "leftover"
	// ChangeConflict: an object of another owner exists at its place.
	ChangeConflict ChangeAction = "conflict"
)

// Writes reports whether the action needs a write, even one that is refused.
func (a ChangeAction) Writes() bool {
	switch a {
	case ChangeNone, ChangeLeave, ChangeLeftover, ChangeWait, ChangeConflict:
		return false
	}
	return true
}

// Change is what would be done with one object.
type Change struct {
	// Index is the downstream's in the config, Downstream its name.
	Index      int
	Downstream string
	// Object is the index in Desired.Objects; of something left over, that of the first object of its downstream.
	Object int
	// Leftover is true for an object that is at no target.
	Leftover bool
	Kind     schema.GroupVersionKind
	// Target is the place of the object; empty if it is unknown.
	Target operator.Ref
	Action ChangeAction
	// State is the state in the decision, and Reason its message.
	State  operator.State
	Reason string
	// Risk says what would be lost; empty if nothing would.
	Risk string
	// Note says what is uncertain; empty if nothing is.
	Note string
	// Failure is the API server's refusal of the write.
	Failure *operator.Failure
	// Live is the object in the cache; nil if there is none. Theirs is true if it is not ours.
	Live   *drift.Live
	Theirs bool
	// Document is what would be applied; nil if nothing would.
	Document map[string]any
	// Before and After are the live object and what the API server would store; nil for none, and without
	// PreviewOptions.Documents.
	Before, After *unstructured.Unstructured
	// Drift is the difference of our fields from what an apply would leave, with the last writers; only with
	// PreviewOptions.Documents.
	Drift []drift.Difference
}

// actionOf is the action of an outcome that needs a write.
func actionOf(o operator.Outcome) ChangeAction {
	switch {
	case o.Action == operator.ActionCreate:
		return ChangeCreate
	case o.Action == operator.ActionApply && o.State == operator.StateRepair:
		return ChangeRepair
	case o.Action == operator.ActionApply, o.Action == operator.ActionReplaceMarks, o.Action == operator.ActionMarkOwner:
		return ChangeUpdate
	case o.Action == operator.ActionRelease, o.State == operator.StateRelease:
		return ChangeRelease
	case o.State == operator.StateRecreate:
		return ChangeRecreate
	case o.State == operator.StateSuperseded:
		return ChangeSupersede
	}
	return ChangeDelete
}

// idleActionOf is the action of an outcome that needs no write.
func idleActionOf(o operator.Outcome) ChangeAction {
	switch o.State {
	case operator.StateInSync:
		return ChangeNone
	case operator.StateUnwanted:
		if o.Live == nil {
			return ChangeNone
		}
	case operator.StateConflict:
		return ChangeConflict
	case operator.StateWaiting, operator.StateContested:
		return ChangeWait
	}
	if o.Live != nil && o.Live.Deleting {
		return ChangeWait
	}
	return ChangeLeave
}
