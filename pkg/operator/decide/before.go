package decide

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

// BeforePassed reports whether what the status records lets the downstreams go.
func BeforePassed(s *operator.Settings, r *status.Recorded) bool {
	if r == nil || s.Config.Deletion.Before == nil {
		return r != nil && operator.State(r.State) == operator.StateBeforeFinished
	}
	switch operator.State(r.State) {
	case operator.StateBeforeFinished:
		return true
	case operator.StateBeforeFailed:
		return s.Config.Deletion.Before.OnFailure == config.BeforeProceed
	case operator.StateBeforeTimedOut:
		return s.Config.Deletion.Before.OnTimeout == config.BeforeProceed
	}
	return false
}

// decideBefore says how far deletion.before has come and what is to be done about it. passed reports that the
// downstreams may go, once the outcome asks for nothing more.
func decideBefore(s *operator.Settings, in operator.Input) (o operator.Outcome, passed bool) {
	f := &in.Before
	if BeforePassed(s, f.Record) {
		return decidePassed(s, f), true
	}
	o = decideUntimed(s, in)
	neverMade := o.State == operator.StateBeforeFailed && o.UID == ""
	mayTimeOut := o.State != operator.StateBeforeFinished && o.State != operator.StateBeforeFailed ||
		neverMade && s.Config.Deletion.Before.OnFailure != config.BeforeProceed &&
			s.Config.Deletion.Before.OnTimeout == config.BeforeProceed
	left := beforeTimeLeft(s, in)
	if mayTimeOut && left > 0 && (o.RequeueAfter == 0 || left < o.RequeueAfter) {
		o.RequeueAfter = left
	}
	switch {
	case mayTimeOut && left < 0:
		o = timedOut(s, o)
	case neverMade:
		o.Message = withPolicy(s, "onFailure", s.Config.Deletion.Before.OnFailure, o.Message, otherWay(s))
	}
	o.Action = firstAction(s, f, o)
	return o, false
}

// firstAction is what is done first for an outcome: it is recorded; or the object gets the labels without which no
// watch shows when it has finished.
func firstAction(s *operator.Settings, f *operator.BeforeFacts, o operator.Outcome) operator.Action {
	switch {
	case NeedsRecord(o) && !recordedAlready(f.Record, BeforeRecord(s, o)):
		return operator.ActionRecord
	case o.Action == operator.ActionNone && o.Live != nil && o.Live.Unselected && !o.Theirs && !o.Live.Deleting:
		return operator.ActionReplaceMarks
	}
	return o.Action
}

// decidePassed is about an object whose outcome is recorded: our finalizer comes off.
func decidePassed(s *operator.Settings, f *operator.BeforeFacts) operator.Outcome {
	o := operator.Outcome{Downstream: operator.BeforeIndex, State: operator.State(f.Record.State),
		UID: f.Record.UID, Live: f.Live,
		Target:  operator.Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName},
		Message: recordedText(s, f.Record) + " finished"}
	switch {
	case o.State == operator.StateBeforeFinished && o.Target.Name == "":
		o.Message = "deletion.before is not needed: when is false, or its state was set to " +
			string(operator.StateBeforeFinished)
	case o.State == operator.StateBeforeFailed:
		o.Message = recordedText(s, f.Record) + " failed, and onFailure is " + string(config.BeforeProceed)
	case o.State == operator.StateBeforeTimedOut:
		o.Message = recordedText(s, f.Record) + " did not finish in time, and onTimeout is " + string(config.BeforeProceed)
	}
	if f.Live != nil {
		o.UID = f.Live.UID
	}
	if marks.HasOurFinalizer(s, f.Live) {
		o.Action = operator.ActionFree
	}
	return o
}

func recordedText(s *operator.Settings, r *status.Recorded) string {
	return strings.TrimSpace(s.Config.Deletion.Before.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.ObjectName, "/"))
}

// decideUntimed is how the object is doing, time aside.
func decideUntimed(s *operator.Settings, in operator.Input) operator.Outcome {
	f := &in.Before
	o := operator.Outcome{Downstream: operator.BeforeIndex, Target: f.Desired.Target, Live: f.Live}
	var missing *operator.WaitingError
	switch made := madeUID(f, in.Upstream.GetUID()); {
	case made != "":
		return decideMade(s, in, made)
	case f.Desired.Err == nil && !f.Desired.Wanted:
		o.State, o.Message = operator.StateBeforeFinished, "deletion.before is not needed: when is false"
	case errors.As(f.Desired.Err, &missing):
		o.State, o.Message = operator.StateWaiting, missing.Message
	case f.Desired.Err != nil:
		if o.State, o.Message = operator.StateRenderFailed, f.Desired.Err.Error(); f.Desired.CutShort {
			o.RequeueAfter = beforeAgain
		}
	case f.Live != nil && f.Live.Deleting:
		o.State, o.Theirs = operator.StateWaiting, true
		o.Message = fmt.Sprintf("%s %s is being deleted; deletion.before is created once it is gone",
			s.Config.Deletion.Before.Kind, f.Desired.Target)
	case f.Live != nil:
		o.State, o.Message = decideOccupied(s, in)
		o.Theirs = true
	case f.CannotCreate, f.Record != nil && operator.State(f.Record.State) == operator.StateBeforeFailed:
		o.State = operator.StateBeforeFailed
		o.Message = fmt.Sprintf("%s %s cannot be created: namespace %s is being deleted",
			s.Config.Deletion.Before.Kind, f.Desired.Target, f.Desired.Target.Namespace)
		if s.Config.Deletion.Before.OnFailure != config.BeforeProceed { // a later namespace of that name would do
			o.Action = operator.ActionCreate
		}
	default:
		o.State, o.Action = operator.StateCreate, operator.ActionCreate
		o.Message = fmt.Sprintf("%s %s is created before anything is deleted",
			s.Config.Deletion.Before.Kind, f.Desired.Target)
	}
	return o
}

// decideOccupied is about an object that was not made for this deletion, where the one of deletion.before shall stand.
func decideOccupied(s *operator.Settings, in operator.Input) (operator.State, string) {
	f := &in.Before
	what := s.Config.Deletion.Before.Kind + " " + f.Desired.Target.String()
	owner, earlier := marks.OwnerIn(f.Live, in.Upstream)
	if earlier {
		return operator.StateWaiting,
			fmt.Sprintf("%s belongs to %s: deletion.before is created once the garbage collector has deleted it", what, owner)
	}
	if owner != "" && !marks.Marked(f.Live, in.Upstream.GetUID()) {
		what += ", which belongs to " + owner + ","
	}
	return operator.StateConflict,
		what + " exists and was not made by deletion.before: delete it, or give the template another name"
}

// beforeAgain is after how long an expression of deletion.before is tried again that got no time to end.
const beforeAgain = 30 * time.Second

// decideMade is about an object that was made: it is never made again for the same deletion.
func decideMade(s *operator.Settings, in operator.Input, uid types.UID) operator.Outcome {
	f := &in.Before
	o := operator.Outcome{Downstream: operator.BeforeIndex, UID: uid, Live: f.Live}
	if f.Live == nil || f.Live.UID != uid {
		o.Live = nil
		if f.Record != nil {
			o.Target = operator.Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName}
		}
		o.State = operator.StateBeforeFailed
		o.Message = withPolicy(s, "onFailure", s.Config.Deletion.Before.OnFailure,
			describeBefore(s, o)+" disappeared before it finished", "")
		return o
	}
	o.Target = operator.RefOf(f.Live)
	switch now := f.Progress(f.Live); {
	case now.Failed:
		o.State = operator.StateBeforeFailed
		o.Message = withPolicy(s, "onFailure", s.Config.Deletion.Before.OnFailure,
			describeBefore(s, o)+" failed: failedWhen is true", "fix it, or ")
	case now.TookTooLong:
		o.State, o.RequeueAfter = operator.StateBeforeRunning, beforeAgain
		o.Message = fmt.Sprintf("whether %s has finished takes too long to find out, and is tried again: "+
			"make the expressions look at less", describeBefore(s, o))
	case now.Err == nil && now.Done:
		o.State, o.Message = operator.StateBeforeFinished, describeBefore(s, o)+" finished"
	case f.Live.Deleting:
		o.State = operator.StateBeforeFailed
		o.Message = withPolicy(s, "onFailure", s.Config.Deletion.Before.OnFailure,
			describeBefore(s, o)+" was deleted before it finished", "")
	case now.Err != nil:
		o.State, o.Message = operator.StateBeforeRunning, fmt.Sprintf("waiting for %s to finish: doneWhen: %v",
			describeBefore(s, o), now.Err)
	default:
		o.State, o.Message = operator.StateBeforeRunning, fmt.Sprintf("waiting for %s to finish", describeBefore(s, o))
	}
	return o
}

func describeBefore(s *operator.Settings, o operator.Outcome) string {
	return s.Config.Deletion.Before.Kind + " " + o.Target.String()
}

// otherWay is what the author of an upstream can do about an object that was not made.
func otherWay(s *operator.Settings) string {
	if when := s.Config.Deletion.Before.When; when == "" || when == "true" {
		return ""
	}
	return "change the upstream so that deletion.before.when is false, "
}

// withPolicy says what the policy makes of a failure, and what a person can do about it.
func withPolicy(s *operator.Settings, key string, policy config.BeforePolicy, what, other string) string {
	if policy == config.BeforeProceed {
		return fmt.Sprintf("%s; %s is %s", what, key, config.BeforeProceed)
	}
	return fmt.Sprintf("%s; nothing is deleted: %sset deletion.before.%s: %s, or, for this upstream only, the state of "+
		"%s in its %s to %s",
		what, other, key, config.BeforeProceed, operator.BeforeName, s.Config.Status.Downstreams,
		operator.StateBeforeFinished)
}

// timedOut is what becomes of an outcome after the timeout. Where the policy is to hold, the work goes on: it may still
// come to its end.
func timedOut(s *operator.Settings, o operator.Outcome) operator.Outcome {
	b := s.Config.Deletion.Before
	text := fmt.Sprintf("not finished within %s: %s", time.Duration(b.Timeout), o.Message)
	o.State, o.Message = operator.StateBeforeTimedOut, withPolicy(s, "onTimeout", b.OnTimeout, text, "fix it, or ")
	if b.OnTimeout == config.BeforeProceed {
		o.Action = operator.ActionNone
	}
	return o
}

// beforeTimeLeft is how long deletion.before may still take: negative once the time is over, zero where there is no
// limit.
func beforeTimeLeft(s *operator.Settings, in operator.Input) time.Duration {
	since := in.Upstream.GetDeletionTimestamp()
	if s.Config.Deletion.Before.Timeout <= 0 || since == nil {
		return 0
	}
	if left := since.Add(time.Duration(s.Config.Deletion.Before.Timeout)).Sub(in.Now); left > 0 {
		return left
	}
	return -1
}

// BeforeRecord is what the status shall say of an outcome of deletion.before. Where an object is about to be made, it
// names the place without a uid: after a crash, what exists there is known for ours.
func BeforeRecord(s *operator.Settings, o operator.Outcome) status.Recorded {
	if o.Earlier != nil {
		r := *o.Earlier
		r.UID, r.State = o.UID, string(o.State)
		return r
	}
	before := s.Config.Deletion.Before
	r := status.Recorded{Name: operator.BeforeName, APIVersion: before.APIVersion,
		Kind: before.Kind, State: string(o.State)}
	if !o.Theirs && o.Target.Name != "" {
		r.Namespace, r.ObjectName, r.UID = o.Target.Namespace, o.Target.Name, o.UID
	}
	return r
}

// NeedsRecord is about the outcomes without whose record nothing may go on. An error of the template and a missing
// input are reported by conditions.
func NeedsRecord(o operator.Outcome) bool {
	switch o.State {
	case operator.StateCreate, operator.StateBeforeRunning, operator.StateBeforeFinished, operator.StateBeforeFailed,
		operator.StateBeforeTimedOut:
		return true
	}
	return o.Theirs
}

// recordedAlready reports whether the status says that much. Of what is not ours it need say nothing, as long as it
// does not say that it was about to be made there.
func recordedAlready(have *status.Recorded, want status.Recorded) bool {
	state := operator.State(want.State)
	open := want.ObjectName == "" && state != operator.StateBeforeTimedOut && state != operator.StateBeforeFinished
	if have == nil {
		return open
	}
	if open {
		return have.ObjectName == ""
	}
	return have.State == want.State && have.UID == want.UID && have.Namespace == want.Namespace &&
		have.ObjectName == want.ObjectName
}

// madeUID is the uid of the object that was made for this deletion: this process made it, or the status records it, or
// an object that exists where it was about to be made proves it.
func madeUID(f *operator.BeforeFacts, upstream types.UID) types.UID {
	switch r := f.Record; {
	case f.Made != "":
		return f.Made
	case r != nil && r.UID != "":
		return r.UID
	case f.Live != nil && marks.MadeForDeletion(f.Live, upstream):
		return f.Live.UID
	}
	return ""
}
