package before

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// Act carries out the decision about the deletion.before object. It reports whether that was done.
func (j *Job) Act(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	o, m := *d.Before, j.Memory.Before.Edit()
	if o.Action != operator.ActionRecord && m.Retry.Wait(j.Memory.Cause(), j.Began) > 0 {
		return false
	}
	counters.Outcome(j.Name, operator.BeforeName, string(o.State))
	j.Log.V(1).Info("acting", "upstream", j.Ref.String(), "downstream", operator.BeforeName,
		"state", string(o.State), "action", string(o.Action), "target", o.Target.String(), "why", o.Message)
	var err error
	switch o.Action {
	case operator.ActionRecord:
		return j.record(ctx, d, in)
	case operator.ActionCreate:
		err = j.create(ctx, o, in)
	case operator.ActionFree:
		err = j.free(ctx, o.Live)
	case operator.ActionReplaceMarks:
		err = j.label(ctx, o.Live)
	case operator.ActionDelete:
		err = j.delete(ctx, o)
	}
	if err != nil {
		j.fail(o, err)
		return o.State == operator.StateCreate && j.cannotCreate() // which decides again
	}
	m.Retry, m.Failure = memory.Retry{}, nil
	return true
}

// record writes the status and checks that it contains the decision, before anything else is done.
func (j *Job) record(ctx context.Context, d *operator.Decision, in operator.Input) bool {
	j.Report(ctx, *d)
	have, want := j.Pipeline.RecordedBefore(j.Upstream), decide.BeforeRecord(j.Pipeline.Settings, *d.Before)
	if j.HasFailed || have == nil || have.State != want.State || have.UID != want.UID ||
		have.ObjectName != want.ObjectName {
		return false
	}
	if d.Before.State == operator.StateCreate {
		j.Memory.Before.Edit().Planned = &in.Before.Desired
	}
	j.Tell(*d)
	return true
}

// create creates the object if none of that name exists. One that does is handled in the next round.
func (j *Job) create(ctx context.Context, o operator.Outcome, in operator.Input) error {
	m, t := j.Memory.Before.Edit(), Target(j.Pipeline, o.Target)
	m.Planned = nil // after a failure it is rendered again
	document := j.Document(in.Before.Desired.Document)
	resp, err := j.API.Create(ctx, t, document)
	switch {
	case errors.Is(err, apply.ErrExists):
		live, err := j.read(ctx, o.Target)
		if err == nil && live != nil && !marks.MadeForDeletion(live, j.Upstream.GetUID()) {
			m.Occupied = o.Target
		}
		return err
	case err != nil:
		return err
	}
	j.remember(resp)
	m.Made, m.Occupied = resp.GetUID(), operator.Ref{}
	j.OnCreated(o)
	return nil
}

// free removes our finalizer from the object, once its outcome is recorded.
func (j *Job) free(ctx context.Context, live *drift.Live) error {
	resp, err := RemoveFinalizer(ctx, j.API, j.Pipeline, live)
	switch {
	case err != nil:
		return err
	case resp == nil, resp.GetDeletionTimestamp() != nil && len(resp.GetFinalizers()) == 0:
		j.Memory.Before.Edit().IsGone = true
	default:
		j.remember(resp)
	}
	return nil
}

// label gives the object the labels that the watch selects by, since conventions.labels has changed or someone has
// removed them. One that is gone is handled in the next round.
func (j *Job) label(ctx context.Context, live *drift.Live) error {
	set := j.labels()
	resp, err := j.API.Label(ctx, Target(j.Pipeline, operator.RefOf(live)), live.UID, set)
	if errors.Is(err, apply.ErrGone) || errors.Is(err, apply.ErrReplaced) {
		return nil
	}
	if err != nil {
		return err
	}
	j.Memory.Before.Edit().Labels = set.String()
	j.remember(resp)
	return nil
}

// RemoveFinalizer removes our finalizer from a deletion.before object and returns the object as stored; nil if it is
// gone.
func RemoveFinalizer(
	ctx context.Context, client *apply.Client, p *compile.Pipeline, live *drift.Live,
) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": live.Namespace, "name": live.Name, "uid": string(live.UID), "resourceVersion": live.ResourceVersion,
		"finalizers": marks.KeptFinalizers(live),
	}}}
	t := Target(p, operator.Ref{Namespace: live.Namespace, Name: live.Name})
	resp, err := client.RemoveFinalizer(ctx, t, obj, p.Config.Conventions.Finalizers()...)
	if errors.Is(err, apply.ErrConflict) { // the watch lags: again, with the live object
		resp = nil
		if obj, err = client.Get(ctx, t); err == nil && obj.GetUID() == live.UID {
			resp, err = client.RemoveFinalizer(ctx, t, obj, p.Config.Conventions.Finalizers()...)
		}
	}
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	return resp, err
}

// delete deletes the object if no owner reference does.
func (j *Job) delete(ctx context.Context, o operator.Outcome) error {
	_, err := act.Delete(ctx, j.API, Target(j.Pipeline, o.Target), o.UID,
		metav1.DeletionPropagation(j.Pipeline.Config.Deletion.Propagation))
	if err != nil {
		return err
	}
	j.Memory.Before.Edit().IsGone = true
	return nil
}

// fail records a failed request for the object. It is retried with growing delay.
func (j *Job) fail(o operator.Outcome, err error) {
	f, m := act.Classify(err, j.Pipeline.Before.Object.Words), j.Memory.Before.Edit()
	j.MinRetry = max(j.MinRetry, f.RetryAfter)
	m.Failure, m.Failed = &operator.Failure{Reason: f.Reason, Message: f.Message}, o.Action
	m.Retry.Fail(memory.SpacingOf(j.Pipeline.Config.Retry), j.MinRetry, j.Memory.Cause(), j.Began)
	counters.Failure(j.Name, operator.BeforeName, f.Reason)
	j.OnFailed(o, f)
}
