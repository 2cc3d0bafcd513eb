package health

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// FieldSchemas says what is known of the values of status.fields, in the config's order; nil if nothing is.
func (c *Checks) FieldSchemas() []*spec.Schema {
	list := make([]*spec.Schema, len(c.Fields))
	for i, program := range c.Fields {
		list[i] = program.Result()
	}
	return list
}

// liveByName is what expressions read as downstreams: the live object of each, or a map of them by NameOf.
func (c *Checks) liveByName(results []operator.Result) map[string]any {
	out := make(map[string]any, len(c.Downstreams))
	for _, d := range c.Downstreams {
		out[d.Name] = map[string]any{}
	}
	for _, r := range results {
		d := c.Downstreams[r.Outcome.Downstream]
		switch {
		case r.Live == nil || r.Live.Kept == nil:
		case !d.Several():
			out[d.Name] = r.Live.Kept
		default:
			out[d.Name].(map[string]any)[d.NameOf(operator.RefOf(r.Live))] = r.Live.Kept
		}
	}
	return out
}

// Report computes the upstream's status from the results of its downstreams, and what is left over of those with
// several objects. in are the inputs that w was made with; unrecorded is Input.Unrecorded; now is the transition time
// of conditions that change.
func (c *Checks) Report(
	ctx context.Context, upstream *unstructured.Unstructured, in desired.Inputs, w *operator.Desired,
	results []operator.Result, left []operator.Outcome,
	unrecorded []status.Recorded, now metav1.Time,
) report.Report {
	budget, vars := rules.NewBudget(ctx), c.VarsOf(upstream, in)
	return report.Of(c.Settings, upstream, w, results, left, unrecorded, now, report.Programs{
		Health: func(k int) status.Fact {
			return c.objectHealth(w, k, results[k].Live, in, vars, budget)
		},
		Fields: func() []report.FieldResult {
			vars.Downstreams = c.liveByName(results)
			values := make([]report.FieldResult, len(c.Fields))
			for i, program := range c.Fields {
				values[i].Value, values[i].Err = program.Eval(vars, budget)
			}
			return values
		},
		TookTooLong: budget.Expired,
	})
}
