package attempt

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// CarryOut carries out a decision: first the finalizer, then each downstream, then what is left over. It reports
// whether anything was done, so that deciding again may bring something new. A downstream that failed is not tried
// again in this reconciliation.
func (r *Attempt) CarryOut(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	if r.Pipeline.Observing() {
		return r.observe(ctx, d, in)
	}
	acted := d.Finalizer == operator.FinalizerAdd || d.Finalizer == operator.FinalizerSwap
	if acted && !r.writeFinalizer(ctx, d.Finalizer) {
		return false
	}
	for _, o := range d.Outcomes {
		if o.Action != operator.ActionNone && r.Failures[o.Object] == nil && r.hasTime() {
			acted = r.do(ctx, o, in) || acted
		}
	}
	acted = r.RemoveLeftovers(ctx, d, in) || acted
	if d.Finalizer == operator.FinalizerRemove && len(r.Failures) == 0 && !r.HasFailed && !r.OutOfTime {
		acted = r.removeUnneededFinalizer(ctx, in) || acted
	}
	return acted
}

// RemoveLeftovers deletes or releases objects at no target. One of several objects that cannot be removed, or created,
// does not keep the others from being removed.
func (r *Attempt) RemoveLeftovers(ctx context.Context, d *operator.Decision, in operator.Input) (acted bool) {
	for _, o := range d.Leftovers {
		f := r.Failures[o.Object]
		if f != nil && r.Pipeline.Downstreams[o.Downstream].Several() &&
			(!f.OfRemoval || !r.backingOff[o.Object]) && !r.unremoved[o.UID] {
			f = nil
		}
		if o.Action == operator.ActionNone || f != nil || !r.hasTime() {
			continue
		}
		removed := r.do(ctx, o, in)
		if acted = removed || acted; !removed {
			r.Failures[o.Object].OfRemoval, r.unremoved[o.UID] = true, true
		}
	}
	return acted
}

// do makes the requests for one outcome. It returns false if they failed.
func (r *Attempt) do(ctx context.Context, o operator.Outcome, in operator.Input) bool {
	r.acts++
	counters.Outcome(r.Name, r.Pipeline.Downstreams[o.Downstream].Name, string(o.State))
	r.Log.V(1).Info("acting", "upstream", r.Ref.String(), "downstream", r.Pipeline.Downstreams[o.Downstream].Name,
		"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
	res := r.Perform(ctx, o, in)
	if res.Err == nil {
		return true
	}
	o.Action = res.Action
	r.fail(o, res.Err)
	saveRefused(ctx, r, o, in)
	return false
}

// fail records a failed action. It is retried later; it undoes nothing.
func (r *Attempt) fail(o operator.Outcome, err error) {
	r.failWith(o, act.Classify(err, r.Pipeline.Downstreams[o.Downstream].Words))
}

// Actor carries out what was decided from in.
func (r *Attempt) Actor(in operator.Input) *act.Actor {
	return &act.Actor{Client: r.API, Log: r.Log, Settings: r.Pipeline.Settings, Ref: r.Ref, Upstream: r.Upstream,
		In: in, Known: r.Memory.Object,
		Document: func(k int, live *drift.Live) (map[string]any, error) { return r.DocumentOf(in.Desired, k, live) },
		Cascade:  r.Cascade(), Propagation: r.propagation(), IsSharded: r.ShardOf != nil, LacksShard: r.lacksShard,
		TakeTurn: func(ctx context.Context) (bool, error) { return r.takeTurn(ctx, in.Now) }}
}

// DocumentOf is the whole document to send for downstream i; live is nil at creation.
func (r *Attempt) DocumentOf(w *operator.Desired, k int, live *drift.Live) (map[string]any, error) {
	document, err := r.Pipeline.Document(w, k, r.Upstream, r.InputsRead(), live)
	if err == nil {
		document = r.completed(k, document)
	}
	return document, err
}

// completed is a document with what only the process that sends it knows.
func (r *Attempt) completed(k int, document map[string]any) map[string]any {
	fencing := ""
	if r.Token != nil {
		fencing = r.Token()
	}
	document = marks.WithToken(r.Pipeline.Settings, document, fencing)
	document = marks.WithRollout(r.Pipeline.Settings, document, r.Mark(r.Ref))
	if r.ShardOf != nil {
		document = marks.WithShard(r.Pipeline.Settings, document, r.ShardOf(r.Upstream.GetUID()))
	}
	r.Notify(func(to Observer) { to.Rendered(k, document) })
	return document
}

// propagation is how the downstreams of an upstream are deleted.
func (r *Attempt) propagation() metav1.DeletionPropagation {
	if r.Upstream.GetDeletionTimestamp() != nil && r.Cascade() == operator.CascadeForeground {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletionPropagation(r.Pipeline.Config.Deletion.Propagation)
}

// keepTerminating keeps the generated values of objects of ours that are being deleted at their targets.
func (r *Attempt) keepTerminating(ctx context.Context, in operator.Input) {
	if r.Pipeline.Observing() {
		return
	}
	for k, f := range in.Facts {
		i := in.Desired.Objects[k].Downstream
		if f.Live == nil || !f.Live.Deleting || !r.Pipeline.Downstreams[i].HasGenerated() ||
			!marks.OwnsFor(r.Pipeline.Downstreams[i].Downstream, f.Live, r.Upstream.GetUID(), f.Trusted) {
			continue
		}
		o := r.OutcomeOf(i, operator.Ref{Namespace: f.Live.Namespace, Name: f.Live.Name})
		o.Object, o.UID, o.Live = k, f.Live.UID, f.Live
		if res := note(r, r.Actor(in).KeepGenerated(ctx, o)); res.Err != nil {
			r.fail(o, res.Err)
		}
	}
}

// saveRefused takes the owner reference off an object that deletionPolicy keeps and whose update failed.
func saveRefused(ctx context.Context, r *Attempt, o operator.Outcome, in operator.Input) {
	own := operator.Owned{Downstream: o.Downstream, Live: o.Live, Certain: true}
	if o.Action != operator.ActionApply || o.Theirs || !decide.IsCollected(r.Pipeline.Settings, in, own) {
		return
	}
	o.Action = operator.ActionMarkOwner
	if res := r.Perform(ctx, o, in); res.Err != nil { // it is tried again with the apply
		r.Log.Info("taking the owner reference off what is kept failed", "upstream", r.Ref.String(), "target",
			o.Target.String(), "error", res.Err.Error())
	}
}

// lacksShard reports whether a watch of the upstream's shard does not show an object with these labels.
func (r *Attempt) lacksShard(labels map[string]string) bool {
	key := r.Pipeline.ShardLabel()
	return r.ShardOf != nil && key != "" && labels[key] != marks.ShardLabelValue(r.ShardOf(r.Upstream.GetUID()))
}

// writeFinalizer adds the finalizer, or puts it in the place of the previous one. It returns false if that failed.
func (r *Attempt) writeFinalizer(ctx context.Context, what operator.FinalizerAction) bool {
	doing, err := r.WriteFinalizer(ctx, what)
	if err != nil {
		r.RequestFailed(doing, err)
	}
	return err == nil
}

// TakeFinalizer removes the finalizer. It returns false if that failed.
func (r *Attempt) TakeFinalizer(ctx context.Context) bool {
	err := r.RemoveFinalizer(ctx)
	if err != nil {
		r.RequestFailed("removing the finalizer", err)
	}
	return err == nil
}

// removeUnneededFinalizer removes the finalizer from an upstream that no longer needs it. Objects that the status
// records and the cache does not show are read first: the cache may lag, and without the finalizer nothing would keep
// the upstream until they are gone. What is found is left to the next round.
func (r *Attempt) removeUnneededFinalizer(ctx context.Context, in operator.Input) bool {
	known := in.Leftovers
	for k, f := range in.Facts {
		if f.Live != nil {
			known = append(known, operator.Owned{Downstream: in.Desired.Objects[k].Downstream, Live: f.Live})
		}
	}
	if r.FindUnserved(ctx); len(r.Failures) > 0 {
		return false
	}
	unseen, err := r.ReadRecorded(ctx, known)
	switch {
	case err != nil:
		r.RequestFailed("reading the object recorded in the status", err)
		return false
	case len(unseen) > 0:
		r.Unseen = append(r.Unseen, unseen...)
		return true
	}
	return r.TakeFinalizer(ctx)
}

// StartActing begins what needs an end.
func (r *Attempt) StartActing(ctx context.Context) (end func()) {
	r.begun = true
	if deadline, ok := ctx.Deadline(); ok { // the other half is for the last action and the status
		r.until = time.Now().Add(time.Until(deadline) / 2)
	}
	return func() { r.Memory.Desired().Forget() }
}

// SkipBackingOff skips the downstreams that failed and still wait for their retry.
func (r *Attempt) SkipBackingOff() {
	for k := range r.Memory.Desired().Objects {
		if t := r.Memory.Object(k); t.Failure != nil && t.Retry.Get().Wait(r.Memory.Cause(), r.Began) > 0 {
			r.Failures[k], r.backingOff[k] = t.Failure, true
		}
	}
}

// Save keeps the deletion of an upstream, of which all else is left as it is, from losing what the config keeps: guard
// holds what changes downstreams, not what saves them. It returns after how long to try again.
func (r *Attempt) Save(ctx context.Context) time.Duration {
	in := operator.Input{Upstream: r.Upstream, Desired: r.Memory.Desired(), HasFinalizer: r.HasFinalizer(),
		Leftovers:       r.WithUnseen(r.FindLeftovers(nil, r.OwnedByDownstream())),
		FinalizerSpaced: r.FinalizerSpaced()}
	d := decide.Save(r.Pipeline.Settings, in)
	if d.Finalizer == operator.FinalizerAdd && !r.writeFinalizer(ctx, d.Finalizer) {
		return r.RetryLater()
	}
	if r.RemoveLeftovers(ctx, &d, in); len(r.Failures) > 0 {
		return r.RetryLater()
	}
	return in.FinalizerSpaced
}

// observe replaces CarryOut in mode Observe: it logs what would be done, and reads what would be changed, to name the
// fields. It reports whether that brought anything new to decide on.
func (r *Attempt) observe(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	news := false
	for _, o := range d.Outcomes {
		if o.Action != operator.ActionApply || r.Failures[o.Object] != nil {
			continue
		}
		t, hash := r.Memory.Object(o.Object), in.Desired.Objects[o.Object].Hash
		if _, known := t.Compared(o.Live, hash); known {
			continue
		}
		if text, ok := r.Actor(in).Compare(ctx, o); ok {
			t.SetCompared(o.Live, hash, text)
			news = true
		}
	}
	if !news {
		logHeldByObserve(r, d)
	}
	return news
}

// logHeldByObserve logs what would be done, once for each change of it.
func logHeldByObserve(r *Attempt, d *operator.Decision) {
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
