package preview

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
)

// Count counts the existing objects that would be changed or deleted, and returns the decision with what it has
// learned. It writes nothing: it reads what the caches do not show, and makes a dry run of each repair, which may only
// be due to normalization by the API server.
func Count(ctx context.Context, r *attempt.Attempt, d operator.Decision) (operator.Decision, guard.Counted) {
	d = WithRecreations(ctx, r, d)
	losesValues := slices.ContainsFunc(d.Outcomes, func(o operator.Outcome) bool { return o.LostValues != "" })
	if r.Pipeline.Config.Guard.MaxChanged == "" && !losesValues { // deletions alone are counted
		return d, guard.CountOf(r.Pipeline.Settings, r.Memory.Desired(), d, r.Recorded())
	}
	supposed, assumed := operator.Decision{Outcomes: slices.Clone(d.Outcomes), Leftovers: d.Leftovers}, false
	for i := range supposed.Outcomes {
		if o := &supposed.Outcomes[i]; isDoubtful(r.Upstream.GetUID(), *o) && !wouldRepair(ctx, r, *o) {
			o.State, o.Action, assumed = operator.StateInSync, operator.ActionNone, true
		}
	}
	if assumed {
		d = decide.Decide(r.Pipeline.Settings, r.GatherCached(ctx))
	}
	return d, guard.CountOf(r.Pipeline.Settings, r.Memory.Desired(), supposed, r.Recorded())
}

// Resumed returns a paused upstream as it will be once it is resumed: then nobody counts.
func Resumed(s *operator.Settings, upstream *unstructured.Unstructured) (as *unstructured.Unstructured, paused bool) {
	if !s.Paused(upstream) {
		return upstream, false
	}
	upstream = upstream.DeepCopy()
	annotations := upstream.GetAnnotations()
	delete(annotations, s.Config.Conventions.Pause.Annotation)
	upstream.SetAnnotations(annotations)
	return upstream, true
}

// WithRecreations is a decision that knows what the caches do not show, and which updates delete their object: with
// updatePolicy Recreate, a dry run of each update shows it.
func WithRecreations(ctx context.Context, r *attempt.Attempt, d operator.Decision) operator.Decision {
	if findUncached(ctx, r, d) {
		d = decide.Decide(r.Pipeline.Settings, r.GatherCached(ctx))
	}
	var in operator.Input
	found := false
	for _, o := range d.Outcomes {
		if o.State != operator.StateUpdate {
			continue
		}
		if in.Facts == nil {
			in = r.GatherCached(ctx)
		}
		found = r.NeedsRecreation(ctx, o, in) || found
	}
	if !found {
		return d
	}
	return decide.Decide(r.Pipeline.Settings, r.GatherCached(ctx))
}

// isDoubtful reports whether a repair may turn out to change nothing. One of an object without hash or owner mark, with
// another form of hash, or without fields of our manager certainly changes something.
func isDoubtful(upstream types.UID, o operator.Outcome) bool {
	return o.State == operator.StateRepair && o.Action == operator.ActionApply &&
		o.Live.Hash != "" && !canonical.OtherForm(o.Live.Hash) && o.Live.Managed && !o.Live.NeedsTakeover &&
		marks.Marked(o.Live, upstream)
}

// wouldRepair reports whether a repair would change or remove any of our fields; true if that is unknown. The answer is
// remembered as if the repair had been made, so that one which changes nothing costs no request later.
func wouldRepair(ctx context.Context, r *attempt.Attempt, o operator.Outcome) bool {
	i, live := o.Downstream, o.Live
	t, hash := r.Memory.Object(o.Object), r.Memory.Desired().Objects[o.Object].Hash
	if b := r.PredecessorBaseline(i, live.UID); b != nil && *b == live.P && live.Hash == hash {
		t.SetDryRun(live, hash, true)
	} else if t.Verdict(live, hash).SameByDryRun == nil {
		same, err := r.Actor(operator.Input{Desired: r.Memory.Desired()}).WouldStay(ctx, o)
		if err != nil {
			r.Log.Info("the dry run failed: counting this repair, which may change nothing", "upstream", r.Ref.String(),
				"target", o.Target.String(), "error", err.Error())
			return true
		}
		t.SetDryRun(live, hash, same)
	}
	same := *t.Verdict(live, hash).SameByDryRun
	if same {
		sum := live.P
		r.Memory.SetBaseline(o.Object, live.UID, &sum, false)
	}
	return !same
}

// findUncached reads objects that the caches do not show and a create would meet. What the status records at a target
// may have lost the labels of the watch, as after a change of the config's; if the status records nothing, or another
// owner's object may be adopted, only reading the target shows it. Where deletions alone are limited, it is asked for
// what may be recreated. It reports whether any was found.
func findUncached(ctx context.Context, r *attempt.Attempt, d operator.Decision) bool {
	found, recorded, records := false, r.Recorded(), r.Pipeline.TrustsStatus()
	for k, o := range d.Outcomes {
		downstream := r.Pipeline.Downstreams[o.Downstream]
		rec, adopts := r.RecordedAs(recorded, k), downstream.Config.AdoptionPolicy == config.AdoptIfUnowned
		var uid types.UID
		switch {
		case o.State != operator.StateCreate,
			r.Pipeline.Config.Guard.MaxChanged == "" &&
				downstream.Config.UpdatePolicy != config.UpdateRecreate && o.LostValues == "":
			continue
		case rec != nil && rec.UID != "" && rec.Namespace == o.Target.Namespace && rec.ObjectName == o.Target.Name:
			uid = rec.UID
		case records && !adopts:
			continue
		}
		live, err := r.ReadLive(ctx, o.Downstream, o.Target)
		switch {
		case err != nil:
			r.Log.Info("an object that may exist cannot be read and is not counted", "upstream", r.Ref.String(), "target",
				o.Target.String(), "error", err.Error())
		case live != nil && (adopts || r.IsOwn(o.Downstream, live, uid)):
			r.Memory.Remember(k, live, r.Began)
			found = true
		case uid != "":
			r.Memory.NoteAbsent(uid, live, r.Began)
		}
	}
	return found
}
