package reconcile

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// comparison is what an apply would change of an object, found without one.
type comparison struct {
	key  comparisonKey
	text string
}

// comparisonKey is what a comparison depends on. If the kind counts generations, a change of its status needs no new one.
type comparisonKey struct {
	uid           types.UID
	version, hash string
}

func comparisonKeyOf(live *drift.Live, hash string) comparisonKey {
	version := live.ResourceVersion
	if live.Generation > 0 {
		version = "generation " + strconv.FormatInt(live.Generation, 10)
	}
	return comparisonKey{live.UID, version, hash}
}

// textFor returns what is known about the differences, if the comparison is current.
func (c comparison) textFor(live *drift.Live, hash string) string {
	if c.key != comparisonKeyOf(live, hash) {
		return ""
	}
	return c.text
}

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
	t, view := &r.record.objects[o.Object].target, &r.Pipeline.Downstreams[i].View
	question := comparisonKeyOf(o.Live, in.Desired.Objects[o.Object].Hash)
	if t.unusual.get().compared.key == question {
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
	t.unusual.edit().compared = comparison{key: question, text: marks.WouldChange(r.Pipeline.Settings, r.upstream.GetUID(), i, doc, obj, taken)}
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
		if lines = append(lines, line); !slices.Contains(r.record.unusual.get().heldByObserve, line) {
			r.Log.Info("mode Observe: action not carried out", "upstream", r.ref.String(), "downstream", name,
				"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
		}
	}
	r.record.unusual.set(len(lines) > 0, func(u *unusual) { u.heldByObserve = lines })
}
