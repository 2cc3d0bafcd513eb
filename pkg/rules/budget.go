package rules

import (
	"context"

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
}

// NewBudget returns a Budget of CostPerObject. Evaluations are interrupted when the context is done.
func NewBudget(ctx context.Context) *Budget {
	return &Budget{ctx: ctx, left: CostPerObject}
}

// Left returns the cost that is left.
func (b *Budget) Left() uint64 { return b.left }

// spend takes the cost of an evaluation and tells whether there was as much.
func (b *Budget) spend(cost uint64) bool {
	if cost > b.left {
		b.left = 0
		return false
	}
	b.left -= cost
	return true
}
