package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// act carries a decision out: the finalizer before what needs it, then each downstream, then what is left over. It
// tells whether anything was done, so that deciding again may come to something new. A downstream that failed is not
// tried again in this reconciliation.
func (l *reconciliation) act(ctx context.Context, d *pipeline.Decision, in pipeline.Input) bool {
	if l.Pipeline.Observing() {
		return l.observe(ctx, d, in)
	}
	if d.Finalizer == pipeline.FinalizerAdd && !l.addFinalizer(ctx) || d.Finalizer == pipeline.FinalizerSwap && !l.swapFinalizer(ctx) {
		return false
	}
	acted := d.Finalizer == pipeline.FinalizerAdd || d.Finalizer == pipeline.FinalizerSwap
	for _, o := range slices.Concat(d.Outcomes, d.Leftovers) {
		if o.Action != pipeline.ActionNone && l.failures[o.Downstream] == nil {
			acted = l.carryOut(ctx, o, in) || acted
		}
	}
	if d.Finalizer == pipeline.FinalizerRemove && len(l.failures) == 0 {
		acted = l.retireFinalizer(ctx, in) || acted
	}
	return acted
}

// carryOut makes the requests of one outcome. It returns false where they failed.
func (l *reconciliation) carryOut(ctx context.Context, o pipeline.Outcome, in pipeline.Input) bool {
	countOutcome(l.Name, l.Pipeline.Downstreams[o.Downstream].Name, string(o.State))
	l.Log.V(1).Info("acting", "upstream", l.ref.String(), "downstream", l.Pipeline.Downstreams[o.Downstream].Name,
		"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
	var err error
	switch o.Action {
	case pipeline.ActionCreate:
		err = l.create(ctx, o, in)
	case pipeline.ActionApply:
		err = l.apply(ctx, o, in)
	case pipeline.ActionDelete:
		err = l.remove(ctx, o)
	case pipeline.ActionRelease:
		err = l.release(ctx, o)
	case pipeline.ActionReplaceMarks:
		err = l.replaceMarks(ctx, o, in)
	case pipeline.ActionCompare:
		err = l.compareByDryRun(ctx, o)
	}
	if err != nil {
		l.fail(o, err)
		return false
	}
	return true
}

// fail notes a failed action. It waits; it takes nothing away.
func (l *reconciliation) fail(o pipeline.Outcome, err error) {
	f := classify(l.Pipeline.Downstreams[o.Downstream], err)
	name := l.Pipeline.Downstreams[o.Downstream].Name
	l.failures[o.Downstream] = &pipeline.Failure{Reason: f.Reason, Message: f.Message}
	if f.Reason == apply.ReasonSchemaMismatch && l.Pipeline.Downstreams[o.Downstream].Kind.IsCustom() {
		l.Host.RecheckKinds()
	}
	l.atLeast = max(l.atLeast, f.RetryAfter)
	CountFailure(l.Name, name, f.Reason)
	l.Log.Info("an action failed and is tried again", "upstream", l.ref.String(), "downstream", name,
		"action", string(o.Action), "target", o.Target.String(), "reason", f.Reason, "message", f.Message)
}

// create makes what does not exist. Where something does after all, it is looked at: an object that lost the labels
// that the watch selects by is still ours by its uid; any other is decided upon as it is.
func (l *reconciliation) create(ctx context.Context, o pipeline.Outcome, in pipeline.Input) error {
	i := o.Downstream
	doc, err := l.document(in.Desired, i, nil)
	if err != nil {
		return err
	}
	if !in.Desired.Downstreams[i].Reference || l.Pipeline.HoldsDeletion() {
		l.record.expect(madeAt{i, o.Target}) // whatever the answer, or the lack of one
	}
	resp, err := l.client.Create(ctx, l.target(i, o.Target), doc)
	if errors.Is(err, apply.ErrExists) {
		return l.resolveExisting(ctx, o, doc)
	}
	if err != nil {
		if !unclear(err) {
			l.record.confirm(func(m madeAt) bool { return m == madeAt{i, o.Target} })
		}
		return err
	}
	l.eventCreated(o)
	return l.applied(ctx, o, in, resp, doc)
}

// resolveExisting reads the object that a create found in its way, so that the next round decides upon it. Where the recorded uid
// is one that this process knows for its own, only the labels were stripped: it is applied without a read.
func (l *reconciliation) resolveExisting(ctx context.Context, o pipeline.Outcome, doc map[string]any) error {
	i := o.Downstream
	t := l.target(i, o.Target)
	rec := recordedAs(l.recorded(), l.Pipeline.Downstreams[i].Name)
	if rec != nil && rec.UID != "" && rec.UID == l.record.targets[i].uid && rec.Namespace == o.Target.Namespace && rec.ObjectName == o.Target.Name && l.appliesBlindly(i) {
		resp, err := l.client.Apply(ctx, t, rec.UID, doc)
		switch {
		case err == nil:
			l.repaired(o, nil, resp)
			l.wrote(i, l.record.desired.Downstreams[i].Hash)
			return l.rememberResponse(i, resp)
		case !errors.Is(err, apply.ErrReplaced) && !errors.Is(err, apply.ErrGone):
			return err
		}
	}
	live, err := l.client.Get(ctx, t)
	if err != nil {
		return err // also where it has just gone: that is tried again like any other failure
	}
	if err := l.rememberResponse(i, live); err != nil {
		return err
	}
	l.record.confirm(func(m madeAt) bool {
		return m == madeAt{i, o.Target} && !l.record.freshlyOurs(i, l.upstream.GetUID())
	})
	return nil
}

// appliesBlindly tells whether nothing of an object of downstream i need be known for an apply.
func (l *reconciliation) appliesBlindly(i int) bool {
	d := l.Pipeline.Downstreams[i]
	return len(d.Config.Drift.InitialFields) == 0 && d.Config.UpdatePolicy != config.UpdateCreateOnly && len(d.View.TakeoverManagers()) == 0
}

// unclear tells of a failed request that it may have been carried out all the same.
func unclear(err error) bool {
	switch apply.Classify(err).Reason {
	case apply.ReasonUnavailable, apply.ReasonInternalError, apply.ReasonCanceled, apply.ReasonUnknown:
		return true
	}
	return false
}

// rememberResponse remembers an object as the API server returned it.
func (l *reconciliation) rememberResponse(i int, obj *unstructured.Unstructured) error {
	live, err := l.Pipeline.Downstreams[i].View.Live(obj)
	if err != nil {
		return err
	}
	l.record.remember(i, live, l.now)
	return nil
}

// apply brings an object that stands to what is wanted.
func (l *reconciliation) apply(ctx context.Context, o pipeline.Outcome, in pipeline.Input) error {
	i := o.Downstream
	o, taken, err := l.takeOverFields(ctx, o)
	if err != nil {
		return err
	}
	doc, err := l.document(in.Desired, i, o.Live)
	if err != nil {
		return err
	}
	before, err := l.before(ctx, o)
	if err != nil {
		return err
	}
	version := ""
	if pipeline.SendsInitial(o.Live) {
		version = o.Live.ResourceVersion // the value is only right as long as nobody has taken the field over
	}
	resp, err := l.client.ApplyAt(ctx, l.target(i, o.Target), o.UID, version, doc)
	resp, err = l.afterTakeOver(ctx, o, taken, doc, resp, err)
	switch {
	case errors.Is(err, apply.ErrGone):
		l.record.forgetObject(o.UID, l.now)
		return nil
	case errors.Is(err, apply.ErrReplaced):
		l.record.forgetObject(o.UID, l.now)
		return l.resolveExisting(ctx, o, doc)
	case errors.Is(err, apply.ErrConflict) && version != "":
		live, err := l.client.Get(ctx, l.target(i, o.Target))
		if err != nil {
			return err
		}
		return l.rememberResponse(i, live)
	case err != nil:
		return l.refused(ctx, o, doc, in, err)
	}
	l.after(o, before, resp)
	l.repaired(o, o.Live, resp)
	return l.applied(ctx, o, in, resp, doc)
}

// applied takes in what an apply returned: the live object, the baseline where the API server spells things its own
// way, and keys that others added where none may be.
func (l *reconciliation) applied(ctx context.Context, o pipeline.Outcome, in pipeline.Input, resp *unstructured.Unstructured, doc map[string]any) error {
	i := o.Downstream
	d := l.Pipeline.Downstreams[i]
	live, err := d.View.Live(resp)
	if err != nil {
		return err
	}
	if extras := l.extras(i, live, resp, doc, o.State == pipeline.StateCreate); len(extras) > 0 {
		if resp, err = l.client.Null(ctx, l.target(i, o.Target), live.UID, live.ResourceVersion, extras); err != nil {
			return err
		}
		if live, err = d.View.Live(resp); err != nil {
			return err
		}
	}
	l.record.remember(i, live, l.now)
	t := &l.record.targets[i]
	if t.uid != live.UID {
		*t = target{uid: live.UID, contest: t.contest}
	}
	t.at = o.Target
	l.wrote(i, in.Desired.Downstreams[i].Hash)
	if o.State == pipeline.StateCreate {
		l.removals.forget(madeAt{i, o.Target})
	}
	if live.Hash != in.Desired.Downstreams[i].Hash {
		t.explained = fmt.Sprintf("admission changes %s, which has the hash: exempt it", l.Pipeline.HashKey())
	}
	var spelled *drift.Sum
	if live.P != in.Desired.Downstreams[i].Sum {
		sum := live.P
		spelled = &sum
	}
	rec := recordedAs(l.recorded(), d.Name)
	l.record.setBaseline(i, live.UID, spelled, rec != nil && rec.Baseline != "")
	return nil
}

// wrote counts a write to what downstream i makes, for the desired state with that hash; "" where there is none, after a deletion.
func (l *reconciliation) wrote(i int, hash string) {
	l.record.targets[i].contest.write(l.record.asked, hash, l.spacing(), l.now)
}

// repaired tells of a repair that had something to repair: an apply that changed nothing was no drift.
func (l *reconciliation) repaired(o pipeline.Outcome, before *drift.Live, resp *unstructured.Unstructured) {
	if o.State == pipeline.StateUpdate || (before != nil && before.ResourceVersion == resp.GetResourceVersion()) {
		if o.State == pipeline.StateUpdate {
			l.eventUpdated(o)
		}
		return
	}
	t := &l.record.targets[o.Downstream]
	if t.uid != resp.GetUID() {
		*t = target{uid: resp.GetUID(), explained: t.explained, contest: t.contest}
	}
	t.at = o.Target
	countDrift(l.Name, l.Pipeline.Downstreams[o.Downstream].Name)
	l.eventRepaired(o)
}

// before reads the object ahead of an apply where that is worth a request: to name who changed what, where events are
// wanted or a writer has come back, and to notice fields that stay because somebody else owns them too.
func (l *reconciliation) before(ctx context.Context, o pipeline.Outcome) (*unstructured.Unstructured, error) {
	again := l.record.targets[o.Downstream].contest.unsettled > 0
	explain := o.State == pipeline.StateRepair && (l.Pipeline.Config.Events != config.EventsNone || again)
	shared := o.State == pipeline.StateUpdate && o.Live.CoOwned
	if !explain && !shared {
		return nil, nil
	}
	live, err := l.client.Get(ctx, l.target(o.Downstream, o.Target))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	return live, err
}

// after compares what was there before an apply with what the API server made of it: comparing with the document itself
// would call the server's own spelling a change.
func (l *reconciliation) after(o pipeline.Outcome, before, resp *unstructured.Unstructured) {
	if before == nil {
		return
	}
	manager := l.Pipeline.Config.Conventions.FieldManager
	if o.State == pipeline.StateUpdate {
		l.reportLost(o, drift.Lost(before, resp, manager))
		return
	}
	applied, _ := drift.Project(resp, manager)
	l.record.targets[o.Downstream].explained = drift.Explain(drift.Changed(applied, before, &l.Pipeline.Downstreams[o.Downstream].View))
}

// remove deletes an object of ours, by uid: another one that has taken its name is left alone.
func (l *reconciliation) remove(ctx context.Context, o pipeline.Outcome) error {
	err := l.client.Delete(ctx, l.target(o.Downstream, o.Target), o.UID, l.propagation())
	if err != nil && !errors.Is(err, apply.ErrReplaced) {
		return err
	}
	l.eventDeleted(o)
	l.letGo(o)
	if t := &l.record.targets[o.Downstream]; t.uid == o.UID {
		t.uid = "" // that it is missed from now on is nobody's doing but ours
		l.wrote(o.Downstream, "")
	}
	return nil
}

// release takes our marks off an object that shall stay.
func (l *reconciliation) release(ctx context.Context, o pipeline.Outcome) error {
	t := l.target(o.Downstream, o.Target)
	live, err := l.client.Get(ctx, t)
	if errors.Is(err, apply.ErrGone) || (err == nil && live.GetUID() != o.UID) {
		l.record.forgetObject(o.UID, l.now)
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.client.Release(ctx, t, live, apply.Marks(l.Pipeline.Marks(l.upstream.GetUID(), o.Downstream))); err != nil {
		return err
	}
	l.eventReleased(o)
	l.letGo(o)
	return nil
}

// forgetObject takes note that an object was deleted or released, and that this place was.
func (l *reconciliation) letGo(o pipeline.Outcome) {
	l.record.forgetObject(o.UID, l.now)
	l.removals.write(madeAt{o.Downstream, o.Target}, l.spacing(), l.now)
}

// compareByDryRun asks by a dry run whether an apply would change anything, and if so, who changed what.
func (l *reconciliation) compareByDryRun(ctx context.Context, o pipeline.Outcome) error {
	i := o.Downstream
	doc, err := l.document(l.record.desired, i, o.Live)
	if err != nil {
		return err
	}
	resp, err := l.client.DryRunApply(ctx, l.target(i, o.Target), o.UID, doc)
	if err != nil {
		return err
	}
	would, err := l.Pipeline.Downstreams[i].View.Live(resp)
	if err != nil {
		return err
	}
	same := would.P == o.Live.P && would.Hash == o.Live.Hash && !o.Live.Extra
	t := &l.record.targets[i]
	t.dryRunAnswer = &dryRunAnswer{dryRunQuestionOf(o.Live, l.record.desired.Downstreams[i].Hash), same}
	if same {
		return nil
	}
	countDrift(l.Name, l.Pipeline.Downstreams[i].Name)
	if live, err := l.client.Get(ctx, l.target(i, o.Target)); err == nil {
		applied, _ := drift.Project(resp, l.Pipeline.Config.Conventions.FieldManager)
		t.explained = drift.Explain(drift.Changed(applied, live, &l.Pipeline.Downstreams[i].View))
	}
	l.eventDrifted(o, t.explained)
	return nil
}
