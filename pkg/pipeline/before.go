package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// HookName is what status, metrics and events call the object of deletion.before. The dot keeps it apart from every
// downstream's name.
const HookName = "deletion.before"

// HookIndex stands in Outcome.Downstream for the object of deletion.before.
const HookIndex = -1

// hookHash begins the hash of such an object. It is what tells one from a downstream of the same kind, labels and owner,
// whatever becomes of the template that named it.
const hookHash = "hook-"

// Hook is the compiled deletion.before.
type Hook struct {
	Config *config.Before
	// Object has what it shares with a downstream: kind, view, selector and template. It is none of Pipeline.Downstreams.
	Object *Downstream

	done, failed *rules.Program
	quiet        bool // their errors may quote a value of a Secret
}

// HookFacts are what is known of the object of deletion.before while its upstream is being deleted.
type HookFacts struct {
	// Record is what the upstream's status has of it; nil where it has nothing.
	Record *status.Recorded
	// Made is the uid of the object that this process made; empty where it made none.
	Made types.UID
	// Desired is what is to be made; ignored once something was made.
	Desired DesiredDownstream
	// Live is the object that was made, or else what stands where it was recorded to be made or shall stand.
	Live *drift.Live
	// Inputs are what doneWhen and failedWhen may read.
	Inputs Inputs
}

// IsHook tells whether a live object of ours was made by deletion.before.
func IsHook(live *drift.Live) bool { return strings.HasPrefix(live.Hash, hookHash) }

// MadeBefore tells whether live was made by deletion.before for the deletion of the upstream with this uid, as far as the
// API server's own record tells.
func MadeBefore(live *drift.Live, upstream types.UID) bool {
	return IsHook(live) && Applied(live, upstream)
}

// HoldsDeletion tells whether an upstream is held by the finalizer while it is being deleted, whatever stands.
func (p *Pipeline) HoldsDeletion() bool { return p.Config.Deletion.Wait || p.Hook != nil }

// DesiredHook renders the object of deletion.before. Its document bears the config's finalizer, so that neither a person nor
// a time to live can make it vanish before its outcome is recorded.
func (p *Pipeline) DesiredHook(upstream *unstructured.Unstructured, in Inputs) DesiredDownstream {
	h := p.Hook.Object
	if err := h.unserved(); err != nil {
		return DesiredDownstream{Err: err}
	}
	if err := in.problem(h.inputs); err != nil {
		return DesiredDownstream{Err: err}
	}
	w, err := p.document(h, upstream, in)
	if err != nil {
		return DesiredDownstream{Err: err}
	}
	w.document["metadata"].(map[string]any)["finalizers"] = []any{p.Config.Conventions.Finalizer}
	return *w
}

// HookDocument is the document to send for a desired state of HookWish.
func (p *Pipeline) HookDocument(w *DesiredDownstream) map[string]any { return w.document }

// RecordedHook is what the upstream's status has of the object of deletion.before; nil where it has nothing.
func (p *Pipeline) RecordedHook(upstream *unstructured.Unstructured) *status.Recorded {
	if !p.StatusEnabled() || p.downstreamsPath == nil {
		return nil
	}
	list, ok := fieldpath.Get(upstream.Object, p.downstreamsPath)
	if !ok {
		return nil
	}
	all := status.RecordedFrom(list)
	i := slices.IndexFunc(all, func(r status.Recorded) bool { return r.Name == HookName })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// FormerHook is what the upstream's status has of an object that was made when the config had a deletion.before of another
// kind, or one at all; nil where it has nothing of that. A status that is written like any other field of the upstream has
// nothing: no config with a deletion.before is taken for such a kind, so whoever may write the upstream wrote that.
func (p *Pipeline) FormerHook(upstream *unstructured.Unstructured) *status.Recorded {
	r := p.RecordedHook(upstream)
	if r == nil || r.UID == "" || r.Kind == "" || !p.Upstream.HasStatus {
		return nil
	}
	if p.Hook != nil && schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind() == p.Hook.Object.GVK().GroupKind() {
		return nil
	}
	return r
}

// HookPassed tells whether what the status records lets the downstreams go.
func (p *Pipeline) HookPassed(r *status.Recorded) bool {
	if r == nil || p.Hook == nil {
		return false
	}
	switch State(r.State) {
	case StateHookFinished:
		return true
	case StateHookFailed:
		return p.Hook.Config.OnFailure == config.BeforeProceed
	case StateHookTimedOut:
		return p.Hook.Config.OnTimeout == config.BeforeProceed
	}
	return false
}

// HookHeld tells whether a live object of deletion.before bears the config's finalizer, or the one that it named before.
func (p *Pipeline) HookHeld(live *drift.Live) bool {
	return live != nil && slices.ContainsFunc(p.Config.Conventions.Finalizers(), func(name string) bool {
		return slices.Contains(HookFinalizers(live), any(name))
	})
}

// HookFinalizers are the finalizers of a live object of deletion.before, which its view keeps.
func HookFinalizers(live *drift.Live) []any {
	meta, _ := live.Kept["metadata"].(map[string]any)
	list, _ := meta["finalizers"].([]any)
	return list
}

// decideHook says how far deletion.before has come and what is to be done about it. passed tells that the downstreams may
// go, once the outcome asks for nothing more.
func (p *Pipeline) decideHook(in Input) (o Outcome, passed bool) {
	f := &in.Hook
	if p.HookPassed(f.Record) {
		return p.passedHook(f), true
	}
	o = p.hookNow(in)
	left := p.hookTimeLeft(in)
	switch {
	case o.State == StateHookFinished, o.State == StateHookFailed:
	case left > 0:
		o.RequeueAfter = left
	case left < 0:
		o = p.timedOut(o)
	}
	if needsRecord(o) && !recordedAlready(f.Record, p.HookRecord(o)) {
		o.Action = ActionRecord
	}
	return o, false
}

// passedHook is about an object whose outcome is recorded: our finalizer comes off.
func (p *Pipeline) passedHook(f *HookFacts) Outcome {
	o := Outcome{Downstream: HookIndex, State: State(f.Record.State), UID: f.Record.UID, Live: f.Live,
		Target: Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName}, Message: p.hookText(f.Record) + " has done its work"}
	switch o.State {
	case StateHookFailed:
		o.Message = p.hookText(f.Record) + " failed, and onFailure is " + string(config.BeforeProceed)
	case StateHookTimedOut:
		o.Message = p.hookText(f.Record) + " was not done in time, and onTimeout is " + string(config.BeforeProceed)
	}
	if f.Live != nil {
		o.UID = f.Live.UID
	}
	if p.HookHeld(f.Live) {
		o.Action = ActionFree
	}
	return o
}

func (p *Pipeline) hookText(r *status.Recorded) string {
	return strings.TrimSpace(p.Hook.Config.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.ObjectName, "/"))
}

// hookNow is how the object is doing, time aside.
func (p *Pipeline) hookNow(in Input) Outcome {
	f := &in.Hook
	o := Outcome{Downstream: HookIndex, Target: f.Desired.Target, Live: f.Live}
	var missing *waiting
	switch made := f.made(in.Upstream.GetUID()); {
	case made != "":
		return p.hookMade(in, made)
	case errors.As(f.Desired.Err, &missing):
		o.State, o.Message = StateWaiting, missing.message
	case f.Desired.Err != nil:
		o.State, o.Message = StateRenderFailed, f.Desired.Err.Error()
	case f.Live != nil && f.Live.Deleting:
		o.State, o.Theirs, o.Message = StateWaiting, true, fmt.Sprintf("%s %s is being deleted; deletion.before is made once it is gone", p.Hook.Config.Kind, f.Desired.Target)
	case f.Live != nil:
		o.State, o.Message = p.inTheWayOfHook(in)
		o.Theirs = true
	default:
		o.State, o.Action, o.Message = StateCreate, ActionCreate, fmt.Sprintf("%s %s is being made before anything is deleted", p.Hook.Config.Kind, f.Desired.Target)
	}
	return o
}

// inTheWayOfHook is about an object that was not made for this deletion, where the one of deletion.before shall stand.
func (p *Pipeline) inTheWayOfHook(in Input) (State, string) {
	f := &in.Hook
	what := p.Hook.Config.Kind + " " + f.Desired.Target.String()
	owner, earlier := ownerIn(f.Live, in.Upstream)
	if earlier {
		return StateWaiting, fmt.Sprintf("%s belongs to %s: deletion.before is made once the garbage collector has deleted that", what, owner)
	}
	if owner != "" && !Marked(f.Live, in.Upstream.GetUID()) {
		what += ", which belongs to " + owner + ","
	}
	return StateConflict, what + " exists and was not made by deletion.before: delete it, or give the template another name"
}

// made is the uid of the object that was made for this deletion: this process made it, or the status records it, or an
// object that exists where it was about to be made proves it.
func (f *HookFacts) made(upstream types.UID) types.UID {
	switch r := f.Record; {
	case f.Made != "":
		return f.Made
	case r != nil && r.UID != "":
		return r.UID
	case f.Live != nil && MadeBefore(f.Live, upstream):
		return f.Live.UID
	}
	return ""
}

// hookMade is about an object that was made: it is never made again for the same deletion.
func (p *Pipeline) hookMade(in Input, uid types.UID) Outcome {
	f := &in.Hook
	o := Outcome{Downstream: HookIndex, UID: uid, Live: f.Live}
	if f.Live == nil || f.Live.UID != uid {
		o.Live = nil
		if f.Record != nil {
			o.Target = Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName}
		}
		o.State = StateHookFailed
		o.Message = p.heldBy("onFailure", p.Hook.Config.OnFailure, p.what(o)+" was gone before it was done", "")
		return o
	}
	o.Target = refOf(f.Live)
	vars, budget := p.vars(in.Upstream, f.Inputs), rules.NewBudget(context.Background())
	vars.Downstream = f.Live.Kept
	failed, err := p.Hook.failed.Eval(vars, budget)
	if err == nil && failed == true {
		o.State = StateHookFailed
		o.Message = p.heldBy("onFailure", p.Hook.Config.OnFailure, p.what(o)+" failed: failedWhen is true", "fix it, or ")
		return o
	}
	done, err := p.Hook.done.Eval(vars, budget)
	switch {
	case err == nil && done == true:
		o.State, o.Message = StateHookFinished, p.what(o)+" has done its work"
	case f.Live.Deleting:
		o.State = StateHookFailed
		o.Message = p.heldBy("onFailure", p.Hook.Config.OnFailure, p.what(o)+" was deleted before it was done", "")
	case err != nil:
		o.State, o.Message = StateHookRunning, fmt.Sprintf("waiting for %s to be done: doneWhen: %v", p.what(o), quietly(p.Hook.quiet, err))
	default:
		o.State, o.Message = StateHookRunning, fmt.Sprintf("waiting for %s to be done", p.what(o))
	}
	return o
}

func (p *Pipeline) what(o Outcome) string { return p.Hook.Config.Kind + " " + o.Target.String() }

// heldBy says what the policy makes of a failure, and what a person can do about it.
func (p *Pipeline) heldBy(key string, policy config.BeforePolicy, what, other string) string {
	if policy == config.BeforeProceed {
		return fmt.Sprintf("%s; %s is %s", what, key, config.BeforeProceed)
	}
	return fmt.Sprintf("%s; nothing is deleted: %sset deletion.before.%s: %s, or for this one alone the state of %s in its %s to %s",
		what, other, key, config.BeforeProceed, HookName, p.Config.Status.Downstreams, StateHookFinished)
}

// timedOut is what becomes of an outcome after the timeout. Where the policy is to hold, the work goes on: it may still
// come to its end.
func (p *Pipeline) timedOut(o Outcome) Outcome {
	b := p.Hook.Config
	text := fmt.Sprintf("not done within %s: %s", time.Duration(b.Timeout), o.Message)
	o.State, o.Message = StateHookTimedOut, p.heldBy("onTimeout", b.OnTimeout, text, "see to it, or ")
	if b.OnTimeout == config.BeforeProceed {
		o.Action = ActionNone
	}
	return o
}

// hookTimeLeft is how long deletion.before may still take: negative once the time is over, zero where there is no limit.
func (p *Pipeline) hookTimeLeft(in Input) time.Duration {
	since := in.Upstream.GetDeletionTimestamp()
	if p.Hook.Config.Timeout <= 0 || since == nil {
		return 0
	}
	if left := since.Add(time.Duration(p.Hook.Config.Timeout)).Sub(in.Now); left > 0 {
		return left
	}
	return -1
}

// HookRecord is what the status shall say of an outcome of deletion.before. Where an object is about to be made, it names
// the place without a uid: after a crash, what stands there is known for ours.
func (p *Pipeline) HookRecord(o Outcome) status.Recorded {
	r := status.Recorded{Name: HookName, APIVersion: p.Hook.Config.APIVersion, Kind: p.Hook.Config.Kind, State: string(o.State)}
	if !o.Theirs && o.Target.Name != "" {
		r.Namespace, r.ObjectName, r.UID = o.Target.Namespace, o.Target.Name, o.UID
	}
	return r
}

// needsRecord tells of the outcomes without whose record nothing may go on. An error of the template and a missing input
// are told by conditions.
func needsRecord(o Outcome) bool {
	switch o.State {
	case StateCreate, StateHookRunning, StateHookFinished, StateHookFailed, StateHookTimedOut:
		return true
	}
	return o.Theirs
}

// recordedAlready tells whether the status says that much. Of what is not ours it need say nothing, as long as it does not
// say that it was about to be made there.
func recordedAlready(have *status.Recorded, want status.Recorded) bool {
	if have == nil {
		return want.ObjectName == "" && State(want.State) != StateHookTimedOut
	}
	if want.ObjectName == "" && State(want.State) != StateHookTimedOut {
		return have.ObjectName == ""
	}
	return have.State == want.State && have.UID == want.UID && have.Namespace == want.Namespace && have.ObjectName == want.ObjectName
}
