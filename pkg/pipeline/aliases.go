package pipeline

import (
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// GeneratedField is operator.GeneratedField.
type GeneratedField = operator.GeneratedField

// The name and the index of deletion.before among the downstreams, as pkg/operator has them.
const (
	BeforeName  = operator.BeforeName
	BeforeIndex = operator.BeforeIndex
)

// What is known of deletion.before, and how a deletion goes on, as pkg/operator has them.
type (
	// BeforeFacts is operator.BeforeFacts.
	BeforeFacts = operator.BeforeFacts
	// Progress is operator.Progress.
	Progress = operator.Progress
	// Cascade is operator.Cascade.
	Cascade = operator.Cascade
)

// The values of Cascade.
const (
	CascadeConfig     = operator.CascadeConfig
	CascadeForeground = operator.CascadeForeground
	CascadeOrphan     = operator.CascadeOrphan
)

// What goes into a decision and what a reconciliation says of it, as pkg/operator and its packages have them.
type (
	// Input is operator.Input.
	Input = operator.Input
	// Owned is operator.Owned.
	Owned = operator.Owned
	// Facts is operator.Facts.
	Facts = operator.Facts
	// Verdict is operator.Verdict.
	Verdict = operator.Verdict
	// Desired is operator.Desired.
	Desired = operator.Desired
	// DesiredObject is operator.DesiredObject.
	DesiredObject = operator.DesiredObject
	// ForgottenObject is operator.ForgottenObject.
	ForgottenObject = operator.ForgottenObject
	// Marks is marks.Marks.
	Marks = marks.Marks
	// Failure is operator.Failure.
	Failure = operator.Failure
	// Result is operator.Result.
	Result = operator.Result
	// RefusedFields is report.RefusedFields.
	RefusedFields = report.RefusedFields
	// Report is report.Report.
	Report = report.Report
	// RowState is report.RowState.
	RowState = report.RowState
	// SiblingRead is operator.SiblingRead.
	SiblingRead = operator.SiblingRead
	// State is operator.State.
	State = operator.State
)

// The values of State.
const (
	StateInvalid        = operator.StateInvalid
	StateRenderFailed   = operator.StateRenderFailed
	StateWaiting        = operator.StateWaiting
	StateCreate         = operator.StateCreate
	StateUpdate         = operator.StateUpdate
	StateRepair         = operator.StateRepair
	StateRecreate       = operator.StateRecreate
	StateInSync         = operator.StateInSync
	StateDrifted        = operator.StateDrifted
	StateStale          = operator.StateStale
	StateConflict       = operator.StateConflict
	StateContested      = operator.StateContested
	StatePaused         = operator.StatePaused
	StateUnwanted       = operator.StateUnwanted
	StateSuperseded     = operator.StateSuperseded
	StateLeftover       = operator.StateLeftover
	StateDelete         = operator.StateDelete
	StateDeleteFirst    = operator.StateDeleteFirst
	StateRelease        = operator.StateRelease
	StateBeforeRunning  = operator.StateBeforeRunning
	StateBeforeFinished = operator.StateBeforeFinished
	StateBeforeFailed   = operator.StateBeforeFailed
	StateBeforeTimedOut = operator.StateBeforeTimedOut
)

// Action is operator.Action.
type Action = operator.Action

// The values of Action.
const (
	ActionNone         = operator.ActionNone
	ActionCreate       = operator.ActionCreate
	ActionApply        = operator.ActionApply
	ActionDelete       = operator.ActionDelete
	ActionRelease      = operator.ActionRelease
	ActionReplaceMarks = operator.ActionReplaceMarks
	ActionMarkOwner    = operator.ActionMarkOwner
	ActionCompare      = operator.ActionCompare
	ActionRecord       = operator.ActionRecord
	ActionFree         = operator.ActionFree
)

// What is decided, as pkg/operator has it.
type (
	// Outcome is operator.Outcome.
	Outcome = operator.Outcome
	// Ref is operator.Ref.
	Ref = operator.Ref
	// Decision is operator.Decision.
	Decision = operator.Decision
	// FinalizerAction is operator.FinalizerAction.
	FinalizerAction = operator.FinalizerAction
)

// The values of FinalizerAction.
const (
	FinalizerLeave  = operator.FinalizerLeave
	FinalizerAdd    = operator.FinalizerAdd
	FinalizerRemove = operator.FinalizerRemove
	FinalizerSwap   = operator.FinalizerSwap
)

// OtherObject is operator.OtherObject.
type OtherObject = operator.OtherObject
