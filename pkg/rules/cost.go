package rules

import (
	"math"

	"github.com/corollary-dev/corollary/pkg/rules/cost"
)

// MaxCost returns the largest cost of the expression for any self of at most size bytes that its schema allows, and
// what the schema leaves without a bound, sorted by path.
func (p *Program) MaxCost(size uint64) (most uint64, unbounded []cost.Bound) {
	p.scope.estimating.Lock()
	defer p.scope.estimating.Unlock()
	checked, problem := p.scope.check(p.expr)
	if problem != nil {
		return math.MaxUint64, nil // it was compiled: cannot happen
	}
	return cost.Most(p.scope.env, checked, p.scope.self, size)
}

// CallLimit is the cost of a single evaluation above which it may fail. CEL's own accounting of loops takes time
// quadratic in the number of iterations, so theirs is smaller.
func (p *Program) CallLimit() uint64 {
	if p.loops {
		return CostPerCall / 4
	}
	return CostPerCall
}
