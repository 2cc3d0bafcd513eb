package act

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Actor carries out decisions about the objects of one upstream.
type Actor struct {
	events.Reporter
	// Client makes the requests: the session's own, or that of a dry run.
	Client *apply.Client
	// In is what was decided from.
	In       operator.Input
	Memory   *memory.Upstream
	Removals *memory.Removals
	Now      time.Time
	Spacing  memory.Spacing
	// Document is the whole document to send for object k of the desired state; live is nil at creation.
	Document func(k int, live *drift.Live) (map[string]any, error)
	// Cascade is what the deletion of the upstream asks for, and Propagation how its objects are deleted.
	Cascade     operator.Cascade
	Propagation metav1.DeletionPropagation
	// IsSharded is true if other processes act for other upstreams. LacksShard reports whether a watch does not show an object with such
	// labels to this process.
	IsSharded  bool
	LacksShard func(labels map[string]string) bool
}

// Do makes the requests for one outcome, which becomes that of an apply if an object to create exists after all.
func (a *Actor) Do(ctx context.Context, o *operator.Outcome) error {
	switch o.Action {
	case operator.ActionCreate:
		return a.create(ctx, o)
	case operator.ActionApply:
		return a.apply(ctx, *o)
	case operator.ActionDelete:
		return a.remove(ctx, *o)
	case operator.ActionRelease:
		return a.release(ctx, *o)
	case operator.ActionReplaceMarks:
		return a.replaceMarks(ctx, *o)
	case operator.ActionMarkOwner:
		return a.markOwner(ctx, *o)
	case operator.ActionCompare:
		return a.compareByDryRun(ctx, *o)
	}
	return nil
}

// Target is the target of requests for an object of downstream i.
func Target(s *operator.Settings, i int, ref operator.Ref) apply.Target {
	d := s.Downstreams[i]
	return apply.Target{GVR: d.Kind.GVR, Namespace: ref.Namespace, Name: ref.Name, Yields: d.OwnsFields() && !d.Config.Force}
}

func (a *Actor) target(i int, ref operator.Ref) apply.Target { return Target(a.Settings, i, ref) }

// recorded is what the status records of object k of the desired state; nil for nothing.
func (a *Actor) recorded(k int) *status.Recorded {
	return a.Settings.RecordedOf(a.Settings.Recorded(a.Upstream), &a.In.Desired.Objects[k])
}

// create creates an object. If one exists after all, it is read: an object that lost the labels of the watch is still ours by
// its uid; any other is decided on as it is. Then the outcome becomes that of an apply.
func (a *Actor) create(ctx context.Context, outcome *operator.Outcome) error {
	o := *outcome
	i := o.Downstream
	doc, err := a.Document(o.Object, nil)
	if err != nil {
		return err
	}
	random, err := a.generatedTexts(ctx, o, nil)
	if err != nil {
		return err
	}
	doc = generated.Fill(a.Settings.Downstreams[i], doc, nil, nil, random)
	if !a.In.Desired.Objects[o.Object].Reference || a.Settings.HoldsDeletion() {
		a.Memory.Notes.Edit().ExpectCreated(memory.At(i, o.Target)) // whatever the answer, or the lack of one
	}
	resp, err := a.Client.Create(ctx, a.target(i, o.Target), doc)
	if errors.Is(err, apply.ErrExists) {
		return a.resolveExisting(ctx, outcome, doc)
	}
	if err != nil {
		if mayHaveSucceeded(err) {
			a.Memory.Notes.Edit().ExpectCreated(memory.At(i, o.Target))
		} else {
			a.Memory.ConfirmCreated(func(m memory.Place) bool { return m == memory.At(i, o.Target) })
		}
		return err
	}
	a.Created(o)
	a.LostValues(o)
	return a.rememberApplied(ctx, o, resp, doc)
}

// resolveExisting reads the object that kept a create from succeeding, so that the next round decides on it. If its recorded
// uid is known to be ours, only the labels were removed: it is applied without a read. With shards, its owner marks may have been edited.
func (a *Actor) resolveExisting(ctx context.Context, outcome *operator.Outcome, doc map[string]any) error {
	i := outcome.Downstream
	t := a.target(i, outcome.Target)
	rec := a.recorded(outcome.Object)
	outcome.State, outcome.Action, outcome.Message = operator.StateRepair, operator.ActionApply, "it had lost labels that the watch selects by"
	o := *outcome
	if hash, ok := a.unreadHash(o, rec); ok {
		if hash != a.In.Desired.Objects[o.Object].Hash { // the labels are part of it
			o.State, o.Message = operator.StateUpdate, decide.MessageChanged
		}
		resp, err := a.Client.Apply(ctx, t, rec.UID, doc)
		switch {
		case err == nil:
			a.reportApplied(o, nil, resp)
			a.countWrite(o.Object, a.In.Desired.Objects[o.Object].Hash)
			a.rememberResponse(o.Object, resp)
			return nil
		case !errors.Is(err, apply.ErrReplaced) && !errors.Is(err, apply.ErrGone):
			return err
		}
	}
	live, err := a.Client.Get(ctx, t)
	if err != nil {
		return err // also if it has just gone: that is retried like any other failure
	}
	a.rememberResponse(o.Object, live)
	a.Memory.ConfirmCreated(func(m memory.Place) bool {
		return m == memory.At(i, o.Target) && !a.Memory.CreatedByUs(o.Object, a.Upstream.GetUID())
	})
	return nil
}

// unreadHash is the hash of what was applied last to an object, if the status records as rec that it is where it is to be, this process
// agrees, and an apply needs to know no more about it.
func (a *Actor) unreadHash(o operator.Outcome, rec *status.Recorded) (hash string, ok bool) {
	t, d := a.Memory.Object(o.Object), a.Settings.Downstreams[o.Downstream]
	if a.IsSharded || rec == nil || rec.UID == "" || rec.UID != t.UID || rec.Namespace != o.Target.Namespace || rec.ObjectName != o.Target.Name {
		return "", false
	}
	hash = cmp.Or(t.Contest.Get().Written, rec.Hash)
	return hash, hash != "" && marks.IsOfFields(hash) == d.OwnsFields() && len(d.View.Initial) == 0 && d.Repairs() && len(d.View.TakeoverManagers()) == 0
}

// rememberResponse remembers an object as the API server returned it.
func (a *Actor) rememberResponse(k int, obj *unstructured.Unstructured) {
	a.Memory.Remember(k, a.LiveOf(a.Settings.Downstreams[a.In.Desired.Objects[k].Downstream], obj), a.Now)
}

// LiveOf views an object that a request returned: no watch may show it.
func (a *Actor) LiveOf(d *operator.Downstream, obj *unstructured.Unstructured) *drift.Live {
	live := d.View.Live(obj)
	live.Unselected = !d.Selector.AsSelector().Matches(labels.Set(obj.GetLabels())) || a.LacksShard(obj.GetLabels())
	return live
}

// remove deletes an object of ours.
func (a *Actor) remove(ctx context.Context, o operator.Outcome) error {
	if o.State == operator.StateRecreate {
		if immutable, err := a.confirmImmutable(ctx, o); !immutable {
			return err
		}
	}
	if o.State == operator.StateRecreate && a.Settings.Downstreams[o.Downstream].HasGenerated() {
		if err := a.KeepGenerated(ctx, o); err != nil {
			return err
		}
	}
	answer, err := Delete(ctx, a.Client, a.target(o.Downstream, o.Target), o.UID, a.Propagation)
	if err != nil {
		return err
	}
	a.Deleted(o)
	a.LostValues(o)
	a.noteDeleted(o, answer)
	return nil
}

// Delete deletes an object by its uid. If another one has its name, it is gone.
func Delete(ctx context.Context, client *apply.Client, t apply.Target, uid types.UID, propagation metav1.DeletionPropagation) (apply.Deletion, error) {
	answer, err := client.Delete(ctx, t, uid, propagation)
	if errors.Is(err, apply.ErrReplaced) {
		return apply.Deletion{Gone: true}, nil
	}
	return answer, err
}

// release removes our marks from an object that is kept, and our fields from one of others, unless it is deleted with
// --cascade=orphan.
func (a *Actor) release(ctx context.Context, o operator.Outcome) error {
	t, d := a.target(o.Downstream, o.Target), a.Settings.Downstreams[o.Downstream]
	if d.OwnsFields() && a.Cascade != operator.CascadeOrphan {
		left, err := a.Client.Withdraw(ctx, t, d.GVK(), o.UID)
		if err != nil {
			return notWithdrawn(o, err)
		}
		a.Released(o)
		a.noteReleased(o, left)
		return nil
	}
	live, err := a.Client.Get(ctx, t)
	if errors.Is(err, apply.ErrGone) || (err == nil && live.GetUID() != o.UID) {
		a.Memory.NoteGone(o.UID, a.Now)
		return nil
	}
	if err != nil {
		return err
	}
	if live, err = a.Client.Release(ctx, t, live, apply.Marks(marks.Of(a.Settings, a.Upstream.GetUID(), o.Downstream))); err != nil {
		return err
	}
	a.Released(o)
	a.noteReleased(o, live)
	return nil
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

// noteDeleted remembers what the API server answered to the deletion of an object. A dry run shows what follows from it, once it is gone.
func (a *Actor) noteDeleted(o operator.Outcome, answer apply.Deletion) {
	a.noteRemoved(o)
	if answer.Gone || o.Live == nil || a.Client.Dry() {
		a.Memory.NoteGone(o.UID, a.Now)
		return
	}
	live := *o.Live
	if answer.Terminating != nil {
		live = *a.Settings.Downstreams[o.Downstream].View.Live(answer.Terminating)
	}
	live.Deleting = true
	a.Memory.NoteDeleting(o.Downstream, &live, a.Now)
}

// noteReleased remembers an object that was released, as the API server returned it; nil: it is gone.
func (a *Actor) noteReleased(o operator.Outcome, obj *unstructured.Unstructured) {
	a.noteRemoved(o)
	if obj == nil || a.Client.Dry() {
		a.Memory.NoteGone(o.UID, a.Now)
		return
	}
	a.Memory.NoteReleased(o.Downstream, a.Settings.Downstreams[o.Downstream].View.Live(obj), a.Now)
}

// noteRemoved counts that an object was deleted or released, which does not belong to the upstream from now on.
func (a *Actor) noteRemoved(o operator.Outcome) {
	countItems(a, o.Downstream)
	a.Removals.Write(memory.At(o.Downstream, o.Target), a.Spacing, a.Now)
	if t := a.Memory.Object(o.Object); t.UID == o.UID {
		t.UID = "" // its absence is our own doing
		a.countWrite(o.Object, "")
	}
}

// mayHaveSucceeded reports whether a failed request may have been carried out nevertheless.
func mayHaveSucceeded(err error) bool {
	switch apply.Classify(err).Reason {
	case apply.ReasonUnavailable, apply.ReasonInternalError, apply.ReasonCanceled, apply.ReasonUnknown:
		return true
	}
	return false
}

// Classify is apply.ClassifyShown, also for what is found out about kinds.
func Classify(err error, words redact.Words) apply.Failure {
	switch {
	case errors.Is(err, discovered.ErrServedAgain):
		return apply.Failure{Reason: string(operator.StateWaiting), Message: err.Error()}
	case errors.Is(err, kinds.ErrUnknown):
		return apply.Failure{Reason: apply.ReasonKindNotServed, Message: err.Error()}
	}
	return apply.ClassifyShown(err, words)
}
