package memory

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// TestTakeOver: what a reload must not forget is taken over. Each field of the memory is either taken over or known not
// to be needed: a new one has to be added here.
func TestTakeOver(t *testing.T) {
	at := operator.Ref{Namespace: "ns", Name: "a"}
	old, now := &Upstream{UID: "up"}, &Upstream{UID: "up"}
	object := old.of(slot{downstream: 1})
	object.UID, object.at = "live", at
	object.Contest.Edit().Written = "v1-a"
	u := object.Unusual.Edit()
	u.Verified = Verification{UID: "live", Hash: "v1-a", IsPending: true}
	u.Generated, u.GeneratedOf = map[string]string{".data.key": "x"}, "before"
	old.list, old.parked = []*Object{object}, nil
	old.Notes.Edit().Left = []Witness{{At(1, at), "left", 7, false}}
	old.Notes.Edit().fates = fates{"gone": {fate: isGone, until: time.Now().Add(time.Hour)}}
	old.Notes.Edit().Unconfirmed = []Place{{1, at}}

	now.inherit(old, []Successor{{Index: -1}, {Index: 0, Sees: true}})

	got := now.of(slot{downstream: 0})
	if got.UID != "live" || got.at != at || got.Contest.Get().Written != "v1-a" || !reflect.DeepEqual(got.Unusual.Get(), object.Unusual.Get()) {
		t.Errorf("of the object: %+v, %+v", got.found, got.Unusual.Get())
	}
	kept := now.Notes.Get()
	want := Notes{Left: []Witness{{At(0, at), "left", 0, false}}, fates: old.Notes.Get().fates, Unconfirmed: []Place{{0, at}}}
	if !reflect.DeepEqual(kept, want) {
		t.Errorf("of the upstream: %+v, want %+v", kept, want)
	}

	for _, row := range []struct {
		of            any
		kept, dropped []string // dropped is found out again, or is about the config before
	}{
		{Notes{}, []string{"Left", "fates", "Unconfirmed"},
			[]string{"RenderAgainAt", "Slow", "requested", "siblings", "marks", "UpstreamFailure", "Refused", "HeldByObserve", "Waiting", "NotMade"}},
		{unusualObject{}, []string{"Verified", "Generated", "GeneratedOf"}, []string{"compared", "ChangedBy", "rewritten"}},
		{found{}, []string{"UID", "at", "Contest", "Unusual"}, []string{"proof", "dryRun", "Retry", "Failure"}},
	} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(row.of)) {
			if !slices.Contains(slices.Concat(row.kept, row.dropped), field.Name) {
				t.Errorf("is %T.%s taken over?", row.of, field.Name)
			}
		}
	}
}
