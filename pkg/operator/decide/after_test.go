package decide_test

import (
	"fmt"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
)

// What comes after a downstream waits for it with what it changes, and with nothing else.
func TestAfter(t *testing.T) {
	ready := func(f *operator.Facts) { f.Live.Status = kstatus.CurrentStatus }
	changed := func(f *operator.Facts) { f.RecordedHash, f.Live.Hash = "v1-old", "v1-old" }
	missing := func(f *operator.Facts) { f.Live = nil }
	starting := func(f *operator.Facts) { f.Live.Status = kstatus.InProgressStatus }
	for reason, c := range map[string]struct {
		first, second func(*operator.Facts)
		until         config.AfterUntil
		change        func(*operator.Input)
		want          operator.State
		message       string
	}{
		"a first one that is missing":                 {first: missing, second: missing, want: operator.StateWaiting, message: "apps/web does not exist"},
		"one that is not ready":                       {first: starting, second: missing, want: operator.StateWaiting, message: "it comes after first, which is not ready"},
		"one that is ready":                           {first: ready, second: missing, want: operator.StateCreate},
		"one that is yet to change":                   {first: changed, second: missing, want: operator.StateWaiting, message: "the desired state has changed"},
		"a change":                                    {first: starting, second: changed, want: operator.StateWaiting},
		"a change once it is ready":                   {first: ready, second: changed, want: operator.StateUpdate},
		"drift":                                       {first: starting, second: func(f *operator.Facts) { f.Live.P = other }, want: operator.StateRepair},
		"nothing to do":                               {first: missing, second: ready, want: operator.StateInSync},
		"it is enough that it exists":                 {first: starting, second: missing, until: config.AfterCreated, want: operator.StateCreate},
		"a change where it is enough":                 {first: changed, second: changed, until: config.AfterCreated, want: operator.StateUpdate},
		"that one does not exist":                     {first: missing, second: missing, until: config.AfterCreated, want: operator.StateWaiting, message: "not created"},
		"one of somebody else":                        {first: func(f *operator.Facts) { f.Live.Owners, f.Trusted = nil, false }, second: missing, until: config.AfterCreated, want: operator.StateWaiting},
		"one that is not wanted is not waited for":    {first: missing, second: missing, change: func(in *operator.Input) { in.Desired.Objects[0].Wanted = false }, want: operator.StateCreate},
		"one that cannot be rendered is not there":    {first: missing, second: missing, change: func(in *operator.Input) { in.Desired.Objects[0].Err = errTest }, want: operator.StateWaiting},
		"where order does not matter, as in a render": {first: missing, second: missing, change: func(in *operator.Input) { in.Health = nil }, want: operator.StateCreate},
	} {
		p := onePipeline(func(op *config.Operator) {
			first, second := op.Downstreams[0], op.Downstreams[0]
			first.Name, second.Name = "first", "second"
			until := c.until
			if until == "" {
				until = config.AfterReady
			}
			second.After = []config.After{{Name: "first", Until: until}}
			op.Downstreams = []config.Downstream{first, second}
		})
		in := inSyncInput()
		in.HasFinalizer, in.Health = true, p.Health(in.Upstream, in.Desired, noInputs)
		second := in.Desired.Objects[0]
		second.Downstream, second.Target.Name = 1, "second"
		in.Desired.Objects = append(in.Desired.Objects, second)
		in.Facts = append(in.Facts, operator.Facts{Live: ourLive(), Trusted: true, RecordedHash: hash})
		in.Facts[1].Live.UID, in.Facts[1].Live.Name = "live-2", "second"
		c.first(&in.Facts[0])
		c.second(&in.Facts[1])
		if c.change != nil {
			c.change(&in)
		}
		got := decide.Decide(p.Settings, in).Outcomes[1]
		if got.State != c.want || !strings.Contains(got.Message, c.message) || (got.State == operator.StateWaiting) != (got.Action == operator.ActionNone && got.State != operator.StateInSync) {
			t.Errorf("%s: %s %q: %s", reason, got.State, got.Action, got.Message)
		}
	}
}

// What is not wanted any more goes in the reverse order, each once what comes after it is gone, also through one that
// is gone before: an accepted deletion is not enough.
func TestUnwantedInOrder(t *testing.T) {
	p := onePipeline(func(op *config.Operator) {
		for i, name := range []string{"first", "second", "third"} {
			d := op.Downstreams[0]
			if d.Name = name; i > 0 {
				d.After = []config.After{{Name: op.Downstreams[i].Name, Until: config.AfterCreated}}
			}
			op.Downstreams = append(op.Downstreams, d)
		}
		op.Downstreams = op.Downstreams[1:]
		for i := range op.Downstreams[1:] {
			op.Downstreams[1+i].After[0].Name = op.Downstreams[i].Name
		}
	})
	unwanted := func(selected bool) operator.Input {
		in := inSyncInput()
		in.HasFinalizer, in.Health, in.Selected = true, p.Health(in.Upstream, in.Desired, noInputs), selected
		w := in.Desired.Objects[0]
		in.Desired.Objects, in.Facts = nil, nil
		for i := range 3 {
			w.Downstream, w.Wanted = i, false
			in.Desired.Objects, in.Facts = append(in.Desired.Objects, w), append(in.Facts, operator.Facts{})
		}
		return in
	}
	own := func(downstream int, deleting bool) operator.Owned {
		live := ourLive()
		live.UID, live.Deleting = types.UID(fmt.Sprint("live-", downstream)), deleting
		return operator.Owned{Downstream: downstream, Live: live, Certain: true}
	}
	for _, row := range []struct {
		reason string
		left   []operator.Owned
		want   []operator.Action
	}{
		{"the last one goes first", []operator.Owned{own(0, false), own(1, false), own(2, false)}, []operator.Action{operator.ActionNone, operator.ActionNone, operator.ActionDelete}},
		{"it may be held by a finalizer", []operator.Owned{own(0, false), own(1, false), own(2, true)}, []operator.Action{operator.ActionNone, operator.ActionNone, operator.ActionNone}},
		{"the one between them is gone", []operator.Owned{own(0, false), own(2, true)}, []operator.Action{operator.ActionNone, operator.ActionNone}},
		{"then the next one goes", []operator.Owned{own(0, false), own(1, false)}, []operator.Action{operator.ActionNone, operator.ActionDelete}},
		{"and the first one last", []operator.Owned{own(0, false)}, []operator.Action{operator.ActionDelete}},
	} {
		deletion := deleted()
		deletion.Cascade = operator.CascadeForeground
		for name, in := range map[string]operator.Input{"when is false": unwanted(true), "not selected": unwanted(false), "deleted": deletion} {
			in.Leftovers = row.left
			d := decide.Decide(p.Settings, in)
			if name == "deleted" {
				d = decide.Deletion(p.Settings, in)
			}
			for i, want := range row.want {
				o := d.Leftovers[i]
				if o.Action != want || name != "deleted" && o.GoesLater != (want == operator.ActionNone && !o.Live.Deleting) {
					t.Errorf("%s, %s: object %d: %q, later %t: %s", name, row.reason, i, o.Action, o.GoesLater, o.Message)
				}
			}
			if name == "deleted" && len(row.left) > 1 && d.Finalizer == operator.FinalizerRemove {
				t.Errorf("%s, %s: the finalizer is removed", name, row.reason)
			}
		}
	}
}

// An object that another one has replaced stays while what comes after it is not up to date: the old pods serve until
// the Service selects the new ones.
func TestSupersededAfter(t *testing.T) {
	waits := func(in *operator.Input) { in.Facts[0].Live.Status = kstatus.InProgressStatus }
	for reason, c := range map[string]struct {
		change func(*operator.Input)
		want   operator.Action
	}{
		"all is up to date":                 {func(*operator.Input) {}, operator.ActionDelete},
		"the one after it is yet to change": {func(in *operator.Input) { in.Facts[1].RecordedHash, in.Facts[1].Live.Hash = "v1-old", "v1-old" }, operator.ActionNone},
		"it waits for the successor": {func(in *operator.Input) {
			in.Facts[1].RecordedHash, in.Facts[1].Live.Hash = "v1-old", "v1-old"
			waits(in)
		}, operator.ActionNone},
		"it has drifted":        {func(in *operator.Input) { in.Facts[1].Live.P = other }, operator.ActionNone},
		"it cannot be rendered": {func(in *operator.Input) { in.Desired.Objects[1].Err = errTest }, operator.ActionNone},
		"it does not exist yet": {func(in *operator.Input) { in.Facts[1].Live = nil; waits(in) }, operator.ActionDelete},
		"it is somebody else's": {func(in *operator.Input) { in.Facts[1].Live.Owners, in.Facts[1].Trusted = nil, false }, operator.ActionDelete},
		"it is not wanted":      {func(in *operator.Input) { in.Desired.Objects[1].Wanted = false }, operator.ActionDelete},
		"what it has superseded itself is to go": {func(in *operator.Input) {
			in.Leftovers = append(in.Leftovers, operator.Owned{Downstream: 1, Live: in.Facts[1].Live, Certain: true})
		}, operator.ActionNone},
		"the successor is not ready, nothing else": {waits, operator.ActionDelete},
	} {
		p := onePipeline(func(op *config.Operator) {
			first, second := op.Downstreams[0], op.Downstreams[0]
			first.Name, second.Name = "first", "second"
			second.After = []config.After{{Name: "first", Until: config.AfterReady}}
			op.Downstreams = []config.Downstream{first, second}
		})
		in := inSyncInput()
		in.HasFinalizer, in.Health = true, p.Health(in.Upstream, in.Desired, noInputs)
		in.Facts[0].Live.Status = kstatus.CurrentStatus
		second := in.Desired.Objects[0]
		second.Downstream, second.Target.Name = 1, "second"
		in.Desired.Objects = append(in.Desired.Objects, second)
		in.Facts = append(in.Facts, operator.Facts{Live: ourLive(), Trusted: true, RecordedHash: hash})
		in.Facts[1].Live.UID, in.Facts[1].Live.Name = "live-2", "second"
		old := ourLive()
		old.Name, old.UID = "old", "live-0"
		in.Leftovers = []operator.Owned{{Live: old, Certain: true}}
		c.change(&in)
		got := decide.Decide(p.Settings, in).Leftovers[0]
		if got.State != operator.StateSuperseded || got.Action != c.want {
			t.Errorf("%s: %s %q: %s", reason, got.State, got.Action, got.Message)
		}
	}
}
