package reconcile

import (
	"context"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// observe replaces act in mode Observe: it logs what would be done, and reads what would be changed, to name the fields. It
// reports whether that brought anything new to decide on.
func (r *reconciliation) observe(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	news := false
	for _, o := range d.Outcomes {
		if o.Action == operator.ActionApply && r.failures[o.Object] == nil {
			news = r.compare(ctx, o, in) || news
		}
	}
	if !news {
		r.logHeldByObserve(d)
	}
	return news
}

// compare finds out which fields an apply would change. Values that the API server would normalize count as changes too: only a
// dry run could tell, and mode Observe makes none.
func (r *reconciliation) compare(ctx context.Context, o operator.Outcome, in operator.Input) bool {
	i := o.Downstream
	t, view := r.record.Object(o.Object), &r.Pipeline.Downstreams[i].View
	hash := in.Desired.Objects[o.Object].Hash
	if _, known := t.Compared(o.Live, hash); known {
		return false
	}
	obj, err := r.client.Get(ctx, r.target(i, o.Target))
	if err != nil || obj.GetUID() != o.UID {
		return false // an event will follow
	}
	taken := apply.WithFieldsTakenOver(obj, r.Pipeline.Config.Conventions.FieldManager, view.TakeoverManagers())
	live, err := view.Live(taken)
	if err != nil {
		return false
	}
	doc, err := r.document(in.Desired, o.Object, live)
	if err != nil {
		return false
	}
	t.SetCompared(o.Live, hash, marks.WouldChange(r.Pipeline.Settings, r.upstream.GetUID(), i, doc, obj, taken))
	return true
}

// logHeldByObserve logs what would be done, once for each change of it.
func (r *reconciliation) logHeldByObserve(d *operator.Decision) {
	var lines []string
	for _, o := range append(d.Outcomes[:len(d.Outcomes):len(d.Outcomes)], d.Leftovers...) {
		if o.Action == operator.ActionNone {
			continue
		}
		name := r.Pipeline.Downstreams[o.Downstream].Name
		line := strings.Join([]string{name, string(o.Action), o.Target.String(), o.Message}, " ")
		if lines = append(lines, line); !slices.Contains(r.record.Notes.Get().HeldByObserve, line) {
			r.Log.Info("mode Observe: action not carried out", "upstream", r.ref.String(), "downstream", name,
				"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
		}
	}
	r.record.Notes.Set(len(lines) > 0, func(n *memory.Notes) { n.HeldByObserve = lines })
}
