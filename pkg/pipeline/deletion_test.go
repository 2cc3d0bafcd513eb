package pipeline

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

const beforeUID = types.UID("before-1")

var beforeTarget = Ref{Namespace: "apps", Name: "web-drain"}

// beforePipeline is onePipeline with a deletion.before, with what change does to its config.
func beforePipeline(t *testing.T, change func(*config.Operator)) *Pipeline {
	t.Helper()
	b := &config.Before{APIVersion: "v1", Kind: "ConfigMap", OnFailure: config.BeforeHold, OnTimeout: config.BeforeHold, Timeout: config.Duration(time.Hour)}
	p := onePipeline(func(op *config.Operator) {
		if op.Deletion.Before = b; change != nil {
			change(op)
		}
	})
	env, err := rules.NewEnv(rules.EnvOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rule := func(text string) *rules.Program {
		program, err := env.Bool(text, rules.Downstream, BeforeName)
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	when, err := env.Bool("self.spec.backup", rules.Upstream, BeforeName)
	if err != nil {
		t.Fatal(err)
	}
	p.Before = &BeforeObject{Config: b, Object: &Downstream{Index: BeforeIndex, Name: BeforeName, when: when},
		done: rule("downstream.data.done == 'yes'"), failed: rule("downstream.data.done == 'no'")}
	return p
}

// deleted is the input of an upstream whose deletion began a minute ago and whose downstream stands.
func deleted() Input {
	up := upstreamObject()
	since := metav1.NewTime(now.Add(-time.Minute))
	up.SetDeletionTimestamp(&since)
	return Input{Upstream: up, Now: now, HasFinalizer: true, Leftovers: []Owned{{Live: ourLive(), Certain: true}},
		Before: BeforeFacts{Desired: DesiredObject{Wanted: true, Target: beforeTarget}}}
}

func beforeLive(done string) *drift.Live {
	return &drift.Live{Namespace: beforeTarget.Namespace, Name: beforeTarget.Name, UID: beforeUID, ResourceVersion: "9", Hash: beforeHashPrefix + hash, Managed: true,
		Owners: []drift.OwnerRef{{Kind: "Thing", Name: "web", UID: upstreamUID, Controller: true, Applied: true}},
		Kept: map[string]any{"data": map[string]any{"done": done},
			"metadata": map[string]any{"finalizers": []any{"tools.example.com/cleanup"}}}}
}

func beforeRecord(state State, uid types.UID) *status.Recorded {
	return &status.Recorded{Name: BeforeName, APIVersion: "v1", Kind: "ConfigMap", Namespace: beforeTarget.Namespace, ObjectName: beforeTarget.Name, UID: uid, State: string(state)}
}

// beforeForged puts an object in the way that has our marks and that our field manager did not apply.
func beforeForged(in *Input) {
	in.Before.Live = beforeLive("yes")
	in.Before.Live.Owners[0].Applied = false
}

func TestDecideBefore(t *testing.T) {
	proceed := func(op *config.Operator) {
		op.Deletion.Before.OnFailure, op.Deletion.Before.OnTimeout = config.BeforeProceed, config.BeforeProceed
	}
	late := func(in *Input) { in.Now = now.Add(2 * time.Hour) }
	running := func(done string) func(*Input) {
		return func(in *Input) {
			in.Before.Record, in.Before.Live = beforeRecord(StateBeforeRunning, beforeUID), beforeLive(done)
		}
	}
	both := func(list ...func(*Input)) func(*Input) {
		return func(in *Input) {
			for _, change := range list {
				change(in)
			}
		}
	}
	for _, row := range []struct {
		name, reason string
		config       func(*config.Operator)
		change       func(*Input)
		state        State
		action       Action
		passed       bool
		message      string
	}{
		{name: "nothing yet", reason: "where it will stand is recorded before it is made", state: StateCreate, action: ActionRecord},
		{name: "about to be made", reason: "the record is there, so it is made",
			change: func(in *Input) { in.Before.Record = beforeRecord(StateCreate, "") }, state: StateCreate, action: ActionCreate},
		{name: "recorded elsewhere", reason: "the template has another name for it by now, and the does not exist old one",
			change: func(in *Input) {
				in.Before.Record = beforeRecord(StateCreate, "")
				in.Before.Record.ObjectName = "web-other"
			}, state: StateCreate, action: ActionRecord},
		{name: "made by this process", reason: "its uid is recorded before anything else",
			change: func(in *Input) {
				in.Before.Record, in.Before.Made, in.Before.Live = beforeRecord(StateCreate, ""), beforeUID, beforeLive("")
			}, state: StateBeforeRunning, action: ActionRecord},
		{name: "made by a process that died", reason: "what stands where it was about to be made is the object",
			change: func(in *Input) { in.Before.Record, in.Before.Live = beforeRecord(StateCreate, ""), beforeLive("") },
			state:  StateBeforeRunning, action: ActionRecord},
		{name: "forged where it was about to be made", reason: "whoever may create the kind can write the marks; the record must not claim it",
			change: func(in *Input) { beforeForged(in); in.Before.Record = beforeRecord(StateCreate, "") }, state: StateConflict, action: ActionRecord, message: "was not made by deletion.before"},
		{name: "forged in advance", reason: "likewise", change: beforeForged, state: StateConflict},
		{name: "made, and the record is lost", reason: "somebody wrote over the status; the object proves that it was made for this upstream",
			change: func(in *Input) { in.Before.Live = beforeLive("") }, state: StateBeforeRunning, action: ActionRecord},
		{name: "a downstream in the way", reason: "an object of ours is not a deletion.before object",
			change: func(in *Input) {
				in.Before.Record, in.Before.Live = beforeRecord(StateCreate, ""), beforeLive("yes")
				in.Before.Live.Hash = hash
			}, state: StateConflict, action: ActionRecord},
		{name: "somebody else's with our record", reason: "without our mark it is not ours, whatever was about to be made",
			change: func(in *Input) {
				in.Before.Record, in.Before.Live = beforeRecord(StateCreate, ""), beforeLive("yes")
				in.Before.Live.Owners = nil
			}, state: StateConflict, action: ActionRecord},
		{name: "an earlier upstream's in the way", reason: "it goes with that one: nothing need be done, and nothing is to be deleted by hand",
			change: func(in *Input) { in.Before.Live = beforeLive("yes"); in.Before.Live.Owners[0].UID = "up-0" }, state: StateWaiting,
			message: "belongs to an earlier Thing apps/web (uid up-0, ours is up-1), which is gone: deletion.before is created once the garbage collector has deleted it"},
		{name: "another upstream's in the way", reason: "whose it is can be told",
			change: func(in *Input) {
				beforeForged(in)
				in.Before.Live.Owners[0].UID, in.Before.Live.Owners[0].Name = "up-0", "else"
			}, state: StateConflict, message: "web-drain, which belongs to Thing apps/else, exists and was not made by deletion.before"},
		{name: "in the way and going", reason: "a former one of that name ends first",
			change: func(in *Input) { beforeForged(in); in.Before.Live.Deleting = true }, state: StateWaiting, message: "is being deleted"},
		{name: "template error", reason: "it is told, and fixed by a change alone",
			change: func(in *Input) { in.Before.Desired = DesiredObject{Err: errTest} }, state: StateRenderFailed, message: "test error"},
		{name: "missing input", reason: "it may come",
			change: func(in *Input) { in.Before.Desired = DesiredObject{Err: &waiting{"input x is missing"}} }, state: StateWaiting, message: "input x"},
		{name: "running", reason: "its record stands, so there is nothing to do", change: running(""), state: StateBeforeRunning},
		{name: "doneWhen gives an error", reason: "an error is not done", change: both(running(""), func(in *Input) { in.Before.Live.Kept = nil }),
			state: StateBeforeRunning, message: "doneWhen"},
		{name: "done", reason: "the outcome is recorded before anything goes on", change: running("yes"), state: StateBeforeFinished, action: ActionRecord},
		{name: "done and being deleted", reason: "what finished may go, as by a time to live",
			change: both(running("yes"), func(in *Input) { in.Before.Live.Deleting = true }), state: StateBeforeFinished, action: ActionRecord},
		{name: "failed", reason: "recorded, and held", change: running("no"), state: StateBeforeFailed, action: ActionRecord, message: "onFailure: Proceed"},
		{name: "failed, told", reason: "held until somebody acts",
			change: both(running("no"), func(in *Input) { in.Before.Record.State = string(StateBeforeFailed) }), state: StateBeforeFailed},
		{name: "failed, then done", reason: "what is fixed goes on", change: both(running("yes"), func(in *Input) { in.Before.Record.State = string(StateBeforeFailed) }),
			state: StateBeforeFinished, action: ActionRecord},
		{name: "deleted by somebody", reason: "it has not done its work",
			change: both(running(""), func(in *Input) { in.Before.Live.Deleting = true }), state: StateBeforeFailed, action: ActionRecord, message: "was deleted before"},
		{name: "gone", reason: "it is never made a second time", change: both(running(""), func(in *Input) { in.Before.Live = nil }),
			state: StateBeforeFailed, action: ActionRecord, message: "disappeared before"},
		{name: "replaced", reason: "another object of that name is not the one that was made",
			change: both(running("yes"), func(in *Input) { in.Before.Live.UID = "other" }), state: StateBeforeFailed, action: ActionRecord},
		{name: "failed, proceeds", reason: "even then the outcome is recorded first", config: proceed, change: running("no"),
			state: StateBeforeFailed, action: ActionRecord, message: "onFailure is Proceed"},
		{name: "timed out", reason: "time counts from the deletion", change: both(running(""), late), state: StateBeforeTimedOut, action: ActionRecord, message: "not finished within 1h0m0s"},
		{name: "timed out, not made", reason: "while it is held, making it is still tried",
			change: both(func(in *Input) { in.Before.Record = beforeRecord(StateBeforeTimedOut, "") }, late), state: StateBeforeTimedOut, action: ActionCreate},
		{name: "timed out, then done", reason: "late is not never",
			change: both(running("yes"), late, func(in *Input) { in.Before.Record.State = string(StateBeforeTimedOut) }), state: StateBeforeFinished, action: ActionRecord},
		{name: "timed out with a template error, proceeds", reason: "an error does not hold forever where the config says so", config: proceed,
			change: both(late, func(in *Input) { in.Before.Desired = DesiredObject{Err: errTest} }), state: StateBeforeTimedOut, action: ActionRecord},
		{name: "timed out over a conflict, proceeds", reason: "what is not ours is not recorded", config: proceed,
			change: both(late, beforeForged), state: StateBeforeTimedOut, action: ActionRecord},
		{name: "cannot be made", reason: "in a namespace that is being deleted it never can, and where it would be is recorded",
			change: func(in *Input) { in.Before.Record, in.Before.CannotCreate = beforeRecord(StateCreate, ""), true },
			state:  StateBeforeFailed, action: ActionRecord, message: "web-drain cannot be created: namespace apps is being deleted; nothing is deleted: change the upstream so that deletion.before.when is false, set deletion.before.onFailure: Proceed, or,"},
		{name: "cannot be made, told", reason: "it is tried again: somebody may create a namespace of that name",
			change: func(in *Input) { in.Before.Record, in.Before.CannotCreate = beforeRecord(StateBeforeFailed, ""), true }, state: StateBeforeFailed, action: ActionCreate},
		{name: "cannot be made, by another process", reason: "what was told is not told again",
			change: func(in *Input) { in.Before.Record = beforeRecord(StateBeforeFailed, "") }, state: StateBeforeFailed, action: ActionCreate},
		{name: "cannot be made, but was", reason: "what exists is waited for",
			change: both(running(""), func(in *Input) { in.Before.CannotCreate = true }), state: StateBeforeRunning},
		{name: "cannot be made, proceeds", reason: "the failure is recorded first", config: proceed,
			change: func(in *Input) { in.Before.Record, in.Before.CannotCreate = beforeRecord(StateCreate, ""), true },
			state:  StateBeforeFailed, action: ActionRecord, message: "namespace apps is being deleted; onFailure is Proceed"},
		{name: "cannot be made, and the time is over", reason: "of both policies the one that proceeds decides",
			config: func(op *config.Operator) { op.Deletion.Before.OnTimeout = config.BeforeProceed },
			change: both(late, func(in *Input) { in.Before.Record = beforeRecord(StateBeforeFailed, "") }), state: StateBeforeTimedOut, action: ActionRecord, message: "onTimeout is Proceed"},
		{name: "not needed", reason: "when is false: that is recorded, so that an edit during the deletion does not begin it",
			change: func(in *Input) { in.Before.Desired = DesiredObject{} }, state: StateBeforeFinished, action: ActionRecord, message: "when is false"},
		{name: "not needed any more", reason: "its author changed the upstream because it cannot be made",
			change: func(in *Input) {
				in.Before.Record, in.Before.Desired = beforeRecord(StateBeforeFailed, ""), DesiredObject{}
			}, state: StateBeforeFinished, action: ActionRecord},
		{name: "not needed, but made", reason: "what has begun goes on",
			change: both(running(""), func(in *Input) { in.Before.Desired = DesiredObject{} }), state: StateBeforeRunning},
		{name: "not needed is recorded", reason: "the downstreams go",
			change: func(in *Input) {
				in.Before.Record = beforeRecord(StateBeforeFinished, "")
				in.Before.Record.ObjectName = ""
			}, state: StateBeforeFinished, passed: true},
		{name: "finished is recorded", reason: "our finalizer comes off, whatever the object says by now",
			change: both(running("no"), func(in *Input) { in.Before.Record.State = string(StateBeforeFinished) }), state: StateBeforeFinished, action: ActionFree, passed: true},
		{name: "finished and free", reason: "the downstreams may go",
			change: func(in *Input) {
				in.Before.Record, in.Before.Live = beforeRecord(StateBeforeFinished, beforeUID), beforeLive("yes")
				in.Before.Live.Kept = nil
			}, state: StateBeforeFinished, passed: true},
		{name: "finished and gone", reason: "the object need not be there any more",
			change: func(in *Input) { in.Before.Record = beforeRecord(StateBeforeFinished, beforeUID) }, state: StateBeforeFinished, passed: true},
		{name: "failed is recorded and the config proceeds", reason: "also where it said otherwise before", config: proceed,
			change: func(in *Input) { in.Before.Record = beforeRecord(StateBeforeFailed, beforeUID) }, state: StateBeforeFailed, passed: true},
		{name: "timed out is recorded and the config proceeds", reason: "the object may still stand", config: proceed,
			change: both(running(""), late, func(in *Input) { in.Before.Record.State = string(StateBeforeTimedOut) }), state: StateBeforeTimedOut, action: ActionFree, passed: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, in := beforePipeline(t, row.config), deleted()
			if row.change != nil {
				row.change(&in)
			}
			d := p.DecideDeletion(in)
			if d.Before.State != row.state || d.Before.Action != row.action || !strings.Contains(d.Before.Message, row.message) {
				t.Errorf("%s: got %s/%q: %s; want %s/%q: %s", row.reason, d.Before.State, d.Before.Action, d.Before.Message, row.state, row.action, row.message)
			}
			if free := row.passed && row.action == ActionNone; d.WaitsForBefore == free || (len(d.Leftovers) > 0) != free || (d.Finalizer == FinalizerRemove) != free {
				t.Errorf("%s: WaitsForBefore is %v, with %d leftovers and finalizer %v", row.reason, d.WaitsForBefore, len(d.Leftovers), d.Finalizer)
			}
			if timed := !row.passed && in.Now.Equal(now) && row.state != StateBeforeFinished && row.state != StateBeforeFailed; (d.Before.RequeueAfter == 59*time.Minute) != timed {
				t.Errorf("%s: to look again after %v", row.reason, d.Before.RequeueAfter)
			}
			if row.state == StateConflict || row.name == "timed out over a conflict, proceeds" {
				if r := p.BeforeRecord(*d.Before); r.ObjectName != "" || r.UID != "" {
					t.Errorf("%s: recorded would be %v", row.reason, r)
				}
			}
		})
	}
}

// The object of deletion.before goes last: by its owner reference, or else by a request.
func TestBeforeObjectGoesLast(t *testing.T) {
	in := deleted()
	in.Before.Record, in.Before.Live = beforeRecord(StateBeforeFinished, beforeUID), beforeLive("yes")
	in.Before.Live.Kept = nil
	in.Before.Live.Owners, in.Before.Live.OwnerMark = nil, "apps/web/"+string(upstreamUID)
	waits := beforePipeline(t, func(op *config.Operator) { op.Deletion.Wait = true })
	if d := waits.DecideDeletion(in); d.Before.Action != ActionNone || d.Finalizer != FinalizerLeave {
		t.Errorf("it went before the downstreams: %+v", d.Before)
	}
	in.Leftovers = nil
	if d := waits.DecideDeletion(in); d.Before.Action != ActionDelete || d.Before.UID != beforeUID || d.Finalizer != FinalizerRemove {
		t.Errorf("it is left behind: %+v", d.Before)
	}
}

// What is made by deletion.before is nobody's leftover, although it is of a downstream's kind and has the same marks.
func TestBeforeObjectIsNotALeftover(t *testing.T) {
	p := beforePipeline(t, nil)
	left := p.Leftovers(upstreamObject(), nil, [][]*drift.Live{{ourLive(), beforeLive("")}}, nil, nil)
	if len(left) != 1 || left[0].Live.UID != liveUID {
		t.Errorf("left over are %+v", left)
	}
}

func TestFinalizerWhereDeletionIsHeld(t *testing.T) {
	for _, row := range []struct {
		name, reason string
		change       func(*Input)
		want         FinalizerAction
	}{
		{name: "in sync", reason: "it was made before the config had deletion.before", want: FinalizerAdd},
		{name: "nothing stands", reason: "the finalizer comes before anything is made", change: func(in *Input) { in.Facts[0].Live = nil }, want: FinalizerAdd},
		{name: "there already", reason: "nothing to do", change: func(in *Input) { in.HasFinalizer = true }},
		{name: "unwanted, still there", reason: "what stands is still held for",
			change: func(in *Input) {
				in.HasFinalizer, in.Desired.Objects[0], in.Facts[0].Live = true, DesiredObject{}, nil
				in.Leftovers = []Owned{{Live: ourLive(), Certain: true}}
			}},
		{name: "unwanted and gone", reason: "nothing is left to hold for",
			change: func(in *Input) {
				in.HasFinalizer, in.Desired.Objects[0], in.Facts[0].Live = true, DesiredObject{}, nil
			}, want: FinalizerRemove},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, p := range []*Pipeline{beforePipeline(t, nil), onePipeline(func(op *config.Operator) { op.Deletion.Wait = true })} {
				in := inSyncInput()
				if row.change != nil {
					row.change(&in)
				}
				if d := p.Decide(in); d.Finalizer != row.want {
					t.Errorf("%s: got %v, want %v", row.reason, d.Finalizer, row.want)
				}
			}
		})
	}
}

// The status of an upstream that is being deleted keeps what it does not speak of.
func TestReportDeletion(t *testing.T) {
	p := beforePipeline(t, func(op *config.Operator) {
		op.Status.Conditions = config.Conditions{Ready: "Ready", Valid: "Valid", Reconciling: "Reconciling", Stalled: "Stalled"}
	})
	p.Storable = status.Probe(nil)
	p.downstreamsPath = mustPath(t, ".status.downstreams")
	in := deleted()
	in.Upstream.SetGeneration(2)
	in.Upstream.Object["status"] = map[string]any{
		"conditions": []any{
			map[string]any{"type": "Valid", "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(1)},
			map[string]any{"type": "Theirs", "status": "True"},
		},
		"downstreams": status.RecordedList([]status.Recorded{{Name: "config", APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", ObjectName: "web", UID: liveUID, State: "InSync"}}),
	}
	in.Before.Record, in.Before.Live = beforeRecord(StateBeforeRunning, beforeUID), beforeLive("no")
	report := p.ReportDeletion(in.Upstream, p.DecideDeletion(in), nil, metav1.NewTime(now))
	after := in.Upstream.DeepCopy()
	after.Object["status"] = report.Status
	if r := p.RecordedBefore(after); r == nil || r.State != string(StateBeforeFailed) || r.UID != beforeUID {
		t.Errorf("recorded is %+v", r)
	}
	if r := p.Recorded(after); len(r) != 1 || r[0].State != "InSync" {
		t.Errorf("of the downstreams is recorded %+v", r)
	}
	got := map[string]string{}
	list, _, _ := unstructured.NestedSlice(after.Object, "status", "conditions")
	for _, c := range list {
		m := c.(map[string]any)
		reason, _ := m["reason"].(string)
		got[m["type"].(string)] = m["status"].(string) + reason
	}
	want := map[string]string{"Ready": "FalseBeforeFailed", "Stalled": "TrueBeforeFailed", "Valid": "TrueValid", "Theirs": "True"}
	for kind, text := range want {
		if got[kind] != text || len(got) != len(want) {
			t.Errorf("conditions are %v, want %v", got, want)
		}
	}
	if again := p.ReportDeletion(after, p.DecideDeletion(in), nil, metav1.NewTime(now.Add(time.Hour))); again.Changed {
		t.Error("an hour later it says something else")
	}
}

func mustPath(t *testing.T, text string) fieldpath.Path {
	t.Helper()
	path, err := fieldpath.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// An error of when leaves everything alone, as every error of an expression does.
func TestBeforeWhen(t *testing.T) {
	for spec, want := range map[any]DesiredObject{nil: {Err: errTest}, false: {}} {
		up := upstreamObject()
		if spec != nil {
			up.Object["spec"] = map[string]any{"backup": spec}
		}
		p := beforePipeline(t, nil)
		if have := p.DesiredBefore(up, Inputs{}); have.Wanted || (have.Err == nil) != (want.Err == nil) {
			t.Errorf("backup: %v: wanted is %v, error %v", spec, have.Wanted, have.Err)
		}
	}
}
