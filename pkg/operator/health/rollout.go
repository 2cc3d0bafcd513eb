package health

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Halting names the first expression of rollout.haltWhen that is true for an upstream, or gives an error: what is to
// stop a rollout must not be off because of a typo. It is empty for none.
func (c *Checks) Halting(
	ctx context.Context, upstream *unstructured.Unstructured, in desired.Inputs, results []operator.Result,
) string {
	if len(c.Halts) == 0 {
		return ""
	}
	vars, budget := c.VarsOf(upstream, in), rules.NewBudget(ctx)
	vars.Downstreams = c.liveByName(results)
	for _, r := range c.Halts {
		switch v, err := r.Program.Eval(vars, budget); {
		case err != nil:
			return r.Path + " gives an error: " + redact.Hide(r.HidesValues, err).Error()
		case v == true:
			return r.Path + ": " + r.Message
		}
	}
	return ""
}

// lastInOrder sorts behind every text that an expression gives.
const lastInOrder = "\U0010ffff"

// OrderOf is the text by which an upstream is sorted in a rollout. Where rollout.order gives an error, it comes last.
func (c *Checks) OrderOf(ctx context.Context, upstream *unstructured.Unstructured) (string, error) {
	if c.RolloutOrder == nil {
		return "", nil
	}
	v, err := c.RolloutOrder.Eval(c.VarsOf(upstream, desired.Inputs{}), rules.NewBudget(ctx))
	if err != nil {
		return lastInOrder, err
	}
	text, _ := v.(string)
	return text, nil
}
