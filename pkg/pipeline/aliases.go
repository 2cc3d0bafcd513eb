package pipeline

import (
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// GeneratedField is operator.GeneratedField.
type GeneratedField = operator.GeneratedField

// Moved.
const (
	BeforeName  = operator.BeforeName
	BeforeIndex = operator.BeforeIndex
)

// Moved.
type (
	BeforeFacts = operator.BeforeFacts
	Progress    = operator.Progress
	Cascade     = operator.Cascade
)

// Moved.
const (
	CascadeConfig     = operator.CascadeConfig
	CascadeForeground = operator.CascadeForeground
	CascadeOrphan     = operator.CascadeOrphan
)

// Moved.
type (
	Input           = operator.Input
	Owned           = operator.Owned
	Facts           = operator.Facts
	Verdict         = operator.Verdict
	Desired         = operator.Desired
	DesiredObject   = operator.DesiredObject
	ForgottenObject = operator.ForgottenObject
	Marks           = marks.Marks
	Failure         = operator.Failure
	Result          = operator.Result
	RefusedFields   = report.RefusedFields
	Report          = report.Report
	RowState        = report.RowState
	SiblingRead     = operator.SiblingRead
	State           = operator.State
)

// Moved.
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

// Moved.
type (
	Action = operator.Action
)

// Moved.
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

// Moved.
type (
	Outcome         = operator.Outcome
	Ref             = operator.Ref
	Decision        = operator.Decision
	FinalizerAction = operator.FinalizerAction
)

// Moved.
const (
	FinalizerLeave  = operator.FinalizerLeave
	FinalizerAdd    = operator.FinalizerAdd
	FinalizerRemove = operator.FinalizerRemove
	FinalizerSwap   = operator.FinalizerSwap
)

// Moved.
type (
	OtherObject = operator.OtherObject
)
