package reconcile

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

// gatherBefore gathers what is known about the deletion.before object.
func (r *reconciliation) gatherBefore(ctx context.Context) (operator.BeforeFacts, error) {
	m, p := r.Memory.Before.Edit(), r.Pipeline
	f := operator.BeforeFacts{Record: p.RecordedBefore(r.Upstream), Made: m.Made, Progress: p.BeforeProgress(r.Upstream, r.InputsRead())}
	var err error
	if decide.BeforePassed(p.Settings, f.Record) {
		if !m.IsGone && f.Record.ObjectName != "" {
			f.Live, err = r.beforeAt(ctx, refOfRecord(f), f.Record.UID)
			if f.Record.UID == "" && f.Live != nil && !marks.MadeForDeletion(f.Live, r.Upstream.GetUID()) {
				f.Live = nil // it was never made, and this is somebody else's
			}
			m.IsGone = err == nil && f.Live == nil
			if f.Live != nil { // whose it is now decides whether it is deleted
				r.FindNamed(ctx, f.Live, true)
				f.Live = r.Memory.Notes.Get().WithMark(f.Live)
			}
		}
		return f, err
	}
	if uid := madeUID(f); uid != "" {
		if f.Live, err = r.beforeAt(ctx, refOfRecord(f), uid); err != nil || f.Live != nil || m.IsUpstreamRead {
			return f, err
		}
		// Only a read tells an object that was removed from one that finished: the cache may lag behind our own record.
		if err := r.readUpstream(ctx); err != nil {
			return f, err
		}
		return r.gatherBefore(ctx)
	}
	return r.gatherUnmadeBefore(ctx, f)
}

// gatherUnmadeBefore is gatherBefore if no object is known to have been created.
func (r *reconciliation) gatherUnmadeBefore(ctx context.Context, f operator.BeforeFacts) (operator.BeforeFacts, error) {
	if m := r.Memory.Before.Edit(); !m.IsUpstreamRead {
		if err := r.readUpstream(ctx); err != nil {
			return f, err
		}
		return r.gatherBefore(ctx)
	}
	m := r.Memory.Before.Edit()
	if m.Planned != nil && m.Planned.Target == refOfRecord(f) {
		f.Desired = *m.Planned
	} else {
		f.Desired = r.Pipeline.DesiredBefore(r.Upstream, r.InputsRead())
	}
	if f.Record != nil && f.Record.ObjectName != "" {
		at := refOfRecord(f)
		if at != f.Desired.Target { // the template says something else by now: was anything made before it did?
			live, err := r.beforeAt(ctx, at, "")
			if err != nil || live != nil && marks.MadeForDeletion(live, r.Upstream.GetUID()) {
				f.Live = live
				return f, err
			}
		}
	}
	f.CannotCreate = r.cannotCreateBefore()
	var err error
	if f.Desired.Err == nil && f.Desired.Wanted {
		f.Live, err = r.occupant(ctx, f.Desired.Target)
	}
	return f, err
}

// occupant returns the object at the place where the deletion.before object is to be created: as just read, or, if a create met
// another owner's object, as read after the retry delay; else from the cache.
func (r *reconciliation) occupant(ctx context.Context, at operator.Ref) (*drift.Live, error) {
	m := r.Memory.Before.Edit()
	read, until := r.Memory.LastBeforeRead()
	switch {
	case read != nil && read.Name == at.Name && read.Namespace == at.Namespace && until.Equal(r.Began.Add(memory.FreshFor)):
		return read, nil
	case m.Occupied != at:
		return r.Cache.Live(operator.BeforeIndex, at), nil
	case read != nil && m.Retry.Wait(r.Memory.Cause(), r.Began) > 0:
		return read, nil
	}
	live, err := r.readBefore(ctx, at)
	if err == nil && live == nil {
		m.Occupied = operator.Ref{}
	}
	return live, err
}

func madeUID(f operator.BeforeFacts) types.UID {
	if f.Made != "" || f.Record == nil {
		return f.Made
	}
	return f.Record.UID
}

func refOfRecord(f operator.BeforeFacts) operator.Ref {
	if f.Record == nil {
		return operator.Ref{}
	}
	return operator.Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName}
}

// beforeAt returns the deletion.before object at a place, with that uid if one is given: from our last response, from the
// cache, or by a read, as when it has lost the labels of the watch.
func (r *reconciliation) beforeAt(ctx context.Context, at operator.Ref, uid types.UID) (*drift.Live, error) {
	is := func(live *drift.Live) bool { return live != nil && (uid == "" || live.UID == uid) }
	read, until := r.Memory.LastBeforeRead()
	if read != nil && at.Name == "" {
		at = operator.Ref{Namespace: read.Namespace, Name: read.Name}
	}
	cached := r.Cache.Live(operator.BeforeIndex, at)
	if is(read) && r.Began.Before(until) && (!is(cached) || memory.Newer(read.ResourceVersion, cached.ResourceVersion)) {
		if !is(cached) {
			r.TrustUntil(until)
		}
		return read, nil
	}
	if is(cached) {
		// An object that lost its owner mark, as by kubectl delete --cascade=orphan, causes no reconciliation when it changes.
		r.unwatched = r.unwatched || !marks.Marked(cached, r.Upstream.GetUID())
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
func (r *reconciliation) readBefore(ctx context.Context, at operator.Ref) (*drift.Live, error) {
	if k := r.Pipeline.Before.Object.Kind; k.Missing != nil {
		return nil, r.Kinds.Absent(ctx, k.GVK)
	}
	obj, err := r.API.Get(ctx, beforeTarget(r.Pipeline, at))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.rememberBefore(obj)
}

// rememberBefore remembers what a request for the object returned.
func (r *reconciliation) rememberBefore(obj *unstructured.Unstructured) (*drift.Live, error) {
	live, err := r.Pipeline.Before.Object.View.Live(obj)
	if err != nil {
		return nil, err
	}
	r.Memory.RememberBefore(live, r.Began)
	return live, nil
}

func beforeTarget(p *compile.Pipeline, at operator.Ref) apply.Target {
	return apply.Target{GVR: p.Before.Object.Kind.GVR, Namespace: at.Namespace, Name: at.Name}
}

// readUpstream reads the upstream past the cache. A process that has just started, or become the leader, may have an older
// version in its cache, without what another process recorded.
func (r *reconciliation) readUpstream(ctx context.Context) error {
	up, err := r.API.Get(ctx, r.UpstreamTarget(r.Ref))
	switch {
	case err != nil:
		return err
	case up.GetUID() != r.Upstream.GetUID():
		return apply.ErrGone
	}
	r.Upstream = write.WithoutManagedFields(up)
	r.Memory.WroteUpstream(up, false)
	r.Memory.Before.Edit().IsUpstreamRead = true
	return nil
}

// actBefore carries out the decision about the deletion.before object. It reports whether that was done.
func (r *reconciliation) actBefore(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	o, m := *d.Before, r.Memory.Before.Edit()
	if o.Action != operator.ActionRecord && m.Retry.Wait(r.Memory.Cause(), r.Began) > 0 {
		return false
	}
	counters.Outcome(r.Name, operator.BeforeName, string(o.State))
	r.Log.V(1).Info("acting", "upstream", r.Ref.String(), "downstream", operator.BeforeName,
		"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
	var err error
	switch o.Action {
	case operator.ActionRecord:
		return r.recordBefore(ctx, d, in)
	case operator.ActionCreate:
		err = r.createBefore(ctx, o, in)
	case operator.ActionFree:
		err = r.freeBefore(ctx, o.Live)
	case operator.ActionDelete:
		err = r.deleteBefore(ctx, o)
	}
	if err != nil {
		r.failBefore(o, err)
		return o.State == operator.StateCreate && r.cannotCreateBefore() // which decides anew
	}
	m.Retry, m.Failure = memory.Retry{}, nil
	return true
}

// recordBefore writes the status and checks that it contains the decision, before anything else is done.
func (r *reconciliation) recordBefore(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	r.reportDeletion(ctx, *d)
	have, want := r.Pipeline.RecordedBefore(r.Upstream), decide.BeforeRecord(r.Pipeline.Settings, *d.Before)
	if r.HasFailed || have == nil || have.State != want.State || have.UID != want.UID || have.ObjectName != want.ObjectName {
		return false
	}
	if d.Before.State == operator.StateCreate {
		r.Memory.Before.Edit().Planned = &in.Before.Desired
	}
	r.reporter().Deletion(r.Memory, *d, r.failures, r.reportedBefore)
	return true
}

// createBefore creates the object if none of that name exists. One that does is handled in the next round.
func (r *reconciliation) createBefore(ctx context.Context, o operator.Outcome, in operator.Input) error {
	m, t := r.Memory.Before.Edit(), beforeTarget(r.Pipeline, o.Target)
	m.Planned = nil // after a failure it is rendered again
	document := r.withShard(marks.WithToken(r.Pipeline.Settings, in.Before.Desired.Document, r.token()))
	r.notifyObserver(func(to Observer) { to.Rendered(operator.BeforeIndex, document) })
	resp, err := r.API.Create(ctx, t, document)
	switch {
	case errors.Is(err, apply.ErrExists):
		live, err := r.readBefore(ctx, o.Target)
		if err == nil && live != nil && !marks.MadeForDeletion(live, r.Upstream.GetUID()) {
			m.Occupied = o.Target
		}
		return err
	case err != nil:
		return err
	}
	if _, err := r.rememberBefore(resp); err != nil {
		return err
	}
	m.Made, m.Occupied = resp.GetUID(), operator.Ref{}
	r.reporter().BeforeCreated(o)
	return nil
}

// freeBefore removes our finalizer from the object, once its outcome is recorded.
func (r *reconciliation) freeBefore(ctx context.Context, live *drift.Live) error {
	resp, err := r.removeOurFinalizer(ctx, live)
	switch {
	case err != nil:
		return err
	case resp == nil, resp.GetDeletionTimestamp() != nil && len(resp.GetFinalizers()) == 0:
		r.Memory.Before.Edit().IsGone = true
		return nil
	}
	_, err = r.rememberBefore(resp)
	return err
}

// removeOurFinalizer removes our finalizer from a deletion.before object and returns the object as stored; nil if it is gone.
func (r *Reconciler) removeOurFinalizer(ctx context.Context, live *drift.Live) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": live.Namespace, "name": live.Name, "uid": string(live.UID), "resourceVersion": live.ResourceVersion,
		"finalizers": marks.KeptFinalizers(live),
	}}}
	t := beforeTarget(r.Pipeline, operator.Ref{Namespace: live.Namespace, Name: live.Name})
	resp, err := r.Client.RemoveFinalizer(ctx, t, obj, r.Pipeline.Config.Conventions.Finalizers()...)
	if errors.Is(err, apply.ErrConflict) { // the watch lags: again, with the live object
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

// deleteBefore deletes the object if no owner reference does.
func (r *reconciliation) deleteBefore(ctx context.Context, o operator.Outcome) error {
	if _, err := act.Delete(ctx, r.API, beforeTarget(r.Pipeline, o.Target), o.UID, metav1.DeletionPropagation(r.Pipeline.Config.Deletion.Propagation)); err != nil {
		return err
	}
	r.Memory.Before.Edit().IsGone = true
	return nil
}

// cannotCreateBefore reports whether the last create was refused because the namespace is being deleted.
func (r *reconciliation) cannotCreateBefore() bool {
	m := r.Memory.Before.Edit()
	return m.Failure != nil && m.Failed == operator.ActionCreate && m.Failure.Reason == apply.ReasonNamespaceTerminating
}

// failBefore records a failed request for the object. It is retried with growing delay.
func (r *reconciliation) failBefore(o operator.Outcome, err error) {
	f, m := act.Classify(err, r.Pipeline.Before.Object.Words), r.Memory.Before.Edit()
	r.MinRetry = max(r.MinRetry, f.RetryAfter)
	m.Failure, m.Failed = &operator.Failure{Reason: f.Reason, Message: f.Message}, o.Action
	r.notifyObserver(func(to Observer) { to.Failed(operator.BeforeIndex, *m.Failure) })
	r.delay(&m.Retry)
	counters.Failure(r.Name, operator.BeforeName, f.Reason)
	r.reporter().Failed(operator.BeforeName, o, f)
}
