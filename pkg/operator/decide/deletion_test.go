package decide_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

const beforeUID = types.UID("before-1")

var beforeTarget = operator.Ref{Namespace: "apps", Name: "web-drain"}

// before is a deletion.before.
var before = config.Before{APIVersion: "v1", Kind: "ConfigMap", When: "self.spec.backup", OnFailure: config.BeforeHold, OnTimeout: config.BeforeHold,
	Timeout: common.Duration(time.Hour)}

// beforePipeline is onePipeline with a deletion.before, with what change does to its config.
func beforePipeline(t *testing.T, change func(*config.Operator)) *health.Checks {
	t.Helper()
	p := onePipeline(func(op *config.Operator) {
		if op.Deletion.Before = new(before); change != nil {
			change(op)
		}
	})
	addBefore(t, p)
	return p
}

// addBefore compiles the deletion.before of a pipeline's config, if it has one.
func addBefore(t *testing.T, p *health.Checks) {
	t.Helper()
	if p.Config.Deletion.Before == nil {
		return
	}
	env := must.Get(rules.NewEnv(rules.EnvOptions{})).In(t)
	rule := func(text string, about rules.Scope) *rules.Program {
		program := must.Get(env.Bool(text, about, operator.BeforeName)).In(t)
		return program
	}
	object := &desired.Downstream{Downstream: &operator.Downstream{Index: operator.BeforeIndex, Name: operator.BeforeName}, When: rule(before.When, rules.Upstream)}
	p.Before = &desired.Before{Config: p.Config.Deletion.Before, Object: object,
		Done: rule("downstream.data.done == 'yes'", rules.Downstream), Failed: rule("downstream.data.done == 'no'", rules.Downstream)}
}

// deleted is the input of an upstream whose deletion began a minute ago and whose downstream exists.
func deleted() operator.Input {
	up := upstreamObject()
	since := metav1.NewTime(now.Add(-time.Minute))
	up.SetDeletionTimestamp(&since)
	return operator.Input{Upstream: up, Now: now, HasFinalizer: true, Leftovers: []operator.Owned{{Live: ourLive(), Certain: true}},
		Before: operator.BeforeFacts{Desired: operator.DesiredObject{Wanted: true, Target: beforeTarget}}}
}

func beforeLive(done string) *drift.Live {
	return &drift.Live{Identity: drift.Identity{Namespace: beforeTarget.Namespace, Name: beforeTarget.Name, UID: beforeUID, ResourceVersion: "9"},
		Hash: marks.BeforeHashPrefix + hash, Projection: drift.Projection{Managed: true},
		Owners: []drift.OwnerRef{{Kind: "Thing", Name: "web", UID: upstreamUID, Controller: true, Applied: true}},
		Kept: map[string]any{"data": map[string]any{"done": done},
			"metadata": map[string]any{"finalizers": []any{"tools.example.com/cleanup"}}}}
}

func beforeRecord(state operator.State, uid types.UID) *status.Recorded {
	return &status.Recorded{Name: operator.BeforeName, APIVersion: "v1", Kind: "ConfigMap", Namespace: beforeTarget.Namespace, ObjectName: beforeTarget.Name, UID: uid, State: string(state)}
}

// beforeForged puts an object in the way that has our marks and that our field manager did not apply.
func beforeForged(in *operator.Input) {
	in.Before.Live = beforeLive("yes")
	in.Before.Live.Owners[0].Applied = false
}

// beforeSettings are what decides, beside the world, about the object of deletion.before.
var beforeSettings = []setting{
	{"onFailure", []string{"Hold", "Proceed"}, func(op *config.Operator, _ *operator.Input, v string) {
		op.Deletion.Before = new(before)
		op.Deletion.Before.OnFailure = config.BeforePolicy(v)
	}},
	{"onTimeout", []string{"Hold", "Proceed"}, func(op *config.Operator, _ *operator.Input, v string) {
		op.Deletion.Before.OnTimeout = config.BeforePolicy(v)
	}},
}

// What is decided about the object of deletion.before, and how its state is recorded before anything else is done.
func TestDecideBefore(t *testing.T) {
	deletion := func(in *operator.Input) { *in = deleted() }
	worlds := startingWith(deletion, slices.Concat(createdWorlds(), runningWorlds(), recordedWorlds()))
	goldenMatrix(t, "testdata/before.txt", []section{
		{"The object of deletion.before", worlds, beforeSettings,
			func(p *health.Checks, in operator.Input) []string {
				addBefore(t, p)
				in.Before.Progress = p.BeforeProgress(in.Upstream, desired.Inputs{})
				return decidedBefore(t, p, in)
			}},
		{"The object of an earlier deletion.before", startingWith(deletion, earlierWorlds()), []setting{
			{"deletion.before", []string{"not set", "of another kind"}, func(op *config.Operator, _ *operator.Input, v string) {
				if v != "not set" {
					op.Deletion.Before = new(before)
					op.Deletion.Before.OnFailure, op.Deletion.Before.OnTimeout = config.BeforeProceed, config.BeforeProceed
				}
			}}}, func(p *health.Checks, in operator.Input) []string {
			addBefore(t, p)
			results := decidedBefore(t, p, in)
			if d := decide.Deletion(p.Settings, in); d.WaitsForBefore {
				fact := report.Deletion(p.Settings, in.Upstream, d, nil, nil, *in.Upstream.GetDeletionTimestamp()).Facts[0]
				results = append(results, fmt.Sprintf("failed %t, progressing %t", fact.Failed, fact.Progressing))
			}
			return results
		}},
	})
}

// decidedBefore has what is decided about the object of deletion.before, and what the status will record of it.
func decidedBefore(t *testing.T, p *health.Checks, in operator.Input) []string {
	t.Helper()
	d := decide.Deletion(p.Settings, in)
	if d.WaitsForBefore != (len(d.Leftovers) == 0) || d.WaitsForBefore == (d.Finalizer == operator.FinalizerRemove) {
		t.Errorf("waits for deletion.before: %t, with %d leftovers and finalizer %v", d.WaitsForBefore, len(d.Leftovers), d.Finalizer)
	}
	what := "the downstreams go"
	if d.Before == nil {
		return []string{what}
	}
	if d.WaitsForBefore {
		r := decide.BeforeRecord(p.Settings, *d.Before)
		what = strings.TrimSpace("the record: " + r.State + " " + operator.Ref{Namespace: r.Namespace, Name: r.ObjectName}.String() + " " + string(r.UID))
	}
	return []string{described(*d.Before), what}
}

// createdWorlds are those of an object that is not known to have been created.
func createdWorlds() []world {
	occupied := func(change func(live *drift.Live)) func(*operator.Input) {
		return func(in *operator.Input) {
			in.Before.Record, in.Before.Live = beforeRecord(operator.StateCreate, ""), beforeLive("yes")
			change(in.Before.Live)
		}
	}
	cannot := func(state operator.State) func(*operator.Input) {
		return func(in *operator.Input) { in.Before.Record, in.Before.CannotCreate = beforeRecord(state, ""), true }
	}
	failed := func(in *operator.Input) { in.Before.Record = beforeRecord(operator.StateBeforeFailed, "") }
	late := func(in *operator.Input) { in.Now = now.Add(2 * time.Hour) }
	return []world{
		{"nothing yet", "where it will be is recorded before it is created", func(*operator.Input) {}},
		{"about to be created", "the record says so, so it is created", func(in *operator.Input) { in.Before.Record = beforeRecord(operator.StateCreate, "") }},
		{"recorded elsewhere", "the template has another name for it by now, and the old one does not exist", func(in *operator.Input) {
			in.Before.Record = beforeRecord(operator.StateCreate, "")
			in.Before.Record.ObjectName = "web-other"
		}},
		{"created by this process", "its uid is recorded before anything else", func(in *operator.Input) {
			in.Before.Record, in.Before.Made, in.Before.Live = beforeRecord(operator.StateCreate, ""), beforeUID, beforeLive("")
		}},
		{"created by a process that died", "what exists where it was about to be created is the object",
			func(in *operator.Input) {
				in.Before.Record, in.Before.Live = beforeRecord(operator.StateCreate, ""), beforeLive("")
			}},
		{"forged where it was about to be created", "whoever may create the kind can write the marks; the record must not claim it",
			occupied(func(live *drift.Live) { live.Owners[0].Applied = false })},
		{"forged in advance", "likewise", beforeForged},
		{"created, and the record is lost", "somebody wrote over the status; the object proves that it was created for this upstream",
			func(in *operator.Input) { in.Before.Live = beforeLive("") }},
		{"a downstream in the way", "an object of ours is not a deletion.before object", occupied(func(live *drift.Live) { live.Hash = hash })},
		{"somebody else's with our record", "without our mark it is not ours, whatever was about to be created",
			occupied(func(live *drift.Live) { live.Owners = nil })},
		{"an earlier upstream's in the way", "it goes with that one: nothing need be done, and nothing is to be deleted by hand",
			func(in *operator.Input) { in.Before.Live = beforeLive("yes"); in.Before.Live.Owners[0].UID = "up-0" }},
		{"another upstream's in the way", "the message says whose it is", func(in *operator.Input) {
			beforeForged(in)
			in.Before.Live.Owners[0].UID, in.Before.Live.Owners[0].Name = "up-0", "else"
		}},
		{"in the way and going", "a former one of that name ends first", func(in *operator.Input) { beforeForged(in); in.Before.Live.Deleting = true }},
		{"template error", "it is reported, and fixed by a change alone",
			func(in *operator.Input) { in.Before.Desired = operator.DesiredObject{Err: errTest} }},
		{"missing input", "it may come", func(in *operator.Input) {
			in.Before.Desired = operator.DesiredObject{Err: &operator.WaitingError{Message: "input x is missing"}}
		}},
		{"timed out, not created", "while it is held, creating it is still tried",
			func(in *operator.Input) { late(in); in.Before.Record = beforeRecord(operator.StateBeforeTimedOut, "") }},
		{"timed out with a template error", "an error does not hold forever where the config says so",
			func(in *operator.Input) { late(in); in.Before.Desired = operator.DesiredObject{Err: errTest} }},
		{"timed out over a conflict", "what is not ours is not recorded", func(in *operator.Input) { late(in); beforeForged(in) }},
		{"cannot be created", "in a namespace that is being deleted it never can, and where it would be is recorded", cannot(operator.StateCreate)},
		{"cannot be created, reported", "it is tried again: somebody may create a namespace of that name", cannot(operator.StateBeforeFailed)},
		{"cannot be created, by another process", "what was reported is not reported again", failed},
		{"cannot be created, and the time is over", "of both policies the one that proceeds decides", func(in *operator.Input) { late(in); failed(in) }},
		{"not needed", "when is false: that is recorded, so that an edit during the deletion does not begin it",
			func(in *operator.Input) { in.Before.Desired = operator.DesiredObject{} }},
		{"not needed any more", "its author changed the upstream because it cannot be created",
			func(in *operator.Input) { failed(in); in.Before.Desired = operator.DesiredObject{} }},
	}
}

// runningWorlds are those of an object that was created, and of whose end nothing is recorded.
func runningWorlds() []world {
	recorded := func(state operator.State) func(*operator.Input) {
		return func(in *operator.Input) { in.Before.Record.State = string(state) }
	}
	deleting := func(in *operator.Input) { in.Before.Live.Deleting = true }
	late := func(in *operator.Input) { in.Now = now.Add(2 * time.Hour) }
	var worlds []world
	add := func(name, reason, done string, changes ...func(*operator.Input)) {
		worlds = append(worlds, world{name, reason, func(in *operator.Input) {
			in.Before.Record, in.Before.Live = beforeRecord(operator.StateBeforeRunning, beforeUID), beforeLive(done)
			for _, change := range changes {
				change(in)
			}
		}})
	}
	add("running", "its record exists, so there is nothing to do", "")
	add("doneWhen gives an error", "an error is not done", "", func(in *operator.Input) { in.Before.Live.Kept = nil })
	add("done", "the outcome is recorded before anything goes on", "yes")
	add("done and being deleted", "what finished may go, as by a time to live", "yes", deleting)
	add("failed", "recorded, and held, unless the config proceeds", "no")
	add("failed, reported", "held until somebody acts", "no", recorded(operator.StateBeforeFailed))
	add("failed, then done", "what is fixed goes on", "yes", recorded(operator.StateBeforeFailed))
	add("deleted by somebody", "it has not done its work", "", deleting)
	add("gone", "it is never created a second time", "", func(in *operator.Input) { in.Before.Live = nil })
	add("replaced", "another object of that name is not the one that was created", "yes", func(in *operator.Input) { in.Before.Live.UID = "other" })
	add("timed out", "time counts from the deletion", "", late)
	add("timed out, then done", "late is not never", "yes", late, recorded(operator.StateBeforeTimedOut))
	add("cannot be created, but was", "what exists is waited for", "", func(in *operator.Input) { in.Before.CannotCreate = true })
	add("not needed, but created", "what has begun goes on", "", func(in *operator.Input) { in.Before.Desired = operator.DesiredObject{} })
	add("finished is recorded", "our finalizer is removed, whatever the object says by now", "no", recorded(operator.StateBeforeFinished))
	add("finished and free", "the downstreams may go", "yes", recorded(operator.StateBeforeFinished), func(in *operator.Input) { in.Before.Live.Kept = nil })
	add("timed out is recorded", "the object may still exist, and the downstreams go if the config proceeds", "", late,
		recorded(operator.StateBeforeTimedOut))
	return worlds
}

// recordedWorlds are those of an end that is recorded.
func recordedWorlds() []world {
	return []world{
		{"not needed is recorded", "the downstreams go", func(in *operator.Input) {
			in.Before.Record = beforeRecord(operator.StateBeforeFinished, "")
			in.Before.Record.ObjectName = ""
		}},
		{"finished and gone", "the object need not exist any more",
			func(in *operator.Input) { in.Before.Record = beforeRecord(operator.StateBeforeFinished, beforeUID) }},
		{"failed is recorded", "the config proceeds, also if it was another one before",
			func(in *operator.Input) { in.Before.Record = beforeRecord(operator.StateBeforeFailed, beforeUID) }},
	}
}

// The object of deletion.before goes last: by its owner reference, or else by a request.
func TestBeforeObjectGoesLast(t *testing.T) {
	in := deleted()
	in.Before.Record, in.Before.Live = beforeRecord(operator.StateBeforeFinished, beforeUID), beforeLive("yes")
	in.Before.Live.Kept = nil
	in.Before.Live.Owners, in.Before.Live.OwnerMark = nil, "apps/web/"+string(upstreamUID)
	waits := beforePipeline(t, func(op *config.Operator) { op.Deletion.Wait = true })
	if d := decide.Deletion(waits.Settings, in); d.Before.Action != operator.ActionNone || d.Finalizer != operator.FinalizerLeave {
		t.Errorf("it went before the downstreams: %+v", d.Before)
	}
	in.Leftovers = nil
	if d := decide.Deletion(waits.Settings, in); d.Before.Action != operator.ActionDelete || d.Before.UID != beforeUID || d.Finalizer != operator.FinalizerRemove {
		t.Errorf("it is left behind: %+v", d.Before)
	}
}

// What is made by deletion.before is nobody's leftover, although it is of a downstream's kind and has the same marks.
func TestBeforeObjectIsNotALeftover(t *testing.T) {
	p := beforePipeline(t, nil)
	left := decide.Leftovers(p.Settings, upstreamUID, nil, [][]*drift.Live{{ourLive(), beforeLive("")}}, nil, nil)
	if len(left) != 1 || left[0].Live.UID != liveUID {
		t.Errorf("left over are %+v", left)
	}
}

// The status of an upstream that is being deleted keeps what it does not speak of.
func TestReportDeletion(t *testing.T) {
	p := beforePipeline(t, func(op *config.Operator) {
		op.Status.Conditions = config.Conditions{Ready: "Ready", Valid: "Valid", Reconciling: "Reconciling", Stalled: "Stalled"}
	})
	p.Storable = status.Probe(nil)
	in := deleted()
	in.Upstream.SetGeneration(2)
	in.Upstream.Object["status"] = map[string]any{
		"conditions": []any{
			map[string]any{"type": "Valid", "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(1)},
			map[string]any{"type": "Theirs", "status": "True"},
		},
		"downstreams": status.RecordedList([]status.Recorded{{Name: "config", APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", ObjectName: "web", UID: liveUID, State: "InSync"}}),
	}
	in.Before.Record, in.Before.Live = beforeRecord(operator.StateBeforeRunning, beforeUID), beforeLive("no")
	in.Before.Progress = p.BeforeProgress(in.Upstream, desired.Inputs{})
	first := report.Deletion(p.Settings, in.Upstream, decide.Deletion(p.Settings, in), nil, nil, metav1.NewTime(now))
	after := in.Upstream.DeepCopy()
	after.Object["status"] = first.Status
	if r := p.RecordedBefore(after); r == nil || r.State != string(operator.StateBeforeFailed) || r.UID != beforeUID {
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
	if again := report.Deletion(p.Settings, after, decide.Deletion(p.Settings, in), nil, nil, metav1.NewTime(now.Add(time.Hour))); again.Changed {
		t.Error("an hour later it says something else")
	}
}

// An error of when leaves everything alone, as every error of an expression does.
func TestBeforeWhen(t *testing.T) {
	for spec, want := range map[any]operator.DesiredObject{nil: {Err: errTest}, false: {}} {
		up := upstreamObject()
		if spec != nil {
			up.Object["spec"] = map[string]any{"backup": spec}
		}
		p := beforePipeline(t, nil)
		if have := p.DesiredBefore(up, desired.Inputs{}); have.Wanted || (have.Err == nil) != (want.Err == nil) {
			t.Errorf("backup: %v: wanted is %v, error %v", spec, have.Wanted, have.Err)
		}
	}
}
