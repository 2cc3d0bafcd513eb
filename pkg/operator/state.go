package operator

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/status"
)

// State is what Decide says of one downstream. The same word is in the upstream's status, in metrics, events and
// in what commands print.
type State string

// The states of a downstream.
const (
	// StateInvalid: a rule of the config refuses the upstream. Standing downstreams are left alone until it changes.
	StateInvalid State = "Invalid"
	// StateRenderFailed: the template, or `when`, gave an error for this upstream. Left alone until it changes.
	StateRenderFailed State = "RenderFailed"
	// StateWaiting: something must come or go first, such as a missing input, or a terminating object under the same name.
	StateWaiting State = "Waiting"
	// StateCreate: the target does not exist; it is made.
	StateCreate State = "Create"
	// StateUpdate: the desired state has changed since the last apply.
	StateUpdate State = "Update"
	// StateRepair: the upstream asks for the same as before, but the live object is no longer that.
	StateRepair State = "Repair"
	// StateRecreate: the API server refuses a change to an immutable field; the object is deleted and made again.
	StateRecreate State = "Recreate"
	// StateInSync: the live object is what the upstream asks for.
	StateInSync State = "InSync"
	// StateDrifted: the live object differs and drift.policy says to report that only.
	StateDrifted State = "Drifted"
	// StateStale: the live object is what was applied, but has values of the API server that a new object would not have,
	// and that an update cannot change.
	StateStale State = "Stale"
	// StateConflict: an object that is not ours is at the target.
	StateConflict State = "Conflict"
	// StateContested: what is written does not settle, since another writer undoes it or it changes what is wanted; writes
	// are spaced out.
	StateContested State = "Contested"
	// StatePaused: the upstream has the pause annotation.
	StatePaused State = "Paused"
	// StateUnwanted: `when` is false, or the upstream is no longer selected; deletionPolicy applies to what exists.
	StateUnwanted State = "Unwanted"
	// StateSuperseded: an object of ours that is no longer the target, such as after a rename.
	StateSuperseded State = "Superseded"
	// StateLeftover: the status records an object for a downstream that the config no longer has, by name or by kind.
	// Nothing looks after it.
	StateLeftover State = "Leftover"
	// StateDelete: the upstream is being deleted and the downstream goes with it.
	StateDelete State = "Delete"
	// StateDeleteFirst: the upstream is being deleted with --cascade=foreground, and goes after the downstream.
	StateDeleteFirst State = "DeleteFirst"
	// StateRelease: the downstream is kept and our marks are taken off.
	StateRelease State = "Release"
	// StateBeforeRunning: the object of deletion.before exists and is not done; nothing is deleted yet.
	StateBeforeRunning State = "BeforeRunning"
	// StateBeforeFinished: the object of deletion.before finished.
	StateBeforeFinished State = "BeforeFinished"
	// StateBeforeFailed: the object of deletion.before failed, or was deleted before it finished; onFailure applies.
	StateBeforeFailed State = "BeforeFailed"
	// StateBeforeTimedOut: deletion.before was not done in time; onTimeout applies.
	StateBeforeTimedOut State = "BeforeTimedOut"
)

// traits are what follows from a state wherever it is looked at.
type traits struct{ isApplied, isLeftAlone, needsPerson bool }

// states has every state.
var states = []struct {
	state  State
	traits traits
}{
	{StateInvalid, traits{isLeftAlone: true}},
	{StateRenderFailed, traits{isLeftAlone: true, needsPerson: true}},
	{StateWaiting, traits{isLeftAlone: true}},
	{StateCreate, traits{}},
	{StateUpdate, traits{}},
	{StateRepair, traits{}},
	{StateRecreate, traits{}},
	{StateInSync, traits{isApplied: true}},
	{StateDrifted, traits{isApplied: true}},
	{StateStale, traits{isApplied: true, isLeftAlone: true}},
	{StateConflict, traits{needsPerson: true}},
	{StateContested, traits{needsPerson: true}},
	{StatePaused, traits{isLeftAlone: true}},
	{StateUnwanted, traits{}},
	{StateSuperseded, traits{}},
	{StateLeftover, traits{}},
	{StateDelete, traits{}},
	{StateDeleteFirst, traits{}},
	{StateRelease, traits{}},
	{StateBeforeRunning, traits{}},
	{StateBeforeFinished, traits{}},
	{StateBeforeFailed, traits{needsPerson: true}},
	{StateBeforeTimedOut, traits{needsPerson: true}},
}

// States lists every state.
func States() (list []State) {
	for _, s := range states {
		list = append(list, s.state)
	}
	return list
}

func (s State) traits() traits {
	for i := range states {
		if states[i].state == s {
			return states[i].traits
		}
	}
	return traits{}
}

// IsApplied reports whether an existing object in this state is as it was applied, or differs where nothing is written
// for that.
func (s State) IsApplied() bool { return s.traits().isApplied }

// IsLeftAlone reports whether an existing object in this state does not get the present document, for as long as the
// state lasts. It gets a finalizer or an owner mark nevertheless, where its deletion would lose what is to be kept.
func (s State) IsLeftAlone() bool { return s.traits().isLeftAlone }

// NeedsPerson reports whether nothing goes on before a person acts: Ready is False and Stalled True, and an event and a
// line of the log say so once.
func (s State) NeedsPerson() bool {
	return s.traits().needsPerson
}

// Action is the one request (or pair of requests) that an Outcome asks for.
type Action string

// The actions.
const (
	// ActionNone asks for nothing.
	ActionNone Action = ""
	// ActionCreate is the create-only apply: it fails where any object has the name.
	ActionCreate Action = "Create"
	// ActionApply is the apply that carries the live object's uid.
	ActionApply Action = "Apply"
	// ActionDelete deletes by uid.
	ActionDelete Action = "Delete"
	// ActionRelease takes our marks off and leaves the object.
	ActionRelease Action = "Release"
	// ActionReplaceMarks replaces the previous marks of the object by the current ones, and changes nothing else.
	ActionReplaceMarks Action = "ReplaceMarks"
	// ActionMarkOwner puts the owner annotation in the place of the owner reference, and changes nothing else.
	ActionMarkOwner Action = "MarkOwner"
	// ActionCompare makes a dry-run apply to learn whether a difference is drift or the API server's own normalization;
	// the answer comes back as Verdict.SameByDryRun.
	ActionCompare Action = "Compare"
	// ActionRecord writes what is reported of deletion.before into the upstream's status, before anything goes on.
	ActionRecord Action = "Record"
	// ActionFree takes our finalizer off the object of deletion.before.
	ActionFree Action = "Free"
)

// Outcome is the decision on one live or desired object.
type Outcome struct {
	// Downstream is the index of the downstream in the config; BeforeIndex for the object of deletion.before.
	Downstream int
	// Object is the index of the object in Desired.Objects. An object that is at no target has that of the first object of
	// its downstream.
	Object int
	State  State
	Action Action
	// Message says why, for people. It holds nothing that changes from one reconciliation to the next.
	Message string
	// Target is where the object is or shall be.
	Target Ref
	// UID is the object that Apply, Delete and Release are about; empty for Create.
	UID types.UID
	// Live is that object as it was seen; nil if none is known.
	Live *drift.Live
	// Theirs is true if Live is not ours, or not known to be: it may be neither reported nor recorded as ours.
	Theirs bool
	// ValuesFrom are objects that this one replaces: it takes over their generated values, those of the first one that has
	// them.
	ValuesFrom []*drift.Live
	// LostValues says which values of a Secret are lost: generated ones that are made again though the upstream had them,
	// and those that the config drops; empty for none.
	LostValues string
	// Guessed means that the object at no target may be of another downstream of its kind.
	Guessed bool
	// GoesLater is true if the object is deleted or released once nothing that comes after it needs it.
	GoesLater bool
	// RequeueAfter asks for another reconciliation after this time; zero: only when something changes.
	RequeueAfter time.Duration
	// ReplacesPrevious is true if Live still uses names from conventions.previous: one update should be enough.
	ReplacesPrevious bool
	// Compares is true for an update that is only compared with a new object: it has the desired state.
	Compares bool
	// Finished is true if the object had done its work and must not be made again, Failed where it had done it badly.
	Finished, Failed bool
	// Earlier is the record of an object that an earlier config's deletion.before has made; else nil. Failed is true if
	// only a person can have the deletion continue.
	Earlier *status.Recorded
}

// Ref is where an object is. Namespace is empty for a cluster-scoped one.
type Ref struct {
	Namespace string
	Name      string
}

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Compare orders places by namespace and name.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name))
}

// Decision is what is to be done about one upstream.
type Decision struct {
	// Outcomes are about the objects of Desired, in order.
	Outcomes []Outcome
	// Leftovers are objects of ours that are at no target (any more).
	Leftovers []Outcome
	// Kept are forgotten objects that are released first, where the upstream is being deleted: the garbage collector would
	// delete them with one that stays.
	Kept []ForgottenObject
	// Finalizer says whether the upstream must have the config's finalizer.
	Finalizer FinalizerAction
	// Before is about the object of deletion.before; nil if there is none or the upstream is not being deleted.
	Before *Outcome
	// Waits is true if the upstream stays until what is deleted is gone.
	Waits bool
	// Awaited is a forgotten object for which the upstream waits; nil for none.
	Awaited *ForgottenObject
	// Cascade is what the deletion of the upstream asks for.
	Cascade Cascade
	// WaitsForBefore is true while the downstreams have to wait for Before.
	WaitsForBefore bool
}

// FinalizerAction says what is to happen to the config's finalizer on the upstream.
type FinalizerAction int

// What is to happen to the finalizer.
const (
	// FinalizerLeave: nothing to do.
	FinalizerLeave FinalizerAction = iota
	// FinalizerAdd: add it before anything is made that needs it.
	FinalizerAdd
	// FinalizerRemove: nothing that needs it exists any more.
	FinalizerRemove
	// FinalizerSwap: the upstream has the previous finalizer; the current one replaces it.
	FinalizerSwap
)

// Pending reports whether any outcome asks for an action.
func (d *Decision) Pending() bool {
	for _, o := range append(d.Outcomes[:len(d.Outcomes):len(d.Outcomes)], d.Leftovers...) {
		if o.Action != ActionNone {
			return true
		}
	}
	return d.Finalizer != FinalizerLeave
}
