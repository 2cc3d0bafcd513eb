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
func (l *reconciliation) gatherBefore(ctx context.Context) (pipeline.BeforeFacts, error) {
	m, p := &l.record.before, l.Pipeline
	f := pipeline.BeforeFacts{Record: p.RecordedBefore(l.upstream), Made: m.made, Inputs: l.inputsRead()}
	var err error
	if p.BeforePassed(f.Record) {
		if !m.gone && f.Record.ObjectName != "" {
			f.Live, err = l.beforeAt(ctx, refOfRecord(f), f.Record.UID)
			if f.Record.UID == "" && f.Live != nil && !l.isOwnBefore(f.Live) {
				f.Live = nil // it was never made, and this is somebody else's
			}
			m.gone = err == nil && f.Live == nil
		}
		return f, err
	}
	if uid := madeUID(f); uid != "" {
		if f.Live, err = l.beforeAt(ctx, refOfRecord(f), uid); err != nil || f.Live != nil || m.certain {
			return f, err
		}
		// Nothing but a read tells an object that was removed from one that has done its work: the cache may lag behind
		// our own record.
		if err := l.readUpstream(ctx); err != nil {
			return f, err
		}
		return l.gatherBefore(ctx)
	}
	return l.gatherUnmadeBefore(ctx, f)
}

// gatherUnmadeBefore is gatherBefore where nothing is known to have been made.
func (l *reconciliation) gatherUnmadeBefore(ctx context.Context, f pipeline.BeforeFacts) (pipeline.BeforeFacts, error) {
	if m := &l.record.before; !m.certain {
		if err := l.readUpstream(ctx); err != nil {
			return f, err
		}
		return l.gatherBefore(ctx)
	}
	m := &l.record.before
	if m.desired != nil && m.desired.Target == refOfRecord(f) {
		f.Desired = *m.desired
	} else {
		f.Desired = l.Pipeline.DesiredBefore(l.upstream, f.Inputs)
	}
	if f.Record != nil && f.Record.ObjectName != "" {
		at := refOfRecord(f)
		if at != f.Desired.Target { // the template says something else by now: was anything made before it did?
			live, err := l.beforeAt(ctx, at, "")
			if err != nil || live != nil && l.isOwnBefore(live) {
				f.Live = live
				return f, err
			}
		}
	}
	var err error
	if f.Desired.Err == nil {
		f.Live, err = l.occupant(ctx, f.Desired.Target)
	}
	return f, err
}

// occupant finds what stands where the object is to be made: as just read, or, where a create met somebody
// else's object, as read once the wait after that is over; else as the cache has it.
func (l *reconciliation) occupant(ctx context.Context, at pipeline.Ref) (*drift.Live, error) {
	m := &l.record.before
	read, until := l.record.lastBeforeRead()
	switch {
	case read != nil && read.Name == at.Name && read.Namespace == at.Namespace && until.Equal(l.now.Add(freshFor)):
		return read, nil
	case m.foreign != at:
		return l.Cache.Live(pipeline.BeforeIndex, at), nil
	case read != nil && m.retry.wait(l.record.asked, l.now) > 0:
		return read, nil
	}
	live, err := l.readBefore(ctx, at)
	if err == nil && live == nil {
		m.foreign = pipeline.Ref{}
	}
	return live, err
}

// isOwnBefore tells whether an object was made by deletion.before for this upstream.
func (l *reconciliation) isOwnBefore(live *drift.Live) bool {
	return pipeline.MadeForDeletion(live, l.upstream.GetUID())
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
func (l *reconciliation) beforeAt(ctx context.Context, at pipeline.Ref, uid types.UID) (*drift.Live, error) {
	is := func(live *drift.Live) bool { return live != nil && (uid == "" || live.UID == uid) }
	read, until := l.record.lastBeforeRead()
	if read != nil && at.Name == "" {
		at = pipeline.Ref{Namespace: read.Namespace, Name: read.Name}
	}
	cached := l.Cache.Live(pipeline.BeforeIndex, at)
	if is(read) && l.now.Before(until) && (!is(cached) || Newer(read.ResourceVersion, cached.ResourceVersion)) {
		if !is(cached) {
			l.trustUntil(until)
		}
		return read, nil
	}
	if is(cached) {
		// What has lost its mark, as by kubectl delete --cascade=orphan, does not call for a reconciliation when it changes.
		l.unwatched = l.unwatched || !pipeline.Marked(cached, l.upstream.GetUID())
		return cached, nil
	}
	live, err := l.readBefore(ctx, at)
	if err != nil || !is(live) {
		return nil, err
	}
	l.unwatched = true
	return live, nil
}

// beforeRead reads what stands at a place; nil where nothing does, be it since the kind is gone.
func (l *reconciliation) readBefore(ctx context.Context, at pipeline.Ref) (*drift.Live, error) {
	if k := l.Pipeline.Before.Object.Kind; k.Missing != nil {
		return nil, l.Host.Absent(ctx, k.GVK)
	}
	obj, err := l.client.Get(ctx, l.beforeTarget(at))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l.rememberBefore(obj)
}

// rememberBefore takes in what a request about the object returned.
func (l *reconciliation) rememberBefore(obj *unstructured.Unstructured) (*drift.Live, error) {
	live, err := l.Pipeline.Before.Object.View.Live(obj)
	if err != nil {
		return nil, err
	}
	l.record.rememberBefore(live, l.now)
	return live, nil
}

func (s *Reconciler) beforeTarget(at pipeline.Ref) apply.Target {
	return apply.Target{GVR: s.Pipeline.Before.Object.Kind.GVR, Namespace: at.Namespace, Name: at.Name}
}

// readUpstream replaces the upstream by what the API server has. A process that has just started, or just been elected,
// may have an older one in its cache, without what another process recorded.
func (l *reconciliation) readUpstream(ctx context.Context) error {
	up, err := l.client.Get(ctx, l.UpstreamTarget(l.ref))
	switch {
	case err != nil:
		return err
	case up.GetUID() != l.upstream.GetUID():
		return apply.ErrGone
	}
	l.upstream = withoutManagedFields(up)
	l.record.wrote(up, false)
	l.record.before.certain = true
	return nil
}

// actBefore carries out what was decided about the object of deletion.before. It tells whether that was done.
func (l *reconciliation) actBefore(ctx context.Context, d *pipeline.Decision, in pipeline.Input) bool {
	o, m := *d.Before, &l.record.before
	if o.Action != pipeline.ActionRecord && m.retry.wait(l.record.asked, l.now) > 0 {
		return false
	}
	countOutcome(l.Name, pipeline.BeforeName, string(o.State))
	l.Log.V(1).Info("acting", "upstream", l.ref.String(), "downstream", pipeline.BeforeName,
		"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
	var err error
	switch o.Action {
	case pipeline.ActionRecord:
		return l.recordBefore(ctx, d, in)
	case pipeline.ActionCreate:
		err = l.createBefore(ctx, o, in)
	case pipeline.ActionFree:
		err = l.freeBefore(ctx, o.Live)
	case pipeline.ActionDelete:
		err = l.deleteBefore(ctx, o)
	}
	if err != nil {
		l.failBefore(o, err)
		return false
	}
	m.retry, m.failure = retryState{}, nil
	return true
}

// recordBefore writes the status and makes sure that it says what was decided, before anything goes on.
func (l *reconciliation) recordBefore(ctx context.Context, d *pipeline.Decision, in pipeline.Input) bool {
	l.reportDeletion(ctx, *d)
	have, want := l.Pipeline.RecordedBefore(l.upstream), l.Pipeline.BeforeRecord(*d.Before)
	if l.upstreamFailed || have == nil || have.State != want.State || have.UID != want.UID || have.ObjectName != want.ObjectName {
		return false
	}
	if d.Before.State == pipeline.StateCreate {
		l.record.before.desired = &in.Before.Desired
	}
	l.eventDeletion(*d)
	return true
}

// createBefore makes the object, where nothing of that name stands. What does is looked at in the next round.
func (l *reconciliation) createBefore(ctx context.Context, o pipeline.Outcome, in pipeline.Input) error {
	m, t := &l.record.before, l.beforeTarget(o.Target)
	m.desired = nil // what fails may be rendered otherwise the next time
	resp, err := l.client.Create(ctx, t, l.Pipeline.BeforeDocument(&in.Before.Desired))
	switch {
	case errors.Is(err, apply.ErrExists):
		live, err := l.readBefore(ctx, o.Target)
		if err == nil && live != nil && !l.isOwnBefore(live) {
			m.foreign = o.Target
		}
		return err
	case err != nil:
		return err
	}
	if _, err := l.rememberBefore(resp); err != nil {
		return err
	}
	m.made, m.foreign = resp.GetUID(), pipeline.Ref{}
	l.eventBeforeCreated(o)
	return nil
}

// freeBefore takes our finalizer off the object.
func (l *reconciliation) freeBefore(ctx context.Context, live *drift.Live) error {
	resp, err := l.removeOurFinalizer(ctx, live)
	switch {
	case err != nil:
		return err
	case resp == nil, resp.GetDeletionTimestamp() != nil && len(resp.GetFinalizers()) == 0:
		l.record.before.gone = true
		return nil
	}
	_, err = l.rememberBefore(resp)
	return err
}

// removeOurFinalizer takes our finalizer off an object of deletion.before and returns it as stored; nil where it is gone.
func (s *Reconciler) removeOurFinalizer(ctx context.Context, live *drift.Live) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": live.Namespace, "name": live.Name, "uid": string(live.UID), "resourceVersion": live.ResourceVersion,
		"finalizers": pipeline.KeptFinalizers(live),
	}}}
	t := s.beforeTarget(pipeline.Ref{Namespace: live.Namespace, Name: live.Name})
	resp, err := s.Client.RemoveFinalizer(ctx, t, obj, s.Pipeline.Config.Conventions.Finalizers()...)
	if errors.Is(err, apply.ErrConflict) { // the watch is behind: once more, with what stands
		resp = nil
		if obj, err = s.Client.Get(ctx, t); err == nil && obj.GetUID() == live.UID {
			resp, err = s.Client.RemoveFinalizer(ctx, t, obj, s.Pipeline.Config.Conventions.Finalizers()...)
		}
	}
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	return resp, err
}

// deleteBefore deletes the object where no owner reference does.
func (l *reconciliation) deleteBefore(ctx context.Context, o pipeline.Outcome) error {
	propagation := metav1.DeletionPropagation(l.Pipeline.Config.Deletion.Propagation)
	err := l.client.Delete(ctx, l.beforeTarget(o.Target), o.UID, propagation)
	if err != nil && !errors.Is(err, apply.ErrReplaced) {
		return err
	}
	l.record.before.gone = true
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
func (l *reconciliation) failBefore(o pipeline.Outcome, err error) {
	f, m := classify(l.Pipeline.Before.Object, err), &l.record.before
	l.atLeast = max(l.atLeast, f.RetryAfter)
	m.failure, m.failed = &pipeline.Failure{Reason: f.Reason, Message: f.Message}, o.Action
	l.delay(&m.retry)
	CountFailure(l.Name, pipeline.BeforeName, f.Reason)
	l.Log.Info("an action failed and is tried again", "upstream", l.ref.String(), "downstream", pipeline.BeforeName,
		"action", string(o.Action), "target", o.Target.String(), "reason", f.Reason, "message", f.Message)
}
