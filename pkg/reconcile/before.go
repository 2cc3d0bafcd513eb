package reconcile

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// beforeMemory is what is remembered of the object of deletion.before. As with everything remembered, nothing is lost with it
// but a request: what must survive stands in the upstream's status.
type beforeMemory struct {
	// made is the uid of the object that this process made.
	made types.UID
	// desired is what is to be made where the status says: rendered again, after the status was written, it may have another
	// name.
	desired *pipeline.DesiredDownstream
	// foreign is where a create met somebody else's object.
	foreign pipeline.Ref
	// certain is true once the upstream was read past the cache: what it records is not older than what was done.
	certain bool
	// gone is true once the object was not there any more, and our finalizer on it no matter.
	gone bool
	// retry spaces out failed requests about the object; failure is why the action in failed was not carried out.
	retry   retryState
	failure *pipeline.Failure
	failed  pipeline.Action
	// reported is what events said last, state what is counted.
	reported string
	state    pipeline.State
}

// gatherBefore puts together what is known of the object of deletion.before.
func (r *reconciliation) gatherBefore(ctx context.Context) (pipeline.BeforeFacts, error) {
	m, p := &r.record.before, r.Pipeline
	f := pipeline.BeforeFacts{Record: p.RecordedBefore(r.upstream), Made: m.made, Inputs: r.inputsRead()}
	var err error
	if p.BeforePassed(f.Record) {
		if !m.gone && f.Record.ObjectName != "" {
			f.Live, err = r.beforeAt(ctx, refOfRecord(f), f.Record.UID)
			if f.Record.UID == "" && f.Live != nil && !r.isOwnBefore(f.Live) {
				f.Live = nil // it was never made, and this is somebody else's
			}
			m.gone = err == nil && f.Live == nil
		}
		return f, err
	}
	if uid := madeUID(f); uid != "" {
		if f.Live, err = r.beforeAt(ctx, refOfRecord(f), uid); err != nil || f.Live != nil || m.certain {
			return f, err
		}
		// Nothing but a read tells an object that was removed from one that finished: the cache may lag behind
		// our own record.
		if err := r.readUpstream(ctx); err != nil {
			return f, err
		}
		return r.gatherBefore(ctx)
	}
	return r.gatherUnmadeBefore(ctx, f)
}

// gatherUnmadeBefore is gatherBefore where nothing is known to have been made.
func (r *reconciliation) gatherUnmadeBefore(ctx context.Context, f pipeline.BeforeFacts) (pipeline.BeforeFacts, error) {
	if m := &r.record.before; !m.certain {
		if err := r.readUpstream(ctx); err != nil {
			return f, err
		}
		return r.gatherBefore(ctx)
	}
	m := &r.record.before
	if m.desired != nil && m.desired.Target == refOfRecord(f) {
		f.Desired = *m.desired
	} else {
		f.Desired = r.Pipeline.DesiredBefore(r.upstream, f.Inputs)
	}
	if f.Record != nil && f.Record.ObjectName != "" {
		at := refOfRecord(f)
		if at != f.Desired.Target { // the template says something else by now: was anything made before it did?
			live, err := r.beforeAt(ctx, at, "")
			if err != nil || live != nil && r.isOwnBefore(live) {
				f.Live = live
				return f, err
			}
		}
	}
	var err error
	if f.Desired.Err == nil {
		f.Live, err = r.occupant(ctx, f.Desired.Target)
	}
	return f, err
}

// occupant finds what stands where the object is to be made: as just read, or, where a create met somebody
// else's object, as read once the wait after that is over; else as the cache has it.
func (r *reconciliation) occupant(ctx context.Context, at pipeline.Ref) (*drift.Live, error) {
	m := &r.record.before
	read, until := r.record.lastBeforeRead()
	switch {
	case read != nil && read.Name == at.Name && read.Namespace == at.Namespace && until.Equal(r.now.Add(freshFor)):
		return read, nil
	case m.foreign != at:
		return r.Cache.Live(pipeline.BeforeIndex, at), nil
	case read != nil && m.retry.wait(r.record.externalDigest, r.now) > 0:
		return read, nil
	}
	live, err := r.readBefore(ctx, at)
	if err == nil && live == nil {
		m.foreign = pipeline.Ref{}
	}
	return live, err
}

// isOwnBefore tells whether an object was made by deletion.before for this upstream.
func (r *reconciliation) isOwnBefore(live *drift.Live) bool {
	return pipeline.MadeForDeletion(live, r.upstream.GetUID())
}

func madeUID(f pipeline.BeforeFacts) types.UID {
	if f.Made != "" || f.Record == nil {
		return f.Made
	}
	return f.Record.UID
}

func refOfRecord(f pipeline.BeforeFacts) pipeline.Ref {
	if f.Record == nil {
		return pipeline.Ref{}
	}
	return pipeline.Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName}
}

// beforeAt finds the object of deletion.before that stands at a place, with that uid where one is given: in what our last
// request returned, in the cache, or by reading it, as where it has lost the labels that the watch selects by.
func (r *reconciliation) beforeAt(ctx context.Context, at pipeline.Ref, uid types.UID) (*drift.Live, error) {
	is := func(live *drift.Live) bool { return live != nil && (uid == "" || live.UID == uid) }
	read, until := r.record.lastBeforeRead()
	if read != nil && at.Name == "" {
		at = pipeline.Ref{Namespace: read.Namespace, Name: read.Name}
	}
	cached := r.Cache.Live(pipeline.BeforeIndex, at)
	if is(read) && r.now.Before(until) && (!is(cached) || Newer(read.ResourceVersion, cached.ResourceVersion)) {
		if !is(cached) {
			r.trustUntil(until)
		}
		return read, nil
	}
	if is(cached) {
		// What has lost its mark, as by kubectl delete --cascade=orphan, does not call for a reconciliation when it changes.
		r.unwatched = r.unwatched || !pipeline.Marked(cached, r.upstream.GetUID())
		return cached, nil
	}
	live, err := r.readBefore(ctx, at)
	if err != nil || !is(live) {
		return nil, err
	}
	r.unwatched = true
	return live, nil
}

// readBefore reads the object at a place; nil if there is none, or its kind is gone.
func (r *reconciliation) readBefore(ctx context.Context, at pipeline.Ref) (*drift.Live, error) {
	if k := r.Pipeline.Before.Object.Kind; k.Missing != nil {
		return nil, r.Host.Absent(ctx, k.GVK)
	}
	obj, err := r.client.Get(ctx, r.beforeTarget(at))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.rememberBefore(obj)
}

// rememberBefore takes in what a request about the object returned.
func (r *reconciliation) rememberBefore(obj *unstructured.Unstructured) (*drift.Live, error) {
	live, err := r.Pipeline.Before.Object.View.Live(obj)
	if err != nil {
		return nil, err
	}
	r.record.rememberBefore(live, r.now)
	return live, nil
}

func (r *Reconciler) beforeTarget(at pipeline.Ref) apply.Target {
	return apply.Target{GVR: r.Pipeline.Before.Object.Kind.GVR, Namespace: at.Namespace, Name: at.Name}
}

// readUpstream replaces the upstream by what the API server has. A process that has just started, or just been elected,
// may have an older one in its cache, without what another process recorded.
func (r *reconciliation) readUpstream(ctx context.Context) error {
	up, err := r.client.Get(ctx, r.UpstreamTarget(r.ref))
	switch {
	case err != nil:
		return err
	case up.GetUID() != r.upstream.GetUID():
		return apply.ErrGone
	}
	r.upstream = withoutManagedFields(up)
	r.record.wrote(up, false)
	r.record.before.certain = true
	return nil
}

// actBefore carries out what was decided about the object of deletion.before. It tells whether that was done.
func (r *reconciliation) actBefore(ctx context.Context, d *pipeline.Decision, in pipeline.Input) bool {
	o, m := *d.Before, &r.record.before
	if o.Action != pipeline.ActionRecord && m.retry.wait(r.record.externalDigest, r.now) > 0 {
		return false
	}
	countOutcome(r.Name, pipeline.BeforeName, string(o.State))
	r.Log.V(1).Info("acting", "upstream", r.ref.String(), "downstream", pipeline.BeforeName,
		"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
	var err error
	switch o.Action {
	case pipeline.ActionRecord:
		return r.recordBefore(ctx, d, in)
	case pipeline.ActionCreate:
		err = r.createBefore(ctx, o, in)
	case pipeline.ActionFree:
		err = r.freeBefore(ctx, o.Live)
	case pipeline.ActionDelete:
		err = r.deleteBefore(ctx, o)
	}
	if err != nil {
		r.failBefore(o, err)
		return false
	}
	m.retry, m.failure = retryState{}, nil
	return true
}

// recordBefore writes the status and makes sure that it says what was decided, before anything goes on.
func (r *reconciliation) recordBefore(ctx context.Context, d *pipeline.Decision, in pipeline.Input) bool {
	r.reportDeletion(ctx, *d)
	have, want := r.Pipeline.RecordedBefore(r.upstream), r.Pipeline.BeforeRecord(*d.Before)
	if r.upstreamFailed || have == nil || have.State != want.State || have.UID != want.UID || have.ObjectName != want.ObjectName {
		return false
	}
	if d.Before.State == pipeline.StateCreate {
		r.record.before.desired = &in.Before.Desired
	}
	r.eventDeletion(*d)
	return true
}

// createBefore makes the object, where nothing of that name stands. What does is looked at in the next round.
func (r *reconciliation) createBefore(ctx context.Context, o pipeline.Outcome, in pipeline.Input) error {
	m, t := &r.record.before, r.beforeTarget(o.Target)
	m.desired = nil // what fails may be rendered otherwise the next time
	document := r.Pipeline.BeforeDocument(&in.Before.Desired)
	r.observed(func(to Observer) { to.Rendered(pipeline.BeforeIndex, document) })
	resp, err := r.client.Create(ctx, t, document)
	switch {
	case errors.Is(err, apply.ErrExists):
		live, err := r.readBefore(ctx, o.Target)
		if err == nil && live != nil && !r.isOwnBefore(live) {
			m.foreign = o.Target
		}
		return err
	case err != nil:
		return err
	}
	if _, err := r.rememberBefore(resp); err != nil {
		return err
	}
	m.made, m.foreign = resp.GetUID(), pipeline.Ref{}
	r.eventBeforeCreated(o)
	return nil
}

// freeBefore takes our finalizer off the object.
func (r *reconciliation) freeBefore(ctx context.Context, live *drift.Live) error {
	resp, err := r.removeOurFinalizer(ctx, live)
	switch {
	case err != nil:
		return err
	case resp == nil, resp.GetDeletionTimestamp() != nil && len(resp.GetFinalizers()) == 0:
		r.record.before.gone = true
		return nil
	}
	_, err = r.rememberBefore(resp)
	return err
}

// removeOurFinalizer takes our finalizer off an object of deletion.before and returns it as stored; nil where it is gone.
func (r *Reconciler) removeOurFinalizer(ctx context.Context, live *drift.Live) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": live.Namespace, "name": live.Name, "uid": string(live.UID), "resourceVersion": live.ResourceVersion,
		"finalizers": pipeline.KeptFinalizers(live),
	}}}
	t := r.beforeTarget(pipeline.Ref{Namespace: live.Namespace, Name: live.Name})
	resp, err := r.Client.RemoveFinalizer(ctx, t, obj, r.Pipeline.Config.Conventions.Finalizers()...)
	if errors.Is(err, apply.ErrConflict) { // the watch is behind: once more, with what stands
		resp = nil
		if obj, err = r.Client.Get(ctx, t); err == nil && obj.GetUID() == live.UID {
			resp, err = r.Client.RemoveFinalizer(ctx, t, obj, r.Pipeline.Config.Conventions.Finalizers()...)
		}
	}
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	return resp, err
}

// deleteBefore deletes the object where no owner reference does.
func (r *reconciliation) deleteBefore(ctx context.Context, o pipeline.Outcome) error {
	propagation := metav1.DeletionPropagation(r.Pipeline.Config.Deletion.Propagation)
	err := r.client.Delete(ctx, r.beforeTarget(o.Target), o.UID, propagation)
	if err != nil && !errors.Is(err, apply.ErrReplaced) {
		return err
	}
	r.record.before.gone = true
	return nil
}

// failureOf is why what is asked for of the object was not carried out; nil where nothing is asked for any more, as after a
// lost answer to a request that was carried out.
func (m *beforeMemory) failureOf(o *pipeline.Outcome) *pipeline.Failure {
	if o == nil || o.Action == pipeline.ActionNone || o.Action != m.failed {
		return nil
	}
	return m.failure
}

// failBefore notes a failed request about the object. It is tried again with growing delay.
func (r *reconciliation) failBefore(o pipeline.Outcome, err error) {
	f, m := classify(r.Pipeline.Before.Object, err), &r.record.before
	r.atLeast = max(r.atLeast, f.RetryAfter)
	m.failure, m.failed = &pipeline.Failure{Reason: f.Reason, Message: f.Message}, o.Action
	r.observed(func(to Observer) { to.Failed(pipeline.BeforeIndex, *m.failure) })
	r.delay(&m.retry)
	CountFailure(r.Name, pipeline.BeforeName, f.Reason)
	r.Log.Info("action failed, will retry", "upstream", r.ref.String(), "downstream", pipeline.BeforeName,
		"action", string(o.Action), "target", o.Target.String(), "reason", f.Reason, "message", f.Message)
}
