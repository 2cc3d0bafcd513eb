package pipeline

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Report computes the upstream's status from the results of its downstreams, and what is left over of those with several objects. in are
// the inputs that w was made with; now is the transition time of conditions that change.
func (p *Pipeline) Report(
	ctx context.Context, upstream *unstructured.Unstructured, in Inputs, w *operator.Desired, results []operator.Result, left []operator.Outcome, now metav1.Time,
) report.Report {
	budget, vars := rules.NewBudget(ctx), p.vars(upstream, in)
	return report.Of(p.Settings, upstream, w, results, left, now, report.Programs{
		Health: func(k int) status.Fact {
			d := p.Downstreams[w.Objects[k].Downstream]
			if d.readsItem {
				vars.Item, _ = p.itemAt(w, k, vars, in, budget)
			}
			return p.health(d, results[k].Live, vars, budget)
		},
		Fields: func() []report.FieldResult {
			vars.Downstreams = p.liveByName(results)
			values := make([]report.FieldResult, len(p.fields))
			for i, program := range p.fields {
				values[i].Value, values[i].Err = program.Eval(vars, budget)
			}
			return values
		},
		TookTooLong: budget.Expired,
	})
}
