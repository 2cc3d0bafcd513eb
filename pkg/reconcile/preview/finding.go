package preview

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
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
	Match desired.MatchResult
	// Inputs are the inputs that it reads.
	Inputs desired.Inputs
	// Desired is the desired state; nil if the upstream is being deleted.
	Desired *operator.Desired
	// Decision is the first decision of `run`, before any request to the API server.
	Decision operator.Decision
	// Finalizer is what `run` would do with the upstream's finalizer.
	Finalizer operator.FinalizerAction
	// Changes has each downstream of the config, in order, and then what is left over. An upstream that is being deleted
	// has leftovers only.
	Changes []Change
	// GuardCount is what the config's guard counts; zero without a guard.
	GuardCount guard.Count
	// GuardDigest is the digest of what would be changed or deleted.
	GuardDigest canonical.Sum
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
	// AppliedBy is another field manager that applies it; empty for none.
	AppliedBy string
}

// Action is what would be done with one object.
type Action string

// The actions.
const (
	// ChangeNone: it is in its desired state.
	None Action = "none"
	// ChangeCreate: it would be created.
	Create Action = "create"
	// ChangeUpdate: it would be changed, because its desired state has changed, or adopted.
	Update Action = "update"
	// ChangeRepair: its drift would be corrected.
	Repair Action = "repair"
	// ChangeRecreate: it would be deleted and recreated.
	Recreate Action = "recreate"
	// ChangeSupersede: it would be deleted, because another one has taken its place.
	Supersede Action = "supersede"
	// ChangeDelete: it would be deleted.
	Delete Action = "delete"
	// ChangeRelease: it would be kept, without our marks.
	Release Action = "release"
	// ChangeLeave: it would be left as it is, though it is not in its desired state.
	Leave Action = "leave"
	// ChangeRefuse: it would be written, and the API server refuses that.
	Refuse Action = "refuse"
	// ChangeWait: something must happen first.
	Wait Action = "wait"
	// ChangeLeftover: the config no longer selects its upstream, and it is kept.
	Leftover Action = "leftover"
	// ChangeConflict: an object of another owner exists at its place.
	Conflict Action = "conflict"
)

// Writes reports whether the action needs a write, even one that is refused.
func (a Action) Writes() bool {
	switch a {
	case None, Leave, Leftover, Wait, Conflict:
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
	Action Action
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
	// Options.Documents.
	Before, After *unstructured.Unstructured
	// Drift is the difference of our fields from what an apply would leave, with the last writers; only with
	// Options.Documents.
	Drift []drift.Difference
}

// ActionOf is the action of an outcome that needs a write.
func ActionOf(o operator.Outcome) Action {
	switch {
	case o.Action == operator.ActionCreate:
		return Create
	case o.Action == operator.ActionApply && o.State == operator.StateRepair:
		return Repair
	case o.Action == operator.ActionApply, o.Action == operator.ActionReplaceMarks, o.Action == operator.ActionMarkOwner:
		return Update
	case o.Action == operator.ActionRelease, o.State == operator.StateRelease:
		return Release
	case o.State == operator.StateRecreate:
		return Recreate
	case o.State == operator.StateSuperseded:
		return Supersede
	}
	return Delete
}

// IdleActionOf is the action of an outcome that needs no write.
func IdleActionOf(o operator.Outcome) Action {
	switch o.State {
	case operator.StateInSync:
		return None
	case operator.StateUnwanted:
		if o.Live == nil {
			return None
		}
	case operator.StateConflict:
		return Conflict
	case operator.StateWaiting, operator.StateContested:
		return Wait
	}
	if o.Live != nil && o.Live.Deleting {
		return Wait
	}
	return Leave
}

// CompareChanges orders changes by their downstream in the config, and by namespace and name.
func CompareChanges(a, b *Change) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), a.Target.Compare(b.Target))
}
