package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// act carries out a decision: first the finalizer, then each downstream, then what is left over. It reports whether anything
// was done, so that deciding again may bring something new. A downstream that failed is not tried again in this reconciliation.
func (r *reconciliation) act(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	if r.Pipeline.Observing() {
		return r.observe(ctx, d, in)
	}
	acted := d.Finalizer == operator.FinalizerAdd || d.Finalizer == operator.FinalizerSwap
	if acted && !r.writeFinalizer(ctx, d.Finalizer) {
		return false
	}
	for _, o := range d.Outcomes {
		if o.Action != operator.ActionNone && r.failures[o.Object] == nil && r.hasTime() {
			acted = r.carryOut(ctx, o, in) || acted
		}
	}
	acted = r.removeLeftovers(ctx, d, in) || acted
	if d.Finalizer == operator.FinalizerRemove && len(r.failures) == 0 && !r.upstreamFailed && !r.outOfTime {
		acted = r.removeUnneededFinalizer(ctx, in) || acted
	}
	return acted
}

// writeFinalizer adds the finalizer, or puts it in the place of the previous one. It returns false if that failed.
func (r *reconciliation) writeFinalizer(ctx context.Context, what operator.FinalizerAction) bool {
	if what == operator.FinalizerSwap {
		return r.swapFinalizer(ctx)
	}
	return r.addFinalizer(ctx)
}

// removeLeftovers deletes or releases objects at no target. One of several objects that cannot be removed, or created, does not keep the
// others from being removed.
func (r *reconciliation) removeLeftovers(ctx context.Context, d *operator.Decision, in operator.Input) (acted bool) {
	for _, o := range d.Leftovers {
		f := r.failures[o.Object]
		if f != nil && r.Pipeline.Downstreams[o.Downstream].Several() && (!f.OfRemoval || !r.backingOff[o.Object]) && !r.unremoved[o.UID] {
			f = nil
		}
		if o.Action == operator.ActionNone || f != nil || !r.hasTime() {
			continue
		}
		removed := r.carryOut(ctx, o, in)
		if acted = removed || acted; !removed {
			r.failures[o.Object].OfRemoval, r.unremoved[o.UID] = true, true
		}
	}
	return acted
}

// hasTime reports whether an action may begin. One begins in each reconcile, whatever the time.
func (r *reconciliation) hasTime() bool {
	r.outOfTime = r.outOfTime || r.acts > 0 && !r.actUntil.IsZero() && time.Now().After(r.actUntil)
	return !r.outOfTime
}

// carryOut makes the requests for one outcome. It returns false if they failed.
func (r *reconciliation) carryOut(ctx context.Context, o operator.Outcome, in operator.Input) bool {
	r.acts++
	counters.Outcome(r.Name, r.Pipeline.Downstreams[o.Downstream].Name, string(o.State))
	r.Log.V(1).Info("acting", "upstream", r.ref.String(), "downstream", r.Pipeline.Downstreams[o.Downstream].Name,
		"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
	var err error
	switch o.Action {
	case operator.ActionCreate:
		err = r.create(ctx, &o, in)
	case operator.ActionApply:
		err = r.apply(ctx, o, in)
	case operator.ActionDelete:
		err = r.remove(ctx, o)
	case operator.ActionRelease:
		err = r.release(ctx, o)
	case operator.ActionReplaceMarks:
		err = r.replaceMarks(ctx, o, in)
	case operator.ActionMarkOwner:
		err = r.markOwner(ctx, o)
	case operator.ActionCompare:
		err = r.compareByDryRun(ctx, o)
	}
	if err == nil {
		return true
	}
	r.fail(o, err)
	r.saveRefused(ctx, o, in)
	return false
}

// fail records a failed action. It is retried later; it undoes nothing.
func (r *reconciliation) fail(o operator.Outcome, err error) {
	r.failWith(o, classify(r.Pipeline.Downstreams[o.Downstream], err))
}

// create creates an object. If one exists after all, it is read: an object that lost the labels of the watch is still ours by
// its uid; any other is decided on as it is. Then the outcome becomes that of an apply.
func (r *reconciliation) create(ctx context.Context, outcome *operator.Outcome, in operator.Input) error {
	o := *outcome
	i := o.Downstream
	doc, err := r.document(in.Desired, o.Object, nil)
	if err != nil {
		return err
	}
	random, err := r.generatedTexts(ctx, o, doc, nil)
	if err != nil {
		return err
	}
	doc = generated.Fill(r.Pipeline.Downstreams[i].Downstream, doc, nil, nil, random)
	if !in.Desired.Objects[o.Object].Reference || r.Pipeline.HoldsDeletion() {
		r.record.Notes.Edit().ExpectCreated(memory.At(i, o.Target)) // whatever the answer, or the lack of one
	}
	resp, err := r.client.Create(ctx, r.target(i, o.Target), doc)
	if errors.Is(err, apply.ErrExists) {
		return r.resolveExisting(ctx, outcome, doc)
	}
	if err != nil {
		if mayHaveSucceeded(err) {
			r.record.Notes.Edit().ExpectCreated(memory.At(i, o.Target))
		} else {
			r.record.ConfirmCreated(func(m memory.Place) bool { return m == memory.At(i, o.Target) })
		}
		return err
	}
	r.eventCreated(o)
	r.eventLostValues(o)
	return r.rememberApplied(ctx, o, in, resp, doc)
}

// resolveExisting reads the object that kept a create from succeeding, so that the next round decides on it. If its recorded
// uid is known to be ours, only the labels were removed: it is applied without a read. With shards, its owner marks may have been edited.
func (r *reconciliation) resolveExisting(ctx context.Context, outcome *operator.Outcome, doc map[string]any) error {
	i := outcome.Downstream
	t := r.target(i, outcome.Target)
	rec := r.recordedAs(r.recorded(), outcome.Object)
	outcome.State, outcome.Action, outcome.Message = operator.StateRepair, operator.ActionApply, "it had lost labels that the watch selects by"
	o := *outcome
	if hash := r.lastHash(o.Object, rec); r.isRecordedAt(o, rec) && r.canApplyUnread(i, hash) {
		if hash != r.record.Desired().Objects[o.Object].Hash { // the labels are part of it
			o.State, o.Message = operator.StateUpdate, decide.MessageChanged
		}
		resp, err := r.client.Apply(ctx, t, rec.UID, doc)
		switch {
		case err == nil:
			r.reportApplied(o, nil, resp)
			r.countWrite(o.Object, r.record.Desired().Objects[o.Object].Hash)
			return r.rememberResponse(o.Object, resp)
		case !errors.Is(err, apply.ErrReplaced) && !errors.Is(err, apply.ErrGone):
			return err
		}
	}
	live, err := r.client.Get(ctx, t)
	if err != nil {
		return err // also if it has just gone: that is retried like any other failure
	}
	if err := r.rememberResponse(o.Object, live); err != nil {
		return err
	}
	r.record.ConfirmCreated(func(m memory.Place) bool {
		return m == memory.At(i, o.Target) && !r.record.CreatedByUs(o.Object, r.upstream.GetUID())
	})
	return nil
}

// lastHash is the hash of what was applied last to object k of the desired state, which the status records as rec; empty if that is not known.
func (r *reconciliation) lastHash(k int, rec *status.Recorded) string {
	if rec == nil {
		return ""
	}
	if t := r.record.Object(k); t.UID == rec.UID {
		return cmp.Or(t.Contest.Get().Written, rec.Hash)
	}
	return rec.Hash
}

// isRecordedAt reports whether rec says of an object that it is where it is to be, and this process agrees.
func (r *reconciliation) isRecordedAt(o operator.Outcome, rec *status.Recorded) bool {
	return rec != nil && rec.UID != "" && rec.UID == r.record.Object(o.Object).UID && rec.Namespace == o.Target.Namespace &&
		rec.ObjectName == o.Target.Name
}

// canApplyUnread reports whether an apply of downstream i needs to know no more about the live object than the hash of what was applied last.
func (r *reconciliation) canApplyUnread(i int, hash string) bool {
	d := r.Pipeline.Downstreams[i]
	return r.Shards == nil && hash != "" && marks.IsOfFields(hash) == d.OwnsFields() && len(d.View.Initial) == 0 && d.Repairs() && len(d.View.TakeoverManagers()) == 0
}

// rememberResponse remembers an object as the API server returned it.
func (r *reconciliation) rememberResponse(k int, obj *unstructured.Unstructured) error {
	live, err := r.liveOf(r.downstream(k), obj)
	if err == nil {
		r.record.Remember(k, live, r.now)
	}
	return err
}

// liveOf views an object that a request returned: no watch may show it.
func (r *reconciliation) liveOf(d *desired.Downstream, obj *unstructured.Unstructured) (*drift.Live, error) {
	live, err := d.View.Live(obj)
	if err == nil {
		live.Unselected = !d.Selector.AsSelector().Matches(labelsOf(obj)) || r.lacksShard(labelsOf(obj))
	}
	return live, err
}

// apply updates an existing object to its desired state.
func (r *reconciliation) apply(ctx context.Context, o operator.Outcome, in operator.Input) error {
	i := o.Downstream
	before, err := r.readAhead(ctx, o) // after a takeover, all fields read as ours
	if err != nil {
		return err
	}
	o, taken, err := r.takeOverFields(ctx, o)
	if err != nil {
		return err
	}
	o, held, err := r.readGenerated(ctx, o, taken)
	if errors.Is(err, apply.ErrGone) {
		r.record.NoteGone(o.UID, r.now)
		return nil
	}
	if err != nil {
		return err
	}
	doc, err := r.document(in.Desired, o.Object, o.Live)
	if err != nil {
		return err
	}
	random, err := r.generatedTexts(ctx, o, doc, held)
	if err != nil {
		return err
	}
	doc = generated.Fill(r.Pipeline.Downstreams[i].Downstream, doc, o.Live, held, random)
	version := ""
	if d := r.Pipeline.Downstreams[i]; generated.SendsInitial(o.Live) || d.View.LacksGenerated(o.Live) || d.OwnsFields() {
		// The value is only correct until another manager takes or sets the field, and the object of others is only free for our fields
		// until another upstream marks it.
		version = o.Live.ResourceVersion
	}
	resp, err := r.applyAt(ctx, o, version, doc)
	resp, err = r.afterTakeOver(ctx, o, taken, doc, resp, err)
	switch {
	case errors.Is(err, apply.ErrGone):
		r.record.NoteGone(o.UID, r.now)
		return nil
	case errors.Is(err, apply.ErrReplaced):
		r.record.NoteGone(o.UID, r.now)
		return r.resolveExisting(ctx, &o, doc)
	case errors.Is(err, apply.ErrConflict) && version != "":
		live, err := r.client.Get(ctx, r.target(i, o.Target))
		if err != nil {
			return err
		}
		return r.rememberResponse(o.Object, live)
	case err != nil:
		return r.refused(ctx, o, doc, in, err)
	}
	r.eventLostValues(o)
	r.reportApplied(o, before, resp)
	return r.rememberApplied(ctx, o, in, resp, doc)
}

// rememberApplied remembers what an apply returned: the live object, and the baseline if the API server normalizes values. It
// also removes keys that others added to exclusive fields.
func (r *reconciliation) rememberApplied(ctx context.Context, o operator.Outcome, in operator.Input, resp *unstructured.Unstructured, doc map[string]any) error {
	i := o.Downstream
	d := r.Pipeline.Downstreams[i]
	live, err := d.View.Live(resp)
	if err != nil {
		return err
	}
	if extras := extras(r.Pipeline.Settings, i, live, resp, doc, o.State == operator.StateCreate); len(extras) > 0 {
		if resp, err = r.client.Null(ctx, r.target(i, o.Target), live.UID, live.ResourceVersion, extras); err != nil {
			return err
		}
		if live, err = d.View.Live(resp); err != nil {
			return err
		}
	}
	r.record.NoteRegained(live.UID)
	r.record.Remember(o.Object, live, r.now)
	t, w := r.record.Object(o.Object), &in.Desired.Objects[o.Object]
	t.Applied(live.UID, o.Target)
	r.countWrite(o.Object, w.Hash)
	if o.State == operator.StateCreate {
		r.removals.Forget(memory.At(i, o.Target))
	}
	if live.Hash != w.Hash {
		t.SetChangedBy(fmt.Sprintf("admission changes %s, which holds the hash: exclude it from that webhook or policy", r.Pipeline.HashKey()))
	}
	var spelled *canonical.Sum
	rewritten := ""
	if live.P != w.Sum {
		sum := live.P
		spelled, rewritten = &sum, drift.Paths(drift.Changed(doc, resp, &d.View))
	}
	isRewritten := t.SetRewritten(rewritten)
	rec := r.recordedAs(r.recorded(), o.Object)
	r.record.SetBaseline(o.Object, live.UID, spelled, rec != nil && rec.Baseline != "")
	if r.needsVerification(o, in, live, resp, doc, isRewritten) {
		return r.verify(ctx, o, in, resp, doc)
	}
	return nil
}

// countWrite counts a write to object k of the desired state, for that hash; "" after a deletion.
func (r *reconciliation) countWrite(k int, hash string) {
	r.record.Object(k).Contest.Edit().Write(r.record.Cause(), hash, r.spacing(), r.now)
	r.countItems(r.record.Desired().Objects[k].Downstream)
}

// reportApplied reports an apply to an existing object: a repair if others had changed the object, else an update. It reports nothing if
// the apply changed nothing: then there was no drift. read is the object before; nil if it was not read.
func (r *reconciliation) reportApplied(o operator.Outcome, read, resp *unstructured.Unstructured) {
	var changed []drift.Difference
	if read != nil {
		changed = r.changedFields(o, read, resp)
	}
	if o.State == operator.StateUpdate {
		r.eventUpdated(o, changed)
		return
	}
	if o.Live != nil && o.Live.ResourceVersion == resp.GetResourceVersion() {
		return
	}
	t := r.record.Object(o.Object)
	changedBy := t.Unusual.Get().ChangedBy
	t.Applied(resp.GetUID(), o.Target)
	t.SetChangedBy(changedBy)
	manager := r.Pipeline.Config.Conventions.FieldManager
	if read != nil && drift.IsOwnChange(changed, manager) {
		o.Message = "the names in conventions have changed, or the version of the upstream"
		r.eventUpdated(o, changed)
		return
	}
	if read != nil {
		t.SetChangedBy(drift.Explain(changed, manager))
	}
	counters.Drift(r.Name, r.Pipeline.Downstreams[o.Downstream].Name)
	r.eventRepaired(o, changed)
}

// readAhead reads the object before an apply if that is worth a request: to name who changed which fields, if events are wanted
// or a writer keeps reverting us, and to notice fields that stay because another manager owns them too.
func (r *reconciliation) readAhead(ctx context.Context, o operator.Outcome) (*unstructured.Unstructured, error) {
	again := r.record.Object(o.Object).Contest.Get().Unsettled > 0
	explain := o.State == operator.StateRepair && (r.Pipeline.Config.Events != config.EventsNone || again)
	shared := o.State == operator.StateUpdate && o.Live.CoOwned
	if !explain && !shared {
		return nil, nil
	}
	live, err := r.client.Get(ctx, r.target(o.Downstream, o.Target))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	return live, err
}

// changedFields compares the object before an apply with the result, not with the document: values that the API server
// normalizes are no change. It reports the fields that an update should have removed.
func (r *reconciliation) changedFields(o operator.Outcome, read, resp *unstructured.Unstructured) []drift.Difference {
	manager := r.Pipeline.Config.Conventions.FieldManager
	applied, _ := drift.Project(resp, manager)
	if o.State == operator.StateUpdate {
		r.reportLost(o, drift.LostFields(read, resp, manager))
	}
	return drift.Changed(applied, read, &r.Pipeline.Downstreams[o.Downstream].View)
}

// remove deletes an object of ours.
func (r *reconciliation) remove(ctx context.Context, o operator.Outcome) error {
	if o.State == operator.StateRecreate {
		if immutable, err := confirmImmutable(ctx, r, o); !immutable {
			return err
		}
	}
	if o.State == operator.StateRecreate && r.Pipeline.Downstreams[o.Downstream].HasGenerated() {
		if err := r.keepGenerated(ctx, o); err != nil {
			return err
		}
	}
	answer, err := deleteObject(ctx, r.client, r.target(o.Downstream, o.Target), o.UID, r.propagation())
	if err != nil {
		return err
	}
	r.eventDeleted(o)
	r.noteDeleted(o, answer)
	return nil
}

// deleteObject deletes an object by its uid. If another one has its name, it is gone.
func deleteObject(ctx context.Context, client *apply.Client, t apply.Target, uid types.UID, propagation metav1.DeletionPropagation) (apply.Deletion, error) {
	answer, err := client.Delete(ctx, t, uid, propagation)
	if errors.Is(err, apply.ErrReplaced) {
		return apply.Deletion{Gone: true}, nil
	}
	return answer, err
}

// release removes our marks from an object that is kept, and our fields from one of others, unless it is deleted with
// --cascade=orphan.
func (r *reconciliation) release(ctx context.Context, o operator.Outcome) error {
	t, d := r.target(o.Downstream, o.Target), r.Pipeline.Downstreams[o.Downstream]
	if d.OwnsFields() && r.cascade() != operator.CascadeOrphan {
		left, err := r.client.Withdraw(ctx, t, d.GVK(), o.UID)
		if err != nil {
			return notWithdrawn(o, err)
		}
		r.eventReleased(o)
		return r.noteReleased(o, left)
	}
	live, err := r.client.Get(ctx, t)
	if errors.Is(err, apply.ErrGone) || (err == nil && live.GetUID() != o.UID) {
		r.record.NoteGone(o.UID, r.now)
		return nil
	}
	if err != nil {
		return err
	}
	if live, err = r.client.Release(ctx, t, live, apply.Marks(marks.Of(r.Pipeline.Settings, r.upstream.GetUID(), o.Downstream))); err != nil {
		return err
	}
	r.eventReleased(o)
	return r.noteReleased(o, live)
}

// notWithdrawn adds to a refusal to remove our fields, as from an object that is immutable by now, what a person can do about it.
func notWithdrawn(o operator.Outcome, err error) error {
	switch apply.Classify(err).Reason {
	case apply.ReasonRejected, apply.ReasonDenied:
		return fmt.Errorf("%w; our fields of %s cannot be removed: have the change allowed, delete the object, or let the fields stay: "+
			"kubectl delete --cascade=orphan, also if the upstream is being deleted already", err, o.Target)
	}
	return err
}

// compareByDryRun asks by a dry run whether an apply would change anything, and if so, who changed which fields.
func (r *reconciliation) compareByDryRun(ctx context.Context, o operator.Outcome) error {
	i := o.Downstream
	doc, err := r.dryRunDocument(ctx, r.record.Desired(), o)
	if err != nil {
		return err
	}
	resp, err := r.client.DryRunApply(ctx, r.target(i, o.Target), o.UID, doc)
	if err != nil {
		return err
	}
	would, err := r.Pipeline.Downstreams[i].View.Live(resp)
	if err != nil {
		return err
	}
	same := would.P == o.Live.P && would.Hash == o.Live.Hash && !o.Live.Extra
	t := r.record.Object(o.Object)
	if t.SetDryRun(o.Live, r.record.Desired().Objects[o.Object].Hash, same); same {
		return nil
	}
	counters.Drift(r.Name, r.Pipeline.Downstreams[i].Name)
	if live, err := r.client.Get(ctx, r.target(i, o.Target)); err == nil {
		applied, _ := drift.Project(resp, r.Pipeline.Config.Conventions.FieldManager)
		t.SetChangedBy(drift.Explain(drift.Changed(applied, live, &r.Pipeline.Downstreams[i].View), r.Pipeline.Config.Conventions.FieldManager))
	}
	r.eventDrifted(o, t.Unusual.Get().ChangedBy)
	return nil
}
