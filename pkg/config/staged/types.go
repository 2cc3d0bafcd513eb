// Package staged has the config of a rollout: how a changed config reaches its upstreams in steps.
package staged

import "github.com/corollary-dev/corollary/pkg/config/common"

// Rollout brings a changed config to its upstreams step by step, and stops by itself where they fail. It is asked after
// guard. A new upstream, and one whose own spec changes, uses the changed config at once.
type Rollout struct {
	// Steps say how many upstreams have been moved at the end of each step, as numbers or percentages that grow. If the
	// last one is less than 100%, the rest waits for `corollary rollout promote`.
	Steps []Step `json:"steps" min:"1"`
	// Pause is how long all that was moved must have been Ready before the next step. Default: 0s.
	Pause common.Duration `json:"pause,omitempty"`
	// ProgressDeadline is how long an upstream may take to be Ready after the changed config was applied to it. Default:
	// 10m.
	ProgressDeadline common.Duration `json:"progressDeadline,omitempty"`
	// MaxFailures is how many upstreams may fail before the rollout halts. Default: 0.
	MaxFailures int `json:"maxFailures,omitempty" min:"0"`
	// Order is a CEL expression over self that gives a text: upstreams are moved in the order of these. Default:
	// namespace and name, which also decide between equal texts.
	Order string `json:"order,omitempty" holds:"cel"`
	// HaltWhen are CEL expressions over self and downstreams. An upstream for which one is true has failed.
	HaltWhen []string `json:"haltWhen,omitempty" holds:"cel"`
	// OnHalt is Hold (default): what was moved stays; or Revert: it gets the config before, if this process still has it.
	OnHalt OnHalt `json:"onHalt,omitempty"`
	// Control is where `corollary rollout` writes what a person decides: to pause, to go on, to revert.
	Control *common.Confirm `json:"control,omitempty"`
}

// Step is a number of upstreams, such as 1, or a percentage of them, such as 25%.
type Step string

// OnHalt says what becomes of the upstreams that were moved once a rollout halts.
type OnHalt string

// What becomes of them.
const (
	HaltHold   OnHalt = "Hold"
	HaltRevert OnHalt = "Revert"
)

// Mark names the annotation on downstreams that says in which rollout they were applied.
type Mark struct {
	// Annotation is a key of its own.
	Annotation string `json:"annotation" form:"key"`
}
