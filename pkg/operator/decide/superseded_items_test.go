package decide_test

import (
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
)

// The object of an item that has disappeared is deleted, whatever holds up the objects of other items, unless one of
// them may have replaced it: one that was not wanted before.
func TestSupersededItems(t *testing.T) {
	missing := func(in *operator.Input) { in.Facts[1].Live, in.Facts[1].RecordedHash = nil, "" }
	foreign := func(in *operator.Input) {
		in.Facts[1] = operator.Facts{Live: &drift.Live{Identity: drift.Identity{UID: "x"}}, WantedSince: in.Facts[1].WantedSince}
	}
	const unknown, before, same, after = 0, 1, 2, 3 // the sibling was wanted before the item disappeared, since then, or later
	for _, row := range []struct {
		name    string
		sibling func(*operator.Input)
		// deletes says when the object is deleted, by since when the sibling is wanted; unknown: nothing is known of both.
		deletes map[int]bool
		reason  string
	}{
		{"in sync", func(*operator.Input) {}, map[int]bool{unknown: true, before: true, same: true, after: true}, "nothing is open"},
		{"not ready", func(in *operator.Input) { in.Facts[1].Live.Status = kstatus.InProgressStatus },
			map[int]bool{unknown: true, before: true, same: true, after: true}, "existing is enough for a successor"},
		{"conflict", foreign, map[int]bool{before: true}, "an object of somebody else may have the name of the successor: after a start nobody knows"},
		{"to be created, or refused", missing, map[int]bool{before: true}, "a failure deletes nothing that it may be about"},
		{"to be updated, or refused", func(in *operator.Input) { in.Facts[1].RecordedHash, in.Facts[1].Live.Hash = "v1-old", "v1-old" },
			map[int]bool{before: true}, "the same"},
		{"deleted again and again", func(in *operator.Input) { missing(in); in.Facts[1].Spaced = time.Second }, map[int]bool{before: true}, "the same"},
		{"terminating", func(in *operator.Input) { in.Facts[1].Live.Deleting = true }, map[int]bool{before: true},
			"somebody else may hold it forever"},
		{"not rendered", func(in *operator.Input) { in.Desired.Objects[1] = operator.DesiredObject{Several: true, Err: errTest} }, nil, "nobody knows what it is"},
		{"lacks an input", func(in *operator.Input) {
			in.Desired.Objects[1] = operator.DesiredObject{Several: true, Err: &operator.WaitingError{Message: "input is missing"}}
		}, nil, "nobody knows"},
		{"not wanted, as all of an upstream that is not selected", func(in *operator.Input) { in.Selected, in.Facts = false, nil },
			map[int]bool{unknown: true, before: true, same: true, after: true}, "nothing is wanted"},
		{"invalid", func(in *operator.Input) {
			in.Desired = &operator.Desired{Invalid: []string{""}, Objects: []operator.DesiredObject{{Several: true}, {Several: true}}}
		}, nil, "an invalid upstream takes nothing away"},
		{"paused", func(in *operator.Input) {
			in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
		}, nil, "a paused upstream is left alone"},
	} {
		for _, since := range []int{unknown, before, same, after} {
			p := onePipeline(func(op *config.Operator) {
				most := 10
				op.Downstreams[0].ForEach = &config.ForEach{Items: "self.spec.items", MaxItems: &most}
			})
			in := inSyncInput()
			in.Desired.Objects[0].Several = true
			second := in.Desired.Objects[0]
			second.Target.Name = "second"
			in.Desired.Objects = append(in.Desired.Objects, second)
			in.Facts = append(in.Facts, operator.Facts{Live: ourLive(), Trusted: true, RecordedHash: hash})
			in.Facts[0].WantedSince, in.Facts[1].WantedSince = 1, since
			in.Facts[1].Live.UID, in.Facts[1].Live.Name = "live-2", "second"
			old := ourLive()
			old.Name, old.UID = "old", "live-0"
			in.Leftovers = []operator.Owned{{Live: old, Certain: true, UnwantedSince: same}}
			if since == unknown { // as after a start
				in.Facts[1].WantedSince, in.Leftovers[0].UnwantedSince = 1, 0
			}
			row.sibling(&in)
			got := decide.Decide(p.Settings, in).Leftovers[0]
			if deletes := got.Action == operator.ActionDelete; deletes != row.deletes[since] || !deletes && got.Action != operator.ActionNone {
				t.Errorf("%s, wanted since %d: %s/%q (%s): %s", row.name, since, got.State, got.Action, got.Message, row.reason)
			}
		}
	}
}
