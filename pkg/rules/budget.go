package rules

import (
	"context"
	"errors"
	"fmt"
	"time"

	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/corollary-dev/corollary/pkg/rules/cost"
)

// Limits of the cost of evaluations, in units of CEL; the API server has the same ones.
const (
	// CostPerCall limits the cost of one evaluation, about a tenth of a second.
	CostPerCall = cost.PerCall
	// CostPerObject limits the total cost of all evaluations for one object.
	CostPerObject = celconfig.RuntimeCELCostBudget
)

// Budget limits the evaluations for one object, in cost and in time. It is not safe for concurrent use. A nil *Budget
// limits each evaluation separately.
type Budget struct {
	// ctx is a field, against custom, because a Budget exists exactly as long as the call whose context it is.
	ctx  context.Context
	left uint64
	// until is the deadline of evaluations with loops: the library needs time quadratic in the length of a list to compute
	// the cost.
	until   time.Time
	expired bool
}

var tooLong = fmt.Sprintf("it takes longer than %s: make it look at less", MaxTime)

// ErrTime means that an evaluation takes too long. It says as much about the machine as about the object: a retry may
// succeed.
var ErrTime = errors.New("evaluating takes too long")

// MaxTime limits the time of all evaluations for one object, on a busy machine. Only tests change it, before anything
// is evaluated.
var MaxTime = 5 * time.Second

// NewBudget returns a Budget of CostPerObject. Evaluations end when the context is done.
func NewBudget(ctx context.Context) *Budget {
	return &Budget{ctx: ctx, left: CostPerObject, until: time.Now().Add(MaxTime)}
}

// Left returns the remaining cost.
func (b *Budget) Left() uint64 { return b.left }

// Expired reports whether an evaluation ended with ErrTime. Whoever uses a default in place of its result must ask
// again later.
func (b *Budget) Expired() bool { return b.expired }

// spend subtracts the cost of an evaluation and reports whether enough was left.
func (b *Budget) spend(cost uint64) bool {
	if cost > b.left {
		b.left = 0
		return false
	}
	b.left -= cost
	return true
}
