package attempt

import (
	"context"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// observe replaces act in mode Observe: it logs what would be done, and reads what would be changed, to name the fields. It
// reports whether that brought anything new to decide on.
func (r *Attempt) observe(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	news := false
	for _, o := range d.Outcomes {
		if o.Action == operator.ActionApply && r.Failures[o.Object] == nil {
			news = r.Actor(in).Compare(ctx, o) || news
		}
	}
	if !news {
		r.logHeldByObserve(d)
	}
	return news
}

// logHeldByObserve logs what would be done, once for each change of it.
func (r *Attempt) logHeldByObserve(d *operator.Decision) {
	var lines []string
	for _, o := range append(d.Outcomes[:len(d.Outcomes):len(d.Outcomes)], d.Leftovers...) {
		if o.Action == operator.ActionNone {
			continue
		}
		name := r.Pipeline.Downstreams[o.Downstream].Name
		line := strings.Join([]string{name, string(o.Action), o.Target.String(), o.Message}, " ")
		if lines = append(lines, line); !slices.Contains(r.Memory.Notes.Get().HeldByObserve, line) {
			r.Log.Info("mode Observe: action not carried out", "upstream", r.Ref.String(), "downstream", name,
				"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
		}
	}
	r.Memory.Notes.Set(len(lines) > 0, func(n *memory.Notes) { n.HeldByObserve = lines })
}
