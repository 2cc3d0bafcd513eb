package decide_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/health"
)

const (
	upstreamUID = types.UID("up-1")
	liveUID     = types.UID("live-1")
	hash        = "v1-abc"
)

var (
	now    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	wanted = canonical.Digest(map[string]any{"data": "wanted"})
	other  = canonical.Digest(map[string]any{"data": "other"})
	target = operator.Ref{Namespace: "apps", Name: "web"}
)

// onePipeline is a pipeline of one ConfigMap, with what change does to its config.
func onePipeline(change func(*config.Operator)) *health.Checks {
	op := &config.Operator{
		Conventions: config.Conventions{Finalizer: "tools.example.com/cleanup", Pause: &config.Pause{Annotation: "tools.example.com/paused"}},
		Status:      config.Status{Downstreams: ".status.downstreams"},
		Retry:       config.Retry{MinDelay: common.Duration(5 * time.Second), MaxDelay: common.Duration(5 * time.Minute)},
		Downstreams: []config.Downstream{{
			Name: "config", APIVersion: "v1", Kind: "ConfigMap",
			AdoptionPolicy: config.AdoptNever, UpdatePolicy: config.UpdateApply, DeletionPolicy: config.DeletionDelete,
			Drift: config.Drift{Policy: config.DriftEnforce},
		}},
	}
	if change != nil {
		change(op)
	}
	settings := &operator.Settings{Name: "test", Config: op, DownstreamsPath: fieldpath.MustParse(op.Status.Downstreams)}
	p := &health.Checks{Renderer: &desired.Renderer{Settings: settings}}
	p.Upstream.HasStatus = true
	for i := range op.Downstreams {
		d := &operator.Downstream{Index: i, Name: op.Downstreams[i].Name, Config: &op.Downstreams[i]}
		settings.Downstreams = append(settings.Downstreams, d)
		p.Downstreams, p.Rules = append(p.Downstreams, &desired.Downstream{Downstream: d}), append(p.Rules, &health.Rules{})
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
	return &drift.Live{Identity: drift.Identity{Namespace: "apps", Name: "web", UID: liveUID, ResourceVersion: "7"}, Hash: hash,
		Projection: drift.Projection{P: wanted, Managed: true},
		Owners:     []drift.OwnerRef{{Kind: "Thing", Name: "web", UID: upstreamUID, Controller: true, Applied: true}}}
}

// unrecorded has an input's object known to nobody but the API server; forged has its mark written by someone else.
func unrecorded(in *operator.Input) { in.Facts[0].Trusted, in.Facts[0].RecordedHash = false, "" }

func forged(in *operator.Input) {
	unrecorded(in)
	in.Facts[0].Live.Owners[0].Applied = false
}

// inSyncInput is the input of an upstream whose downstream is what it asks for.
func inSyncInput() operator.Input {
	return operator.Input{
		Upstream: upstreamObject(), Selected: true, Now: now,
		Desired: &operator.Desired{Objects: []operator.DesiredObject{{Wanted: true, Target: target, Reference: true, Hash: hash, Sum: wanted}}},
		Facts:   []operator.Facts{{Live: ourLive(), Trusted: true, RecordedHash: hash}},
	}
}

// annotate has the object marked by the annotation instead of the reference.
func annotate(in *operator.Input, applied bool) {
	live := in.Facts[0].Live
	live.Owners, live.OwnerMark, live.MarkApplied = nil, "apps/web/"+string(upstreamUID), applied
	in.Facts[0].RecordedHash, in.Desired.Objects[0].Reference = hash, false
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
	in.Desired.Objects, in.Facts = append(in.Desired.Objects, operator.DesiredObject{Downstream: 1, Err: errTest}), append(in.Facts, operator.Facts{})
	for _, certain := range []bool{true, false} {
		in.Leftovers = []operator.Owned{{Live: old, Certain: certain}}
		if got := decide.Decide(p.Settings, in).Leftovers[0]; got.State != operator.StateSuperseded || (got.Action == operator.ActionDelete) != certain {
			t.Errorf("where it is certain (%v) of which downstream it is: %s/%q (%s)", certain, got.State, got.Action, got.Message)
		}
	}
}

func noInputs() desired.Inputs { return desired.Inputs{} }

// BenchmarkDecideInSync is what an event costs besides requests where nothing changed.
func BenchmarkDecideInSync(b *testing.B) {
	p, in := onePipeline(nil), inSyncInput()
	b.ReportAllocs()
	for b.Loop() {
		if d := decide.Decide(p.Settings, in); d.Pending() {
			b.Fatal("not in sync")
		}
	}
}
