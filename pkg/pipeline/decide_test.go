package pipeline

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/rules"
)

const (
	upstreamUID = types.UID("up-1")
	liveUID     = types.UID("live-1")
	hash        = "v1-abc"
)

var (
	now    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	wanted = drift.Digest(map[string]any{"data": "wanted"})
	other  = drift.Digest(map[string]any{"data": "other"})
	target = Ref{Namespace: "apps", Name: "web"}
)

// onePipeline is a pipeline of one ConfigMap, with what change does to its config.
func onePipeline(change func(*config.Operator)) *Pipeline {
	op := &config.Operator{
		Conventions: config.Conventions{Finalizer: "tools.example.com/cleanup", Pause: &config.Pause{Annotation: "tools.example.com/paused"}},
		Status:      config.Status{Downstreams: ".status.downstreams"},
		Retry:       config.Retry{MinDelay: config.Duration(5 * time.Second), MaxDelay: config.Duration(5 * time.Minute)},
		Downstreams: []config.Downstream{{
			Name: "config", APIVersion: "v1", Kind: "ConfigMap",
			AdoptionPolicy: config.AdoptNever, UpdatePolicy: config.UpdateApply, DeletionPolicy: config.DeletionDelete,
			Drift: config.Drift{Policy: config.DriftEnforce},
		}},
	}
	if change != nil {
		change(op)
	}
	p := &Pipeline{Name: "test", Config: op}
	p.Upstream.HasStatus = true
	for i := range op.Downstreams {
		p.Downstreams = append(p.Downstreams, &Downstream{Index: i, Name: op.Downstreams[i].Name, Config: &op.Downstreams[i]})
	}
	return p
}

func upstreamObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}}
	u.SetNamespace("apps")
	u.SetName("web")
	u.SetUID(upstreamUID)
	return u
}

func ourLive() *drift.Live {
	return &drift.Live{Namespace: "apps", Name: "web", UID: liveUID, ResourceVersion: "7", Hash: hash, P: wanted, Managed: true,
		Owners: []drift.OwnerRef{{Kind: "Thing", Name: "web", UID: upstreamUID, Controller: true, Applied: true}}}
}

// unrecorded has an input's object known to nobody but the API server; forged has its mark written by somebody else.
func unrecorded(in *Input) { in.Facts[0].Trusted, in.Facts[0].RecordedHash = false, "" }

func forged(in *Input) {
	unrecorded(in)
	in.Facts[0].Live.Owners[0].Applied = false
}

// inSyncInput is the input of an upstream whose downstream is what it asks for.
func inSyncInput() Input {
	return Input{
		Upstream: upstreamObject(), Selected: true, Now: now,
		Desired: &Desired{Objects: []DesiredObject{{Wanted: true, Target: target, Reference: true, Hash: hash, Sum: wanted}}},
		Facts:   []Facts{{Live: ourLive(), Trusted: true, RecordedHash: hash}},
	}
}

// annotate has the object marked by the annotation instead of the reference.
func annotate(in *Input, applied bool) {
	live := in.Facts[0].Live
	live.Owners, live.OwnerMark, live.MarkApplied = nil, "apps/web/"+string(upstreamUID), applied
	in.Facts[0].RecordedHash, in.Desired.Objects[0].Reference = hash, false
}

func TestDecide(t *testing.T) {
	yes, no := true, false
	recreate := func(op *config.Operator) { op.Downstreams[0].UpdatePolicy = config.UpdateRecreate }
	createOnly := func(op *config.Operator) { op.Downstreams[0].UpdatePolicy = config.UpdateCreateOnly }
	adopt := func(op *config.Operator) { op.Downstreams[0].AdoptionPolicy = config.AdoptIfUnowned }
	report := func(op *config.Operator) { op.Downstreams[0].Drift.Policy = config.DriftReport }
	ignore := func(op *config.Operator) { op.Downstreams[0].Drift.Policy = config.DriftIgnore }
	statusless := func(op *config.Operator) { op.Status.Enabled = &no }

	for _, row := range []struct {
		name    string
		reason  string
		config  func(*config.Operator)
		change  func(*Input)
		state   State
		action  Action
		message string
	}{
		{name: "in sync", reason: "equal hash and equal projection need nothing",
			state: StateInSync},
		{name: "nothing stands", reason: "a downstream that is missing is made",
			change: func(in *Input) { in.Facts[0].Live = nil }, state: StateCreate, action: ActionCreate},
		{name: "paused", reason: "a paused upstream is left alone, whatever stands",
			change: func(in *Input) {
				in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
				in.Facts[0].Live = nil
			}, state: StatePaused, message: "tools.example.com/paused"},
		{name: "pause annotation says false", reason: "only the value true pauses",
			change: func(in *Input) {
				in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "false"})
			}, state: StateInSync},
		{name: "invalid", reason: "an invalid upstream takes nothing away and makes nothing",
			change: func(in *Input) {
				in.Desired = &Desired{Invalid: []rules.Failure{{Message: "too many"}}, Objects: []DesiredObject{{}}}
				in.Facts[0].Live.P = other
			},
			state: StateInvalid},
		{name: "render failed", reason: "an error in the template leaves things alone",
			change: func(in *Input) { in.Desired.Objects[0] = DesiredObject{Err: errTest} }, state: StateRenderFailed, message: "test error"},
		{name: "unwanted", reason: "when is false; what stands is a leftover and decided as such",
			change: func(in *Input) { in.Desired.Objects[0] = DesiredObject{}; in.Facts[0].Live = nil }, state: StateUnwanted},
		{name: "labels lost, CreateOnly", reason: "what no watch shows gets its labels back, and nothing else where drift is not repaired", config: createOnly,
			change: func(in *Input) { in.Facts[0].Live.Unselected, in.Facts[0].Live.P = true, other },
			state:  StateRepair, action: ActionReplaceMarks},
		{name: "labels lost, Report", reason: "what no watch shows gets its labels back, and nothing else where drift is not repaired", config: report,
			change: func(in *Input) { in.Facts[0].Live.Unselected, in.Facts[0].Live.P = true, other },
			state:  StateRepair, action: ActionReplaceMarks},
		{name: "labels lost, Ignore", reason: "what no watch shows gets its labels back, and nothing else where drift is not repaired", config: ignore,
			change: func(in *Input) { in.Facts[0].Live.Unselected, in.Facts[0].Live.P = true, other },
			state:  StateRepair, action: ActionReplaceMarks},
		{name: "labels lost and a change, Ignore", reason: "what the upstream asks for is applied, with the labels", config: ignore,
			change: func(in *Input) {
				in.Facts[0].Live.Unselected, in.Facts[0].Live.P = true, other
				in.Facts[0].RecordedHash = "v1-before"
			},
			state: StateUpdate, action: ActionApply},
		{name: "labels lost, Enforce", reason: "a repair brings back the labels too",
			change: func(in *Input) { in.Facts[0].Live.Unselected, in.Facts[0].Live.P = true, other },
			state:  StateRepair, action: ActionApply},
		{name: "terminating, drifted", reason: "a finalizer may keep it in force for long",
			change: func(in *Input) { in.Facts[0].Live.Deleting = true; in.Facts[0].Live.P = other }, state: StateRepair, action: ActionApply},
		{name: "terminating, changed", reason: "an apply of a changed desired state to a terminating object would answer 200 and be lost with it",
			change: func(in *Input) { in.Facts[0].Live.Deleting = true; in.Facts[0].RecordedHash = "v1-old" }, state: StateWaiting},
		{name: "terminating", reason: "it is made again once it is gone",
			change: func(in *Input) { in.Facts[0].Live.Deleting = true }, state: StateWaiting},
		{name: "somebody else's", reason: "an object without our mark is never taken by default",
			change: func(in *Input) { in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", Name: "web", UID: "x"}} },
			state:  StateConflict, message: "adoptionPolicy: IfUnowned"},
		{name: "a second owner", reason: "somebody added an owner, and the upstream that it was made for is gone",
			change: func(in *Input) {
				live := &drift.Live{Namespace: "apps", Name: "web", UID: "x", Managed: true, Hash: hash}
				live.Owners = []drift.OwnerRef{{Kind: "ConfigMap", Name: "other", UID: "other-1"}}
				in.Facts[0] = Facts{Live: live}
			}, state: StateConflict, message: "the owner reference of ConfigMap other (uid other-1) keeps it from being garbage collected: delete it"},
		{name: "adoption", reason: "an object that nobody owns may be adopted where the config says so", config: adopt,
			change: func(in *Input) { in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", Name: "web", UID: "x"}} },
			state:  StateUpdate, action: ActionApply, message: "adopted"},
		{name: "adoption of an owned object", reason: "a controller reference is respected even where adoption is allowed", config: adopt,
			change: func(in *Input) {
				in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", UID: "x", Owners: []drift.OwnerRef{{Kind: "Thing", Name: "else", UID: "up-2", Controller: true}}}}
			}, state: StateConflict, message: "Thing apps/else"},
		{name: "adoption of what another operator owns", reason: "its owner annotation says so, whatever the key is", config: adopt,
			change: func(in *Input) {
				in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", UID: "x", Owners: []drift.OwnerRef{{Name: "apps/else (annotation example.com/by)", UID: "up-2", Controller: true}}}}
			}, state: StateConflict, message: "belongs to apps/else (annotation example.com/by) of another operator"},
		{name: "adoption of what an earlier name of our annotation marks", reason: "it is this upstream's own", config: adopt,
			change: func(in *Input) {
				in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", UID: "x", Owners: []drift.OwnerRef{{Name: "apps/web (annotation example.com/by)", UID: upstreamUID, Controller: true}}}}
			}, state: StateUpdate, action: ActionApply, message: "adopted"},
		{name: "two upstreams, one target", reason: "the second is in conflict, even where its status claims the object",
			change: func(in *Input) {
				in.Facts[0].Live.Owners[0].UID, in.Facts[0].Live.Owners[0].Name = "up-2", "else"
			}, state: StateConflict, message: "belongs to Thing apps/else"},
		{name: "an earlier upstream of that name", reason: "its downstream goes with it, and ours is made then: that is no conflict",
			change: func(in *Input) { in.Facts[0].Live.Owners[0].UID = "up-0" }, state: StateWaiting,
			message: "belongs to an earlier Thing apps/web (uid up-0, ours is up-1), which is gone: it is recreated once the garbage collector has deleted it"},
		{name: "an earlier upstream's, going", reason: "it says so already",
			change: func(in *Input) { in.Facts[0].Live.Owners[0].UID, in.Facts[0].Live.Deleting = "up-0", true }, state: StateWaiting, message: "is being deleted and is recreated"},
		{name: "a kind of that name in another group", reason: "our field manager did not apply the reference, and that owner may stay",
			change: func(in *Input) {
				forged(in)
				in.Facts[0].Live.Owners[0].UID = "up-0"
			}, state: StateConflict, message: "belongs to another Thing apps/web (uid up-0, ours is up-1)"},
		{name: "an upstream of that name in another namespace", reason: "it is another one, and is named as such",
			change: func(in *Input) {
				in.Facts[0].Live.Namespace, in.Facts[0].Live.Owners[0].UID = "else", "up-0"
			}, state: StateConflict, message: "belongs to Thing else/web"},
		{name: "an owner annotation of somebody else's", reason: "the same namespace and name, but another manager applies it",
			change: func(in *Input) {
				annotate(in, false)
				in.Facts[0].Live.OwnerMark, in.Facts[0].Live.MarkTheirs = "apps/web/up-0", true
			}, state: StateConflict, message: "belongs to another apps/web (uid up-0, ours is up-1)"},
		{name: "marks stripped", reason: "an object whose uid is recorded is ours without its marks",
			change: func(in *Input) { in.Facts[0].Live.Owners = nil; in.Facts[0].Live.P = other }, state: StateRepair, action: ActionApply},
		{name: "adopted, then a crash", reason: "the apply that adopted it proves that it is ours, and so it is recorded", config: adopt,
			change: unrecorded, state: StateInSync},
		{name: "marked by another writer", reason: "what could be adopted without our mark can be with it", config: adopt,
			change: forged, state: StateUpdate, action: ActionApply, message: "adopted"},
		{name: "a plain reference on another's", reason: "an object has one controller and may have many owners",
			change: func(in *Input) {
				in.Facts[0].Trusted = false
				in.Facts[0].Live.Owners = []drift.OwnerRef{{Kind: "Thing", Name: "else", UID: "up-2", Controller: true}, {Kind: "Thing", Name: "web", UID: upstreamUID}}
			}, state: StateConflict, message: "Thing apps/else"},
		{name: "deleted again and again", reason: "somebody who deletes what is made is not fought at full speed either",
			change: func(in *Input) {
				in.Facts[0] = Facts{Spaced: time.Second}
			}, state: StateContested, message: "keeps deleting"},
		{name: "keys that come back", reason: "what our own apply and its clean-up returned is the API server's own",
			change: func(in *Input) {
				in.Facts[0].Live.Extra, in.Facts[0].Live.P, in.Facts[0].Baseline = true, other, &other
			}, state: StateInSync},
		{name: "mark from a crash", reason: "made, but not recorded before the process died: the API server records that we applied the mark",
			change: unrecorded, state: StateInSync},
		{name: "mark from a crash, edited", reason: "what others change of it since is drift like any other",
			change: func(in *Input) { unrecorded(in); in.Facts[0].Live.P = other }, state: StateRepair, action: ActionApply},
		{name: "forged mark", reason: "whoever may create the kind can write a mark, but not our entry", change: forged,
			state: StateConflict, message: "has our owner mark, but was not created by this operator: delete it"},
		{name: "forged mark, recorded", reason: "another writer owns the mark of an object whose uid is recorded",
			change: func(in *Input) { in.Facts[0].Live.Owners[0].Applied = false }, state: StateInSync},
		{name: "forged annotation", reason: "the annotation and the reference are judged alike",
			change: func(in *Input) { unrecorded(in); annotate(in, false) }, state: StateConflict},
		{name: "annotation from a crash", reason: "likewise", change: func(in *Input) { unrecorded(in); annotate(in, true) }, state: StateInSync},
		{name: "no status to record in", reason: "then the API server's record is the witness", config: statusless,
			change: unrecorded, state: StateInSync},
		{name: "no status, drifted", reason: "what others change says nothing about who made it", config: statusless,
			change: func(in *Input) { unrecorded(in); in.Facts[0].Live.P = other }, state: StateRepair, action: ActionApply},
		{name: "create only, from a crash", reason: "it is what would be made now", config: createOnly, change: unrecorded, state: StateInSync},
		{name: "create only, something else under our name", reason: "whoever may create and patch can make it: it is not taken without a word", config: createOnly,
			change: func(in *Input) { unrecorded(in); in.Facts[0].Live.P = other }, state: StateDrifted, message: "only its field manager says so"},
		{name: "create only, no status to record in", reason: "it may be as old as the template was", change: func(in *Input) { unrecorded(in); in.Facts[0].Live.P = other },
			config: func(op *config.Operator) { createOnly(op); statusless(op) }, state: StateInSync},
		{name: "server's spelling", reason: "the projection that our own apply returned counts as in sync",
			change: func(in *Input) { in.Facts[0].Live.P = other; in.Facts[0].Baseline = &other }, state: StateInSync},
		{name: "hash differs but projection is baseline", reason: "both must hold",
			change: func(in *Input) {
				in.Facts[0].Live.Hash = "v1-old"
				in.Facts[0].RecordedHash = "v1-old"
				in.Facts[0].Live.P, in.Facts[0].Baseline = other, &other
			}, state: StateUpdate, action: ActionApply},
		{name: "update", reason: "the recorded hash is not what is asked for now",
			change: func(in *Input) { in.Facts[0].RecordedHash = "v1-old"; in.Facts[0].Live.Hash = "v1-old" }, state: StateUpdate, action: ActionApply},
		{name: "hash annotation stripped", reason: "the desired object has not changed, so it is drift",
			change: func(in *Input) { in.Facts[0].Live.Hash = "" }, state: StateRepair, action: ActionApply},
		{name: "drift", reason: "the desired object is the same, the live object is not",
			change: func(in *Input) { in.Facts[0].Live.P = other }, state: StateRepair, action: ActionApply},
		{name: "added keys", reason: "keys that others add to an exclusive field are drift",
			change: func(in *Input) { in.Facts[0].Live.Extra = true }, state: StateRepair, action: ActionApply},
		{name: "drift ignored", reason: "policy Ignore", config: ignore,
			change: func(in *Input) { in.Facts[0].Live.P = other }, state: StateInSync, message: "ignored"},
		{name: "drift to settle", reason: "policy Report asks by dry run first", config: report,
			change: func(in *Input) { in.Facts[0].Live.P = other }, state: StateWaiting, action: ActionCompare},
		{name: "drift settled", reason: "a dry run that changes nothing is no drift", config: report,
			change: func(in *Input) { in.Facts[0].Live.P = other; in.Facts[0].Verdict.SameByDryRun = &yes }, state: StateInSync},
		{name: "drift reported", reason: "policy Report writes nothing", config: report,
			change: func(in *Input) { in.Facts[0].Live.P = other; in.Facts[0].Verdict.SameByDryRun = &no }, state: StateDrifted},
		{name: "update under Report", reason: "Report is about drift; a changed desired object is applied", config: report,
			change: func(in *Input) { in.Facts[0].RecordedHash = "v1-old"; in.Facts[0].Live.Hash = "v1-old" }, state: StateUpdate, action: ActionApply},
		{name: "unverified", reason: "an update that was not compared with a new object is completed",
			change: func(in *Input) { in.Facts[0].Unverified = true }, state: StateUpdate, action: ActionApply},
		{name: "unverified under Report", reason: "Report is about drift; an update is completed", config: report,
			change: func(in *Input) { in.Facts[0].Unverified = true }, state: StateUpdate, action: ActionApply},
		{name: "stale", reason: "what an update cannot change is reported, and nothing is written",
			change: func(in *Input) { in.Facts[0].Verdict.Stale = ".spec.x" }, state: StateStale, message: ".spec.x"},
		{name: "contested", reason: "a writer that undid three repairs is not fought at full speed",
			change: func(in *Input) {
				in.Facts[0].Live.P, in.Facts[0].Spaced = other, time.Second
				in.Facts[0].Verdict.Contenders = ".data.x (last written by kubectl-edit)"
			}, state: StateContested, message: "kubectl-edit"},
		{name: "contested, waited", reason: "after the back-off there is another repair",
			change: func(in *Input) {
				in.Facts[0].Live.P, in.Facts[0].Spaced = other, 0
			}, state: StateRepair, action: ActionApply},
		{name: "create only", reason: "what exists and is ours is left as it is", config: createOnly,
			change: func(in *Input) { in.Facts[0].Live.P = other; in.Facts[0].Live.Hash = "v1-old" }, state: StateInSync},
		{name: "create only, finished and gone", reason: "a Job that succeeded is not run again", config: createOnly,
			change: func(in *Input) {
				in.Facts[0] = Facts{RecordedHash: "v1-old", RecordedAt: in.Desired.Objects[0].Target, Finished: true}
			}, state: StateInSync, message: "completed"},
		{name: "create only, finished, other name", reason: "another name is another piece of work", config: createOnly,
			change: func(in *Input) {
				in.Facts[0] = Facts{RecordedHash: hash, RecordedAt: Ref{Name: "other"}, Finished: true}
			}, state: StateCreate, action: ActionCreate},
		{name: "create only, deleted by hand", reason: "what had not finished is made again", config: createOnly,
			change: func(in *Input) { in.Facts[0] = Facts{RecordedHash: hash} }, state: StateCreate, action: ActionCreate},
		{name: "immutable", reason: "a refusal that a dry run under the same name does not share: make it anew", config: recreate,
			change: func(in *Input) {
				in.Facts[0].Live.Hash, in.Facts[0].RecordedHash = "v1-old", "v1-old"
				in.Facts[0].Verdict.Immutable = true
			}, state: StateRecreate, action: ActionDelete},
		{name: "immutable without the policy", reason: "nothing is ever deleted that the config does not allow",
			change: func(in *Input) {
				in.Facts[0].Live.Hash, in.Facts[0].RecordedHash = "v1-old", "v1-old"
				in.Facts[0].Verdict.Immutable = true
			}, state: StateUpdate, action: ActionApply},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := inSyncInput()
			if row.change != nil {
				row.change(&in)
			}
			got := onePipeline(row.config).Decide(in).Outcomes[0]
			if got.State != row.state || got.Action != row.action || !strings.Contains(got.Message, row.message) {
				t.Errorf("%s:\n got %s/%q: %s\nwant %s/%q: …%s…", row.reason, got.State, got.Action, got.Message, row.state, row.action, row.message)
			}
		})
	}
}

// What is not known to be ours is not reported, and above all not recorded: the status is believed later.
func TestDecideTheirs(t *testing.T) {
	pause := func(in *Input) { in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"}) }
	no := false
	for _, row := range []struct {
		name, reason string
		change       func(*Input, *Pipeline)
		theirs       bool
	}{
		{"ours", "it bears our mark and is recorded", func(*Input, *Pipeline) {}, false},
		{"marks stripped", "the recorded uid says so", func(in *Input, _ *Pipeline) { in.Facts[0].Live.Owners = nil }, false},
		{"marks stripped, unrecorded", "nothing says that it is ours", func(in *Input, _ *Pipeline) { unrecorded(in); in.Facts[0].Live.Owners = nil }, true},
		{"unrecorded mark", "the API server records that we applied it", func(in *Input, _ *Pipeline) { unrecorded(in) }, false},
		{"forged mark", "nobody records it", func(in *Input, _ *Pipeline) { forged(in) }, true},
		{"forged mark, nothing records", "then managedFields are all there is",
			func(in *Input, p *Pipeline) { forged(in); p.Config.Status.Enabled = &no }, true},
		{"no mark", "nothing says that it is ours", func(in *Input, _ *Pipeline) { in.Facts[0] = Facts{Live: &drift.Live{UID: "x"}} }, true},
		{"recorded, and another's since", "a controller is believed over our own record",
			func(in *Input, _ *Pipeline) { in.Facts[0].Live.Owners[0].UID = "up-2" }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			in, p := inSyncInput(), onePipeline(nil)
			pause(&in)
			row.change(&in, p)
			if o := p.Decide(in).Outcomes[0]; o.Theirs != row.theirs || o.State != StatePaused {
				t.Errorf("%s: %s, theirs %v", row.reason, o.State, o.Theirs)
			}
		})
	}
}

type testError struct{}

func (testError) Error() string { return "test error" }

var errTest = testError{}

func TestDecideLeftovers(t *testing.T) {
	old := func() *drift.Live {
		l := ourLive()
		l.Name, l.UID = "old", "live-0"
		return l
	}
	orphan := func(op *config.Operator) { op.Downstreams[0].DeletionPolicy = config.DeletionOrphan }
	givesWay := func(in *Input) {
		in.Facts[0] = Facts{Live: &drift.Live{UID: "x", Managed: true, OwnerMark: "apps/other/up-2"}}
		in.Leftovers[0].GivesWay = true
	}
	twoOfAKind := func(op *config.Operator) {
		second := op.Downstreams[0]
		second.Name = "second"
		op.Downstreams = append(op.Downstreams, second)
	}
	for _, row := range []struct {
		name   string
		reason string
		config func(*config.Operator)
		change func(*Input)
		state  State
		action Action
	}{
		{name: "successor stands", reason: "after a rename the old one goes", state: StateSuperseded, action: ActionDelete},
		{name: "successor is being made", reason: "the old one serves until the new one stands",
			change: func(in *Input) { in.Facts[0].Live = nil }, state: StateSuperseded},
		{name: "successor is in conflict", reason: "a failure takes nothing away",
			change: func(in *Input) { in.Facts[0].Live = &drift.Live{UID: "x"}; in.Facts[0].Trusted = false }, state: StateSuperseded},
		{name: "gives way", reason: "of upstreams that wait for each other's names, one goes first", change: givesWay, state: StateSuperseded, action: ActionDelete},
		{name: "gives way, kept", reason: "without our marks it would still be in the way", config: orphan, change: givesWay, state: StateSuperseded},
		{name: "gives way, and another one adopts it", reason: "then the marks are all that is in the way", change: givesWay, state: StateSuperseded, action: ActionRelease,
			config: func(op *config.Operator) {
				orphan(op)
				op.Downstreams[0].AdoptionPolicy = config.AdoptIfUnowned
			}},
		{name: "gives way to somebody else's", reason: "nobody waits for it in turn", state: StateSuperseded,
			change: func(in *Input) { givesWay(in); in.Facts[0].Live.Managed = false }},
		{name: "gives way, and the new name is free", reason: "nothing waits any more", state: StateSuperseded,
			change: func(in *Input) { givesWay(in); in.Facts[0].Live = nil }},
		{name: "gives way, paused", reason: "a paused upstream is left alone", state: StateSuperseded,
			change: func(in *Input) {
				givesWay(in)
				in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
			}},
		{name: "successor is deleted again and again", reason: "a contested successor that does not stand takes nothing away",
			change: func(in *Input) {
				in.Facts[0] = Facts{Spaced: time.Second}
			}, state: StateSuperseded},
		{name: "upstream is invalid", reason: "an invalid upstream takes nothing away",
			change: func(in *Input) { in.Desired = &Desired{Invalid: []rules.Failure{{}}, Objects: []DesiredObject{{}}} }, state: StateInvalid},
		{name: "template fails", reason: "a broken template takes nothing away",
			change: func(in *Input) { in.Desired.Objects[0] = DesiredObject{Err: errTest} }, state: StateRenderFailed},
		{name: "an input is missing", reason: "what exists is not superseded by something that nobody knows",
			change: func(in *Input) { in.Desired.Objects[0] = DesiredObject{Err: &waiting{"input is missing"}} }, state: StateWaiting},
		{name: "unwanted", reason: "when turned false",
			change: func(in *Input) { in.Desired.Objects[0] = DesiredObject{}; in.Facts[0].Live = nil }, state: StateUnwanted, action: ActionDelete},
		{name: "unwanted, kept", reason: "deletionPolicy Orphan keeps the object and takes our marks off", config: orphan,
			change: func(in *Input) { in.Desired.Objects[0] = DesiredObject{}; in.Facts[0].Live = nil }, state: StateUnwanted, action: ActionRelease},
		{name: "unselected", reason: "losing the label is the same",
			change: func(in *Input) { in.Selected = false }, state: StateUnwanted, action: ActionDelete},
		{name: "going already", reason: "a terminating object is not deleted again",
			change: func(in *Input) { in.Leftovers[0].Live.Deleting = true }, state: StateSuperseded},
		{name: "whose it was is in doubt", reason: "with two downstreams of a kind, one failing, nothing unrecorded is deleted", config: twoOfAKind,
			change: func(in *Input) {
				in.Leftovers[0].Certain = false
				in.Desired.Objects = append(in.Desired.Objects, DesiredObject{Err: errTest})
				in.Facts = append(in.Facts, Facts{})
			}, state: StateSuperseded},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := inSyncInput()
			in.Leftovers = []Owned{{Live: old(), Certain: true}}
			if row.change != nil {
				row.change(&in)
			}
			got := onePipeline(row.config).Decide(in).Leftovers[0]
			if got.State != row.state || got.Action != row.action {
				t.Errorf("%s: got %s/%q (%s), want %s/%q", row.reason, got.State, got.Action, got.Message, row.state, row.action)
			}
			if got.UID != "live-0" {
				t.Errorf("the outcome is about %q, not about the leftover", got.UID)
			}
		})
	}
}

func TestDecideFinalizer(t *testing.T) {
	orphan := func(op *config.Operator) { op.Downstreams[0].DeletionPolicy = config.DeletionOrphan }
	for _, row := range []struct {
		name   string
		reason string
		change func(*Input)
		config func(*config.Operator)
		want   FinalizerAction
	}{
		{name: "reference", reason: "an owner reference cleans up by itself", want: FinalizerLeave},
		{name: "annotation", reason: "nothing else cleans up across namespaces",
			change: func(in *Input) { in.Desired.Objects[0].Reference = false }, want: FinalizerAdd},
		{name: "annotation, has it", reason: "once is enough",
			change: func(in *Input) { in.Desired.Objects[0].Reference = false; in.HasFinalizer = true }, want: FinalizerLeave},
		{name: "conflict", reason: "a conflict makes nothing that needs one",
			change: func(in *Input) {
				in.Desired.Objects[0].Reference, in.Facts[0] = false, Facts{Live: &drift.Live{UID: "x"}}
			}, want: FinalizerLeave},
		{name: "conflict, has it", reason: "each attempt would take it off and put it on again",
			change: func(in *Input) {
				in.Desired.Objects[0].Reference, in.Facts[0] = false, Facts{Live: &drift.Live{UID: "x"}}
				in.HasFinalizer = true
			}, want: FinalizerLeave},
		{name: "no longer needed", reason: "a finalizer that guards nothing only gets stuck",
			change: func(in *Input) { in.HasFinalizer = true }, want: FinalizerRemove},
		{name: "invalid", reason: "existing objects are left alone, and so is its guard",
			change: func(in *Input) {
				in.Desired = &Desired{Invalid: []rules.Failure{{}}, Objects: []DesiredObject{{}}}
				in.HasFinalizer = true
			}, want: FinalizerLeave},
		{name: "invalid, and to be kept at a deletion", reason: "the garbage collector would delete it", config: orphan, change: func(in *Input) {
			in.Desired = &Desired{Invalid: []rules.Failure{{}}, Objects: []DesiredObject{{}}}
		}, want: FinalizerAdd},
		{name: "cannot be rendered, and to be kept at a deletion", reason: "the same", config: orphan, change: func(in *Input) {
			in.Desired.Objects[0].Err, in.Leftovers, in.Facts[0] = errTest, []Owned{{Live: in.Facts[0].Live, Certain: true}}, Facts{}
		}, want: FinalizerAdd},
		{name: "paused, and to be kept at a deletion", reason: "the same", config: orphan, change: func(in *Input) {
			in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
		}, want: FinalizerAdd},
		{name: "leftover elsewhere", reason: "a superseded object in another namespace still needs it",
			change: func(in *Input) {
				in.HasFinalizer = true
				l := ourLive()
				l.UID, l.Owners, l.OwnerMark = "live-0", nil, "apps/web/"+string(upstreamUID)
				in.Leftovers = []Owned{{Live: l, Certain: true}}
			}, want: FinalizerLeave},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := inSyncInput()
			if row.change != nil {
				row.change(&in)
			}
			d := onePipeline(row.config).Decide(in)
			if d.Finalizer != row.want {
				t.Errorf("%s: got %d, want %d", row.reason, d.Finalizer, row.want)
			}
		})
	}
}
