package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// BeforeName is what status, metrics and events call the object of deletion.before. The dot keeps it apart from every
// downstream's name.
const BeforeName = "deletion.before"

// BeforeIndex stands in Outcome.Downstream for the object of deletion.before.
const BeforeIndex = -1

// beforeHashPrefix begins the hash of such an object. It is what tells one from a downstream of the same kind, labels and owner,
// whatever becomes of the template that named it.
const beforeHashPrefix = "before-"

// BeforeObject is the compiled deletion.before.
type BeforeObject struct {
	Config *config.Before
	// Object has what it shares with a downstream: kind, view, selector and template. It is none of Pipeline.Downstreams.
	Object *Downstream

	done, failed *rules.Program
	hidesValues  bool // their errors may quote a value of a Secret
}

// BeforeFacts are what is known of the object of deletion.before while its upstream is being deleted.
type BeforeFacts struct {
	// Record is what the upstream's status has of it; nil if it has nothing.
	Record *status.Recorded
	// Made is the uid of the object that this process made; empty if it made none.
	Made types.UID
	// Desired is what is to be made; ignored once something was made.
	Desired DesiredObject
	// Live is the object that was made, or else what stands where it was recorded to be made or shall stand; also of an earlier
	// deletion.before.
	Live *drift.Live
	// Inputs are what doneWhen and failedWhen may read.
	Inputs Inputs
	// Unread is why the object of an earlier deletion.before may not be read; empty if it may.
	Unread string
	// CannotCreate is true if the last create was refused because the namespace is being deleted.
	CannotCreate bool
}

// IsBeforeObject reports whether a live object of ours was made by deletion.before.
func IsBeforeObject(live *drift.Live) bool { return strings.HasPrefix(live.Hash, beforeHashPrefix) }

// MadeForDeletion reports whether live was made by deletion.before for the deletion of the upstream with this uid, as far as the
// API server's own record tells.
func MadeForDeletion(live *drift.Live, upstream types.UID) bool {
	return IsBeforeObject(live) && Applied(live, upstream)
}

// HoldsDeletion reports whether an upstream is held by the finalizer while it is being deleted, whatever stands.
func (p *Pipeline) HoldsDeletion() bool { return p.Config.Deletion.Wait || p.Before != nil }

// DesiredBefore renders the object of deletion.before; it is not wanted if `when` is false. Its document has the config's finalizer, so that neither a person nor
// a time to live can make it vanish before its outcome is recorded.
func (p *Pipeline) DesiredBefore(upstream *unstructured.Unstructured, in Inputs) DesiredObject {
	h := p.Before.Object
	if wanted, err := p.wantsBefore(upstream, in); err != nil || !wanted {
		return DesiredObject{Err: err}
	}
	if err := h.unserved(); err != nil {
		return DesiredObject{Err: err}
	}
	if err := in.problem(h.inputs); err != nil {
		return DesiredObject{Err: err}
	}
	w, err := p.document(h, upstream, in)
	if err != nil {
		return DesiredObject{Err: err}
	}
	w.document["metadata"].(map[string]any)["finalizers"] = []any{p.Config.Conventions.Finalizer}
	w.Wanted = true
	return *w
}

// wantsBefore evaluates deletion.before.when.
func (p *Pipeline) wantsBefore(upstream *unstructured.Unstructured, in Inputs) (bool, error) {
	h := p.Before.Object
	if h.when == nil {
		return true, nil
	}
	if err := in.problem(h.whenInputs); err != nil {
		return false, err
	}
	wanted, err := h.when.Eval(p.vars(upstream, in), rules.NewBudget(context.Background()))
	if err != nil {
		return false, hideValues(p.Before.hidesValues, redact.Errorf("evaluating deletion.before.when: %w", err))
	}
	return wanted == true, nil
}

// BeforeDocument is the document to send for a desired state of DesiredBefore.
func (p *Pipeline) BeforeDocument(w *DesiredObject) map[string]any { return w.document }

// RecordedBefore is what the upstream's status has of the object of deletion.before; nil if it has nothing.
func (p *Pipeline) RecordedBefore(upstream *unstructured.Unstructured) *status.Recorded {
	if !p.StatusEnabled() || p.downstreamsPath == nil {
		return nil
	}
	list, ok := fieldpath.Get(upstream.Object, p.downstreamsPath)
	if !ok {
		return nil
	}
	all := status.RecordedFrom(list)
	i := slices.IndexFunc(all, func(r status.Recorded) bool { return r.Name == BeforeName })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// WithBeforeRecord is an upstream whose status has that record of deletion.before.
func (p *Pipeline) WithBeforeRecord(upstream *unstructured.Unstructured, r status.Recorded) *unstructured.Unstructured {
	upstream = upstream.DeepCopy()
	have, _ := fieldpath.Get(upstream.Object, p.downstreamsPath)
	list := slices.DeleteFunc(status.RecordedFrom(have), func(old status.Recorded) bool { return old.Name == BeforeName })
	_ = fieldpath.Set(upstream.Object, p.downstreamsPath, status.RecordedList(append(list, r))) // the loader lets only maps stand on the way
	return upstream
}

// BeforePassed reports whether what the status records lets the downstreams go.
func (p *Pipeline) BeforePassed(r *status.Recorded) bool {
	if r == nil || p.Before == nil {
		return r != nil && State(r.State) == StateBeforeFinished
	}
	switch State(r.State) {
	case StateBeforeFinished:
		return true
	case StateBeforeFailed:
		return p.Before.Config.OnFailure == config.BeforeProceed
	case StateBeforeTimedOut:
		return p.Before.Config.OnTimeout == config.BeforeProceed
	}
	return false
}

// HasOurFinalizer reports whether a deletion.before object has the config's finalizer, current or previous.
func (p *Pipeline) HasOurFinalizer(live *drift.Live) bool {
	return live != nil && slices.ContainsFunc(p.Config.Conventions.Finalizers(), func(name string) bool {
		return slices.Contains(KeptFinalizers(live), any(name))
	})
}

// KeptFinalizers are the finalizers of a live object of deletion.before, which its view keeps.
func KeptFinalizers(live *drift.Live) []any {
	meta, _ := live.Kept["metadata"].(map[string]any)
	list, _ := meta["finalizers"].([]any)
	return list
}

// decideBefore says how far deletion.before has come and what is to be done about it. passed tells that the downstreams may
// go, once the outcome asks for nothing more.
func (p *Pipeline) decideBefore(in Input) (o Outcome, passed bool) {
	f := &in.Before
	if p.BeforePassed(f.Record) {
		return p.decidePassed(f), true
	}
	o = p.decideUntimed(in)
	neverMade := o.State == StateBeforeFailed && o.UID == ""
	mayTimeOut := o.State != StateBeforeFinished && o.State != StateBeforeFailed ||
		neverMade && p.Before.Config.OnFailure != config.BeforeProceed && p.Before.Config.OnTimeout == config.BeforeProceed
	left := p.beforeTimeLeft(in)
	if mayTimeOut && left > 0 && (o.RequeueAfter == 0 || left < o.RequeueAfter) {
		o.RequeueAfter = left
	}
	switch {
	case mayTimeOut && left < 0:
		o = p.timedOut(o)
	case neverMade:
		o.Message = p.withPolicy("onFailure", p.Before.Config.OnFailure, o.Message, p.otherWay())
	}
	if needsRecord(o) && !recordedAlready(f.Record, p.BeforeRecord(o)) {
		o.Action = ActionRecord
	}
	return o, false
}

// decidePassed is about an object whose outcome is recorded: our finalizer comes off.
func (p *Pipeline) decidePassed(f *BeforeFacts) Outcome {
	o := Outcome{Downstream: BeforeIndex, State: State(f.Record.State), UID: f.Record.UID, Live: f.Live,
		Target: Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName}, Message: p.recordedText(f.Record) + " finished"}
	switch {
	case o.State == StateBeforeFinished && o.Target.Name == "":
		o.Message = "deletion.before is not needed: when is false, or its state was set to " + string(StateBeforeFinished)
	case o.State == StateBeforeFailed:
		o.Message = p.recordedText(f.Record) + " failed, and onFailure is " + string(config.BeforeProceed)
	case o.State == StateBeforeTimedOut:
		o.Message = p.recordedText(f.Record) + " did not finish in time, and onTimeout is " + string(config.BeforeProceed)
	}
	if f.Live != nil {
		o.UID = f.Live.UID
	}
	if p.HasOurFinalizer(f.Live) {
		o.Action = ActionFree
	}
	return o
}

func (p *Pipeline) recordedText(r *status.Recorded) string {
	return strings.TrimSpace(p.Before.Config.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.ObjectName, "/"))
}

// decideUntimed is how the object is doing, time aside.
func (p *Pipeline) decideUntimed(in Input) Outcome {
	f := &in.Before
	o := Outcome{Downstream: BeforeIndex, Target: f.Desired.Target, Live: f.Live}
	var missing *waiting
	switch made := f.madeUID(in.Upstream.GetUID()); {
	case made != "":
		return p.decideMade(in, made)
	case f.Desired.Err == nil && !f.Desired.Wanted:
		o.State, o.Message = StateBeforeFinished, "deletion.before is not needed: when is false"
	case errors.As(f.Desired.Err, &missing):
		o.State, o.Message = StateWaiting, missing.message
	case f.Desired.Err != nil:
		if o.State, o.Message = StateRenderFailed, f.Desired.Err.Error(); tookTooLong(f.Desired.Err) {
			o.RequeueAfter = beforeAgain
		}
	case f.Live != nil && f.Live.Deleting:
		o.State, o.Theirs, o.Message = StateWaiting, true, fmt.Sprintf("%s %s is being deleted; deletion.before is created once it is gone", p.Before.Config.Kind, f.Desired.Target)
	case f.Live != nil:
		o.State, o.Message = p.decideOccupied(in)
		o.Theirs = true
	case f.CannotCreate, f.Record != nil && State(f.Record.State) == StateBeforeFailed:
		o.State, o.Message = StateBeforeFailed, fmt.Sprintf("%s %s cannot be created: namespace %s is being deleted", p.Before.Config.Kind, f.Desired.Target, f.Desired.Target.Namespace)
		if p.Before.Config.OnFailure != config.BeforeProceed { // a later namespace of that name would do
			o.Action = ActionCreate
		}
	default:
		o.State, o.Action, o.Message = StateCreate, ActionCreate, fmt.Sprintf("%s %s is created before anything is deleted", p.Before.Config.Kind, f.Desired.Target)
	}
	return o
}

// decideOccupied is about an object that was not made for this deletion, where the one of deletion.before shall stand.
func (p *Pipeline) decideOccupied(in Input) (State, string) {
	f := &in.Before
	what := p.Before.Config.Kind + " " + f.Desired.Target.String()
	owner, earlier := ownerIn(f.Live, in.Upstream)
	if earlier {
		return StateWaiting, fmt.Sprintf("%s belongs to %s: deletion.before is created once the garbage collector has deleted it", what, owner)
	}
	if owner != "" && !Marked(f.Live, in.Upstream.GetUID()) {
		what += ", which belongs to " + owner + ","
	}
	return StateConflict, what + " exists and was not made by deletion.before: delete it, or give the template another name"
}

// madeUID is the uid of the object that was made for this deletion: this process made it, or the status records it, or an
// object that exists where it was about to be made proves it.
func (f *BeforeFacts) madeUID(upstream types.UID) types.UID {
	switch r := f.Record; {
	case f.Made != "":
		return f.Made
	case r != nil && r.UID != "":
		return r.UID
	case f.Live != nil && MadeForDeletion(f.Live, upstream):
		return f.Live.UID
	}
	return ""
}

// beforeAgain is after how long an expression of deletion.before is tried again that got no time to end.
const beforeAgain = 30 * time.Second

// decideMade is about an object that was made: it is never made again for the same deletion.
func (p *Pipeline) decideMade(in Input, uid types.UID) Outcome {
	f := &in.Before
	o := Outcome{Downstream: BeforeIndex, UID: uid, Live: f.Live}
	if f.Live == nil || f.Live.UID != uid {
		o.Live = nil
		if f.Record != nil {
			o.Target = Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName}
		}
		o.State = StateBeforeFailed
		o.Message = p.withPolicy("onFailure", p.Before.Config.OnFailure, p.describe(o)+" disappeared before it finished", "")
		return o
	}
	o.Target = refOf(f.Live)
	vars, budget := p.vars(in.Upstream, f.Inputs), rules.NewBudget(context.Background())
	vars.Downstream = f.Live.Kept
	failed, err := p.Before.failed.Eval(vars, budget)
	if err == nil && failed == true {
		o.State = StateBeforeFailed
		o.Message = p.withPolicy("onFailure", p.Before.Config.OnFailure, p.describe(o)+" failed: failedWhen is true", "fix it, or ")
		return o
	}
	done, err := p.Before.done.Eval(vars, budget)
	switch {
	case budget.Expired():
		o.State, o.RequeueAfter = StateBeforeRunning, beforeAgain
		o.Message = fmt.Sprintf("whether %s has finished takes too long to find out, and is tried again: make the expressions look at less", p.describe(o))
	case err == nil && done == true:
		o.State, o.Message = StateBeforeFinished, p.describe(o)+" finished"
	case f.Live.Deleting:
		o.State = StateBeforeFailed
		o.Message = p.withPolicy("onFailure", p.Before.Config.OnFailure, p.describe(o)+" was deleted before it finished", "")
	case err != nil:
		o.State, o.Message = StateBeforeRunning, fmt.Sprintf("waiting for %s to finish: doneWhen: %v", p.describe(o), hideValues(p.Before.hidesValues, err))
	default:
		o.State, o.Message = StateBeforeRunning, fmt.Sprintf("waiting for %s to finish", p.describe(o))
	}
	return o
}

func (p *Pipeline) describe(o Outcome) string { return p.Before.Config.Kind + " " + o.Target.String() }

// otherWay is what the author of an upstream can do about an object that was not made.
func (p *Pipeline) otherWay() string {
	if p.Before.Object.when == nil {
		return ""
	}
	return "change the upstream so that deletion.before.when is false, "
}

// withPolicy says what the policy makes of a failure, and what a person can do about it.
func (p *Pipeline) withPolicy(key string, policy config.BeforePolicy, what, other string) string {
	if policy == config.BeforeProceed {
		return fmt.Sprintf("%s; %s is %s", what, key, config.BeforeProceed)
	}
	return fmt.Sprintf("%s; nothing is deleted: %sset deletion.before.%s: %s, or, for this upstream only, the state of %s in its %s to %s",
		what, other, key, config.BeforeProceed, BeforeName, p.Config.Status.Downstreams, StateBeforeFinished)
}

// timedOut is what becomes of an outcome after the timeout. Where the policy is to hold, the work goes on: it may still
// come to its end.
func (p *Pipeline) timedOut(o Outcome) Outcome {
	b := p.Before.Config
	text := fmt.Sprintf("not finished within %s: %s", time.Duration(b.Timeout), o.Message)
	o.State, o.Message = StateBeforeTimedOut, p.withPolicy("onTimeout", b.OnTimeout, text, "fix it, or ")
	if b.OnTimeout == config.BeforeProceed {
		o.Action = ActionNone
	}
	return o
}

// beforeTimeLeft is how long deletion.before may still take: negative once the time is over, zero where there is no limit.
func (p *Pipeline) beforeTimeLeft(in Input) time.Duration {
	since := in.Upstream.GetDeletionTimestamp()
	if p.Before.Config.Timeout <= 0 || since == nil {
		return 0
	}
	if left := since.Add(time.Duration(p.Before.Config.Timeout)).Sub(in.Now); left > 0 {
		return left
	}
	return -1
}

// BeforeRecord is what the status shall say of an outcome of deletion.before. Where an object is about to be made, it names
// the place without a uid: after a crash, what stands there is known for ours.
func (p *Pipeline) BeforeRecord(o Outcome) status.Recorded {
	if o.Earlier != nil {
		r := *o.Earlier
		r.UID, r.State = o.UID, string(o.State)
		return r
	}
	r := status.Recorded{Name: BeforeName, APIVersion: p.Before.Config.APIVersion, Kind: p.Before.Config.Kind, State: string(o.State)}
	if !o.Theirs && o.Target.Name != "" {
		r.Namespace, r.ObjectName, r.UID = o.Target.Namespace, o.Target.Name, o.UID
	}
	return r
}

// needsRecord tells of the outcomes without whose record nothing may go on. An error of the template and a missing input
// are told by conditions.
func needsRecord(o Outcome) bool {
	switch o.State {
	case StateCreate, StateBeforeRunning, StateBeforeFinished, StateBeforeFailed, StateBeforeTimedOut:
		return true
	}
	return o.Theirs
}

// recordedAlready reports whether the status says that much. Of what is not ours it need say nothing, as long as it does not
// say that it was about to be made there.
func recordedAlready(have *status.Recorded, want status.Recorded) bool {
	open := want.ObjectName == "" && State(want.State) != StateBeforeTimedOut && State(want.State) != StateBeforeFinished
	if have == nil {
		return open
	}
	if open {
		return have.ObjectName == ""
	}
	return have.State == want.State && have.UID == want.UID && have.Namespace == want.Namespace && have.ObjectName == want.ObjectName
}
