package decide_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

// What was set as fields of an object of others does not prove that the object is ours, whoever records its uid, unless
// the downstream still sets fields.
func TestFieldsAreNoOwnership(t *testing.T) {
	for _, row := range []struct {
		reason         string
		fields, marked bool
		adopt          config.AdoptionPolicy
		state          operator.State
		owned          int
	}{
		{"an object of ours", false, false, config.AdoptNever, operator.StateInSync, 1},
		{"an object of others that has our fields", false, true, config.AdoptNever, operator.StateConflict, 0},
		{"it may be adopted", false, true, config.AdoptIfUnowned, operator.StateUpdate, 0},
		{"the downstream sets fields", true, true, config.AdoptNever, operator.StateInSync, 1},
	} {
		p := onePipeline(func(op *config.Operator) {
			if op.Downstreams[0].AdoptionPolicy = row.adopt; row.fields {
				op.Downstreams[0].Ownership = config.OwnershipFields
			}
		})
		in := inSyncInput()
		in.HasFinalizer = true
		annotate(&in, true)
		live := in.Facts[0].Live
		if row.marked {
			live.Hash = marks.FieldsHashPrefix + hash
			in.Facts[0].RecordedHash = live.Hash
		}
		if row.fields {
			in.Desired.Objects[0].Hash = live.Hash
		}
		if got := decide.Decide(p.Settings, in).Outcomes[0]; got.State != row.state || got.Theirs != (row.owned == 0) {
			t.Errorf("%s: %s, theirs %t: %s", row.reason, got.State, got.Theirs, got.Message)
		}
		left := decide.Leftovers(p.Settings, upstreamUID, nil, [][]*drift.Live{{live}}, nil, map[types.UID]int{live.UID: 0})
		if len(left) != row.owned {
			t.Errorf("%s: %d objects are deleted or released with the upstream", row.reason, len(left))
		}
	}
}

// A Namespace, or a definition, is not deleted while something is wanted that would be deleted with it, whatever after
// says.
func TestStandsForWanted(t *testing.T) {
	namespace := func(op *config.Operator) { op.Downstreams[0].Kind = "Namespace" }
	definition := func(op *config.Operator) {
		op.Downstreams[0].APIVersion, op.Downstreams[0].Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	}
	for _, row := range []struct {
		reason string
		kind   func(*config.Operator)
		name   string
		change func(*operator.Input)
		want   operator.Action
	}{
		{"an object is wanted in the namespace", namespace, "apps", func(*operator.Input) {}, operator.ActionNone},
		{"it is yet to be created", namespace, "apps", func(in *operator.Input) { in.Facts[1].Live = nil }, operator.ActionNone},
		{"it cannot be rendered, and exists", namespace, "apps", func(in *operator.Input) { in.Desired.Objects[1].Err, in.Desired.Objects[1].Wanted = errTest, false }, operator.ActionNone},
		{"it is wanted in another namespace", namespace, "old", func(*operator.Input) {}, operator.ActionDelete},
		{"it is not wanted any more", namespace, "apps", func(in *operator.Input) { in.Desired.Objects[1].Wanted = false }, operator.ActionDelete},
		{"an object of the kind is wanted", definition, "widgets.example.com", func(*operator.Input) {}, operator.ActionNone},
		{"one of another kind is wanted", definition, "gadgets.example.com", func(*operator.Input) {}, operator.ActionDelete},
		{"none of the kind is wanted", definition, "widgets.example.com", func(in *operator.Input) { in.Desired.Objects[1].Wanted = false }, operator.ActionDelete},
		{"of another kind nothing else is part", func(*config.Operator) {}, "apps", func(*operator.Input) {}, operator.ActionDelete},
	} {
		for _, after := range []bool{false, true} {
			p := onePipeline(func(op *config.Operator) {
				second := op.Downstreams[0]
				second.Name, second.APIVersion, second.Kind = "second", "example.com/v1", "Widget"
				if row.kind(op); after {
					second.After = []config.After{{Name: op.Downstreams[0].Name, Until: config.AfterReady}}
				}
				op.Downstreams = append(op.Downstreams, second)
			})
			p.Downstreams[1].Kind.GVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
			in := inSyncInput()
			in.HasFinalizer, in.Health = true, p.Health(in.Upstream, in.Desired, noInputs)
			in.Desired.Objects = append([]operator.DesiredObject{{}}, in.Desired.Objects...)
			in.Desired.Objects[1].Downstream = 1
			in.Facts = append([]operator.Facts{{}}, in.Facts...)
			old := ourLive()
			old.Namespace, old.Name, old.UID = "", row.name, "live-0"
			in.Leftovers = []operator.Owned{{Live: old, Certain: true}}
			row.change(&in)
			got := decide.Decide(p.Settings, in).Leftovers[0]
			if got.Action != row.want || got.GoesLater {
				t.Errorf("%s, after %t: %s %q, later %t: %s", row.reason, after, got.State, got.Action, got.GoesLater, got.Message)
			}
			if row.want == operator.ActionNone && !strings.HasPrefix(got.Message, "it stays: Widget apps/web is wanted") {
				t.Errorf("%s, after %t: %s", row.reason, after, got.Message)
			}
			in.Selected = false
			if got := decide.Decide(p.Settings, in).Leftovers[0]; got.Action != operator.ActionDelete {
				t.Errorf("%s, not selected: %s %q: %s", row.reason, got.State, got.Action, got.Message)
			}
		}
	}
}

// The status records an object that is to go beside the one that has replaced it: after a restart with other labels,
// nothing else knows of it.
func TestRecordsWhatIsReplaced(t *testing.T) {
	for _, unselected := range []bool{true, false} {
		p := onePipeline(nil)
		p.Storable = status.Probe(nil)
		in, old := inSyncInput(), ourLive()
		old.Name, old.UID, old.Unselected = "old", "live-0", unselected
		in.Leftovers = []operator.Owned{{Live: old, Certain: true, Recorded: true}}
		in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
		d := decide.Decide(p.Settings, in)
		in.Upstream.Object["status"] = p.Report(t.Context(), in.Upstream, desired.Inputs{}, in.Desired,
			[]operator.Result{{Outcome: d.Outcomes[0], Live: in.Facts[0].Live}}, d.Leftovers, nil, metav1.NewTime(now)).Status
		r := p.Recorded(in.Upstream)
		slices.SortFunc(r, func(a, b status.Recorded) int { return cmp.Compare(a.UID, b.UID) })
		if len(r) != 2 || r[0].UID != "live-0" || !r[0].Replaced || r[1].UID != liveUID || r[1].Replaced {
			t.Errorf("unselected is %v: recorded is %+v", unselected, r)
		}
		if r := p.RecordedOf(r, &in.Desired.Objects[0]); r == nil || r.UID != liveUID {
			t.Errorf("unselected is %v: recorded of what is wanted is %+v", unselected, r)
		}
	}
}

// The cache lists objects in any order. What a person confirms is a digest of what is found, so that has one order.
func TestLeftoversHaveOneOrder(t *testing.T) {
	p := onePipeline(func(op *config.Operator) { op.Downstreams[0].ForEach = &config.ForEach{Items: "self.spec.items"} })
	first, second := ourLive(), ourLive()
	first.Name, first.UID, second.Name, second.UID = "a", "uid-a", "b", "uid-b"
	for _, list := range [][]*drift.Live{{first, second}, {second, first}} {
		left := decide.Leftovers(p.Settings, upstreamUID, nil, [][]*drift.Live{list}, nil, map[types.UID]int{"uid-a": 0, "uid-b": 0})
		if len(left) != 2 || left[0].Live != first {
			t.Errorf("found in another order: %v", left)
		}
	}
}
