package health

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// BeforeProgress returns a function that evaluates doneWhen and failedWhen, which may read inputs.
func (c *Checks) BeforeProgress(upstream *unstructured.Unstructured, in desired.Inputs) func(live *drift.Live) operator.Progress {
	return func(live *drift.Live) operator.Progress {
		vars, budget := c.VarsOf(upstream, in), rules.NewBudget(context.Background())
		vars.Downstream = live.Kept
		if failed, err := c.Before.Failed.Eval(vars, budget); err == nil && failed == true {
			return operator.Progress{Failed: true}
		}
		done, err := c.Before.Done.Eval(vars, budget)
		return operator.Progress{Done: done == true, TookTooLong: budget.Expired(), Err: redact.Hide(c.Before.HidesValues, err)}
	}
}
