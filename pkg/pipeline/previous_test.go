package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// TestDecidePrevious is about objects that have names, or a kind of mark, that the config has left.
func TestDecidePrevious(t *testing.T) {
	once := func(op *config.Operator) { op.Downstreams[0].UpdatePolicy = config.UpdateCreateOnly }
	report := func(op *config.Operator) { op.Downstreams[0].Drift.Policy = config.DriftReport }
	ignore := func(op *config.Operator) { op.Downstreams[0].Drift.Policy = config.DriftIgnore }
	previousNames := func(in *Input) { in.Facts[0].Live.HasPreviousNames = true }
	annotated := func(in *Input) {
		in.Facts[0].Live.Owners, in.Facts[0].Live.OwnerMark = nil, "apps/web/"+string(upstreamUID)
	}
	drifted := func(in *Input) { in.Facts[0].Live.P = other }
	for _, row := range []struct {
		name     string
		reason   string
		config   func(*config.Operator)
		change   []func(*Input)
		state    State
		action   Action
		replaces bool
	}{
		{name: "previous names", reason: "one write gives it the names of now", change: []func(*Input){previousNames}, state: StateUpdate, action: ActionApply, replaces: true},
		{name: "previous names, drift reported", reason: "the names of before will not be known forever", config: report,
			change: []func(*Input){previousNames}, state: StateUpdate, action: ActionApply, replaces: true},
		{name: "previous names, drift ignored", reason: "likewise", config: ignore, change: []func(*Input){previousNames, drifted}, state: StateUpdate, action: ActionApply, replaces: true},
		{name: "previous names, made once", reason: "what was made once is not applied again: it gets the marks alone", config: once,
			change: []func(*Input){previousNames, drifted}, state: StateUpdate, action: ActionReplaceMarks, replaces: true},
		{name: "previous names, terminating", reason: "it is going", change: []func(*Input){previousNames, func(in *Input) { in.Facts[0].Live.Deleting = true }}, state: StateWaiting},
		{name: "previous names, not ours", reason: "names of before do not make somebody else's object ours",
			change: []func(*Input){previousNames, func(in *Input) {
				in.Facts[0].Live.Owners[0].UID, in.Facts[0].Live.Owners[0].Name = "up-2", "else"
				in.Facts[0].Trusted = false
			}}, state: StateConflict},
		{name: "previous names, forged", reason: "names of before do not make a mark ours",
			change: []func(*Input){previousNames, forged}, state: StateConflict},
		{name: "previous names, from a crash", reason: "the entry of the manager of before is ours as well",
			change: []func(*Input){previousNames, unrecorded}, state: StateUpdate, action: ActionApply, replaces: true},
		{name: "previous names, somebody puts it back", reason: "two operators with each other's names would write forever",
			change: []func(*Input){previousNames, func(in *Input) { in.Facts[0].Spaced = time.Second }}, state: StateContested},
		{name: "annotation where a reference is wanted", reason: "without the reference nothing would clean up once the finalizer is gone", config: ignore,
			change: []func(*Input){annotated, drifted}, state: StateUpdate, action: ActionApply, replaces: true},
		{name: "annotation beside the reference, applied already", reason: "somebody else owns the annotation too: once more would not help",
			change: []func(*Input){func(in *Input) { in.Facts[0].Live.OwnerMark = "apps/web/" + string(upstreamUID) }}, state: StateInSync},
		{name: "reference where the annotation is wanted", reason: "the collector would take what shall stay", config: ignore,
			change: []func(*Input){drifted, func(in *Input) { in.Desired.Objects[0].Reference = false }}, state: StateUpdate, action: ActionApply, replaces: true},
		{name: "reference where the annotation is wanted, made once", reason: "marks alone", config: once,
			change: []func(*Input){func(in *Input) { in.Desired.Objects[0].Reference = false }}, state: StateUpdate, action: ActionReplaceMarks, replaces: true},
		{name: "made once", reason: "what bears the marks of now needs nothing", config: once, change: []func(*Input){drifted}, state: StateInSync},
		{name: "drift", reason: "is no matter of names", change: []func(*Input){drifted}, state: StateRepair, action: ActionApply},
		{name: "entries to adopt", reason: "they go with the next apply and ask for none: who still writes would be fought",
			change: []func(*Input){func(in *Input) { in.Facts[0].Live.NeedsTakeover = true }}, state: StateInSync},
	} {
		t.Run(row.name, func(t *testing.T) {
			in, p := inSyncInput(), onePipeline(row.config)
			for _, change := range row.change {
				change(&in)
			}
			o := p.Decide(in).Outcomes[0]
			if o.State != row.state || o.Action != row.action || o.ReplacesPrevious != row.replaces {
				t.Errorf("%s: got %s/%q replaces previous %v (%s), want %s/%q", row.reason, o.State, o.Action, o.ReplacesPrevious, o.Message, row.state, row.action)
			}
		})
	}
}

// TestDecidePreviousObserve: what would be done is said, what would have to be asked is told from what is known.
func TestDecidePreviousObserve(t *testing.T) {
	observe := func(op *config.Operator) { op.Mode = config.ModeObserve }
	recreate := func(op *config.Operator) { observe(op); op.Downstreams[0].UpdatePolicy = config.UpdateRecreate }
	report := func(op *config.Operator) { observe(op); op.Downstreams[0].Drift.Policy = config.DriftReport }
	adopt := func(op *config.Operator) { observe(op); op.Downstreams[0].AdoptionPolicy = config.AdoptIfUnowned }
	drifted := func(in *Input) { in.Facts[0].Live.P = other }
	for _, row := range []struct {
		name    string
		reason  string
		config  func(*config.Operator)
		change  func(*Input)
		state   State
		action  Action
		message string
	}{
		{name: "in sync", reason: "nothing would be done", config: observe, change: func(*Input) {}, state: StateInSync},
		{name: "create", reason: "nothing stands", config: observe, change: func(in *Input) { in.Facts[0].Live = nil },
			state: StateCreate, action: ActionCreate, message: "would be created: apps/web does not exist"},
		{name: "update", reason: "the desired object has changed, and the fields were compared", config: observe,
			change: func(in *Input) {
				in.Desired.Objects[0].Hash = "v1-new"
				in.Facts[0].Verdict.Differences = "would change .data.key"
			},
			state: StateUpdate, action: ActionApply, message: "would be updated: the desired state has changed (would change .data.key)"},
		{name: "repair", reason: "somebody changed it", config: observe, change: drifted,
			state: StateRepair, action: ActionApply, message: "would be repaired: apps/web has drifted"},
		{name: "recreate", reason: "a verdict from before the mode was changed", config: recreate,
			change: func(in *Input) { drifted(in); in.Facts[0].Verdict.Immutable = true },
			state:  StateRecreate, action: ActionDelete, message: "would be deleted and recreated"},
		{name: "report", reason: "the dry run that would settle it is not made", config: report, change: drifted,
			state: StateDrifted, message: "only a dry run can tell"},
		{name: "marked by another writer", reason: "the operator that is replaced marks with the same upstream", config: observe,
			change: forged, state: StateConflict, message: "appears to belong to another operator"},
		{name: "marked by another writer, adopted", reason: "it would be taken over", config: adopt,
			change: func(in *Input) { in.Facts[0] = Facts{Live: ourLive()}; in.Facts[0].Live.Hash = "" },
			state:  StateUpdate, action: ActionApply, message: "would be updated"},
		{name: "conflict", reason: "is one in any mode", config: observe,
			change: func(in *Input) { in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", Name: "web", UID: "x"}} }, state: StateConflict},
	} {
		t.Run(row.name, func(t *testing.T) {
			in, p := inSyncInput(), onePipeline(row.config)
			row.change(&in)
			o := p.Decide(in).Outcomes[0]
			if o.State != row.state || o.Action != row.action || !strings.Contains(o.Message, row.message) {
				t.Errorf("%s: got %s/%q (%s), want %s/%q (%s)", row.reason, o.State, o.Action, o.Message, row.state, row.action, row.message)
			}
			if o.Action == ActionCompare {
				t.Errorf("%s: a probe is asked for", row.reason)
			}
		})
	}
}

// TestDecideSwap: the finalizer of before counts, and gets its new name where it is still needed.
func TestDecideSwap(t *testing.T) {
	for _, row := range []struct {
		name   string
		reason string
		change func(*Input, *config.Operator)
		want   FinalizerAction
	}{
		{"needed", "it is renamed before anything else is done", func(in *Input, _ *config.Operator) { in.Desired.Objects[0].Reference = false }, FinalizerSwap},
		{"not needed", "it guards nothing", func(*Input, *config.Operator) {}, FinalizerRemove},
		{"render failed", "a name says nothing of what stands", func(in *Input, _ *config.Operator) { in.Desired.Objects[0] = DesiredObject{Err: errTest} }, FinalizerSwap},
		{"paused", "nothing is done", func(in *Input, _ *config.Operator) {
			in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
		}, FinalizerLeave},
		{"none of now", "the config has no use for one, and what stands needs none", func(_ *Input, op *config.Operator) { op.Conventions.Finalizer = "" }, FinalizerRemove},
		{"none of now, something stands that needs one", "it stays until that is gone", func(in *Input, op *config.Operator) {
			op.Conventions.Finalizer, in.Desired.Objects[0].Reference = "", false
		}, FinalizerLeave},
		{"unselected", "it goes with what it guarded", func(in *Input, _ *config.Operator) { in.Selected = false }, FinalizerRemove},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := inSyncInput()
			in.HasFinalizer, in.HasPreviousFinalizer = true, true
			p := onePipeline(func(op *config.Operator) { row.change(&in, op) })
			if d := p.Decide(in); d.Finalizer != row.want {
				t.Errorf("%s: got %d, want %d", row.reason, d.Finalizer, row.want)
			}
		})
	}
}

// TestPreviousOf leaves out what the config names still, or uses for something else: objects would have it forever.
func TestPreviousOf(t *testing.T) {
	conv := func(change func(*config.Conventions)) *config.Conventions {
		c := &config.Conventions{FieldManager: "now", Hash: config.Hash{Annotation: "now/hash"}, Owner: config.Owner{Annotation: "now/owner"},
			Labels: map[string]string{"now/app": "a"}, Annotations: map[string]string{"now/note": "a"}, Previous: &config.Previous{}}
		change(c)
		return c
	}
	for reason, row := range map[string]struct {
		change func(*config.Conventions)
		want   drift.Previous
	}{
		"no previous": {func(c *config.Conventions) { c.Previous = nil }, drift.Previous{}},
		"all of it": {func(c *config.Conventions) {
			c.Previous = &config.Previous{FieldManager: "before", Hash: &config.PreviousHash{Label: "before/hash"}, Owner: &config.PreviousOwner{Annotation: "before/owner"}}
		}, drift.Previous{Manager: "before", Hash: drift.Key{Label: "before/hash"}, OwnerAnnotation: "before/owner"}},
		"nothing has changed": {func(c *config.Conventions) {
			c.Previous = &config.Previous{FieldManager: "now", Hash: &config.PreviousHash{Annotation: "now/hash"}, Owner: &config.PreviousOwner{Annotation: "now/owner"}}
		}, drift.Previous{}},
		"two keys swapped": {func(c *config.Conventions) {
			c.Previous = &config.Previous{Hash: &config.PreviousHash{Annotation: "now/owner"}, Owner: &config.PreviousOwner{Annotation: "now/hash"}}
		}, drift.Previous{}},
		"given by conventions now": {func(c *config.Conventions) {
			c.Previous = &config.Previous{Hash: &config.PreviousHash{Label: "now/app"}, Owner: &config.PreviousOwner{Annotation: "now/note"}}
		}, drift.Previous{}},
		"the same key as a label": {func(c *config.Conventions) { c.Previous.Hash = &config.PreviousHash{Label: "now/hash"} }, drift.Previous{Hash: drift.Key{Label: "now/hash"}}},
	} {
		if diff := cmp.Diff(row.want, previousOf(conv(row.change))); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
}

// TestWithCurrentMarks: what is made once keeps what we own of it, gets the current marks, and the hash of what was made.
func TestWithCurrentMarks(t *testing.T) {
	p := onePipeline(func(op *config.Operator) {
		op.Conventions.Owner.Annotation, op.Conventions.FieldManager = "now/owner", "now"
	})
	p.hashKey = drift.Key{Annotation: "now/hash"}
	p.Downstreams[0].labels = []textEntry{{key: "now/app"}}
	p.Downstreams[0].View.Previous = drift.Previous{Manager: "before", Hash: drift.Key{Label: "before/hash"}, OwnerAnnotation: "before/owner"}
	reference := []any{map[string]any{"uid": string(upstreamUID)}}
	doc := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "new"}, "metadata": map[string]any{"name": "a",
		"labels": map[string]any{"now/app": "a", "template": "x"}, "annotations": map[string]any{"now/hash": "v1-new"}, "ownerReferences": reference,
	}}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "made", "theirs": "x"}, "metadata": map[string]any{
		"name": "a", "labels": map[string]any{"before/hash": "v1-made", "theirs": "x"}, "annotations": map[string]any{"before/owner": "o", "kept": "x"},
		"managedFields": []any{map[string]any{"manager": "now", "operation": "Apply", "fieldsV1": map[string]any{
			"f:data":     map[string]any{"f:key": map[string]any{}},
			"f:metadata": map[string]any{"f:labels": map[string]any{"f:before/hash": map[string]any{}}, "f:annotations": map[string]any{"f:before/owner": map[string]any{}, "f:kept": map[string]any{}}},
		}}},
	}}}
	got, off := p.WithCurrentMarks(doc, 0, upstreamUID, obj, "v1-made")
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "made"}, "metadata": map[string]any{"name": "a",
		"labels": map[string]any{"now/app": "a"}, "annotations": map[string]any{"now/hash": "v1-made", "kept": "x"}, "ownerReferences": reference}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Marks{Labels: []string{"before/hash"}, Annotations: []string{"before/owner", "now/owner"}, Managers: []string{"before"}}, off); diff != "" {
		t.Error(diff)
	}
	delete(doc["metadata"].(map[string]any), "ownerReferences")
	if got, off = p.WithCurrentMarks(doc, 0, upstreamUID, obj, ""); asMap(asMap(got["metadata"])["annotations"])["now/hash"] != "v1-new" || off.OwnerUID != upstreamUID {
		t.Errorf("without a reference: %v, %v", got, off)
	}
}

// TestHasMarks: an object that this operator made under the previous names is not one of its upstreams.
func TestHasMarks(t *testing.T) {
	p := onePipeline(func(op *config.Operator) { op.Conventions.Owner.Annotation = "now/owner" })
	p.hashKey = drift.Key{Annotation: "now/hash"}
	p.previous = drift.Previous{Hash: drift.Key{Label: "before/hash"}, OwnerAnnotation: "before/owner"}
	for _, row := range []struct {
		annotations, labels map[string]string
		owner, hash         bool
	}{
		{nil, nil, false, false},
		{map[string]string{"": "x", "other": "x"}, map[string]string{"other": "x"}, false, false},
		{map[string]string{"now/owner": "x"}, nil, true, false},
		{map[string]string{"before/owner": "x"}, nil, true, false},
		{map[string]string{"now/hash": "x"}, nil, false, true},
		{nil, map[string]string{"before/hash": "x"}, false, true},
	} {
		u := upstreamObject()
		u.SetAnnotations(row.annotations)
		u.SetLabels(row.labels)
		if owner, hash := p.HasOwnerMark(u), p.HasHash(u); owner != row.owner || hash != row.hash {
			t.Errorf("annotations %v, labels %v: owner %v, hash %v", row.annotations, row.labels, owner, hash)
		}
	}
}
