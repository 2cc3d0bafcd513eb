package rules

import (
	"context"
	"time"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Limits of what evaluating may cost, in CEL's units; the API server has the same ones.
const (
	// CostPerCall is the most that one evaluation may cost, about a tenth of a second.
	CostPerCall = celconfig.PerCallLimit
	// CostPerObject is the most that all evaluations for one object may cost together.
	CostPerObject = celconfig.RuntimeCELCostBudget
)

// Budget limits the evaluations that one pass over one object makes, in cost and in time. It is not safe for concurrent
// use. A nil *Budget limits each evaluation for itself.
type Budget struct {
	// ctx is kept, against custom, because a Budget lives exactly as long as the call whose context it is.
	ctx  context.Context
	left uint64
	// until is when evaluations with loops end: the library takes time in proportion to the square of a list's length to
	// add up its cost.
	until time.Time
}

// maxTime is how long the evaluations for one object may take together, on a machine that has other things to do.
const maxTime = 5 * time.Second

// NewBudget returns a Budget of CostPerObject. Evaluations are interrupted when the context is done.
func NewBudget(ctx context.Context) *Budget {
	return &Budget{ctx: ctx, left: CostPerObject, until: time.Now().Add(maxTime)}
}

// Left returns the cost that is left.
func (b *Budget) Left() uint64 { return b.left }

// spend takes the cost of an evaluation and reports whether there was as much.
func (b *Budget) spend(cost uint64) bool {
	if cost > b.left {
		b.left = 0
		return false
	}
	b.left -= cost
	return true
}
