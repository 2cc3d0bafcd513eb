package pipeline

import (
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

// Of two downstreams of a kind, one of which fails, nothing is deleted that is not recorded.
func TestDecideLeftoverInDoubt(t *testing.T) {
	p := onePipeline(func(op *config.Operator) {
		second := op.Downstreams[0]
		second.Name = "second"
		op.Downstreams = append(op.Downstreams, second)
	})
	in, old := inSyncInput(), ourLive()
	old.Name, old.UID = "old", "live-0"
	in.Desired.Objects, in.Facts = append(in.Desired.Objects, DesiredObject{Downstream: 1, Err: errTest}), append(in.Facts, Facts{})
	for _, certain := range []bool{true, false} {
		in.Leftovers = []Owned{{Live: old, Certain: certain}}
		if got := p.Decide(in).Leftovers[0]; got.State != StateSuperseded || (got.Action == ActionDelete) != certain {
			t.Errorf("where it is certain (%v) of which downstream it is: %s/%q (%s)", certain, got.State, got.Action, got.Message)
		}
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
