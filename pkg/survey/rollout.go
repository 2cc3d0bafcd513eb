package survey

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/rollout"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Rollout adds up how far the rollout of a config is: what is found of each upstream says so. A nil one is of a config
// without any.
type Rollout struct {
	survey *Survey
	of     *rollout.Rollout
}

// Steps begins to add up how far the rollout of the config is; nil if it has none.
func (v *Survey) Steps() *Rollout {
	p := v.Pipeline()
	if p.Config.Rollout == nil || v.surveyor.options.Namespace != "" { // which is not all of it
		return nil
	}
	r := &Rollout{v, rollout.New(p.Config.Rollout, v.digest, time.Now)}
	r.of.Begin()
	return r
}

// Add adds what is found of an upstream.
func (r *Rollout) Add(ctx context.Context, f *preview.Finding) {
	if r == nil || f.Upstream == nil || f.Desired == nil || !f.Selected || r.survey.Pipeline().Paused(f.Upstream) {
		return
	}
	order, _ := r.survey.Pipeline().OrderOf(ctx, f.Upstream) // run says so
	r.of.Note(f.Ref, rollout.Survey(r.survey.Pipeline().Settings, f.Upstream, f.Desired, f.Decision, time.Now()), order)
}

// End is how far the rollout is, and which upstreams wait, in their order.
func (r *Rollout) End() (p rollout.Progress, waits []operator.Ref) {
	if r == nil {
		return rollout.Progress{}, nil
	}
	r.of.Open(true)
	return r.of.Look()
}

// StepsText says which steps a rollout has left: how many upstreams are moved at the end of each, and the names of
// those of the next one. It is empty if there is none.
func (r *Rollout) StepsText(p rollout.Progress, waits []operator.Ref) string {
	if p.State == "" {
		return ""
	}
	var numbers []string
	for _, n := range rollout.Limits(r.survey.Pipeline().Config.Rollout, p.All) {
		numbers = append(numbers, fmt.Sprint(n))
	}
	text := fmt.Sprintf("%s of %d upstreams", strings.Join(numbers, ", "), p.All)
	moved := p.All - len(waits)
	var next []string
	for _, ref := range waits[:min(max(p.Limit-(moved-p.Edited), 0), len(waits))] {
		next = append(next, ref.String())
	}
	if len(next) > 0 {
		text += "; next: " + status.Few(next)
	}
	return text
}
