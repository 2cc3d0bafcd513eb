package health

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// UnmetRule is a reason why an existing downstream is not ready, beyond what its kind says of itself (Live.Status).
type UnmetRule struct {
	// Rule is the path of the rule in the config, downstreams[0].ready.rules[1].rule; empty if no rule says so.
	Rule string
	// Failed says that it is a rule of ready.failed, which holds; else one of ready.rules does not.
	Failed bool
	// Message is the rule's own, or made of its text.
	Message string
}

// UnmetRules lists every rule that keeps live, which is object k of a desired state, from being ready. Conditions name the first alone. in
// are the inputs of the desired state.
func (c *Checks) UnmetRules(ctx context.Context, w *operator.Desired, k int, upstream *unstructured.Unstructured, in desired.Inputs, live *drift.Live) []UnmetRule {
	i, budget, vars := w.Objects[k].Downstream, rules.NewBudget(ctx), c.VarsOf(upstream, in)
	of := c.Rules[i]
	vars.Downstream = live.Kept
	vars.Item, _ = c.ItemAt(w, k, vars, in, budget)
	var list []UnmetRule
	for _, r := range of.Failed {
		if r.holds(vars, budget) {
			list = append(list, UnmetRule{Rule: r.Path, Failed: true, Message: r.Message})
		}
	}
	if message := unseenBy(c.Downstreams[i].Downstream, of, live); message != "" {
		list = append(list, UnmetRule{Message: message})
	}
	for _, r := range of.Ready {
		if message := r.unmet(vars, budget); message != "" {
			list = append(list, UnmetRule{Rule: r.Path, Message: message})
		}
	}
	return list
}
