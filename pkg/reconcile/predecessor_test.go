package reconcile

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// TestTakeOver: what a reload must not forget is taken over. Each field of the memory is either taken over or known not to be needed: a new one
// has to be added here.
func TestTakeOver(t *testing.T) {
	at := operator.Ref{Namespace: "ns", Name: "a"}
	old, now := &record{uid: "up"}, &record{uid: "up"}
	object := old.objectOf(slot{downstream: 1})
	object.uid, object.at = "live", at
	object.contest.edit().written = "v1-a"
	u := object.unusual.edit()
	u.verified = verification{uid: "live", hash: "v1-a", isPending: true}
	u.generated, u.generatedOf = map[string]string{".data.key": "x"}, "before"
	old.objects, old.parked = []*objectMemory{object}, nil
	old.unusual.edit().left = []witness{{place{1, at}, "left", 7, false}}
	old.unusual.edit().fates = fates{"gone": {fate: isGone, until: time.Now().Add(time.Hour)}}
	old.unusual.edit().unconfirmed = []place{{1, at}}

	now.inherit(old, []counterpart{{index: -1}, {index: 0, sees: true}})

	got := now.objectOf(slot{downstream: 0})
	if got.uid != "live" || got.at != at || got.contest.get().written != "v1-a" || !reflect.DeepEqual(got.unusual.get(), object.unusual.get()) {
		t.Errorf("of the object: %+v, %+v", got.target, got.unusual.get())
	}
	kept := now.unusual.get()
	want := unusual{left: []witness{{place{0, at}, "left", 0, false}}, fates: old.unusual.get().fates, unconfirmed: []place{{0, at}}}
	if !reflect.DeepEqual(kept, want) {
		t.Errorf("of the upstream: %+v, want %+v", kept, want)
	}

	for _, row := range []struct {
		of            any
		kept, dropped []string // dropped is found out again, or is about the config before
	}{
		{unusual{}, []string{"left", "fates", "unconfirmed"},
			[]string{"renderAgainAt", "slow", "requested", "siblings", "marks", "upstreamFailure", "refused", "heldByObserve", "waiting", "notMade"}},
		{unusualTarget{}, []string{"verified", "generated", "generatedOf"}, []string{"compared", "changedBy", "rewritten"}},
		{target{}, []string{"uid", "at", "contest", "unusual"}, []string{"probed", "dryRunAnswer", "retry", "failure"}},
	} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(row.of)) {
			if !slices.Contains(slices.Concat(row.kept, row.dropped), field.Name) {
				t.Errorf("is %T.%s taken over?", row.of, field.Name)
			}
		}
	}
}

// TestCascadesAreTakenOver: how an upstream is deleted is known to the next session, and what that has seen itself counts first.
func TestCascadesAreTakenOver(t *testing.T) {
	var before, after Reconciler
	before.NoteDeleting("a", []string{"orphan"})
	before.NoteDeleting("b", []string{"orphan"})
	after.NoteDeleting("b", []string{"foregroundDeletion"})
	after.NoteDeleting("a", nil) // the garbage collector has removed its finalizer
	after.InheritLeaving(&before)
	for uid, want := range map[types.UID]operator.Cascade{"a": operator.CascadeOrphan, "b": operator.CascadeForeground} {
		if got := after.cascades.Of(uid); got != want {
			t.Errorf("%s: %q, want %q", uid, got, want)
		}
	}
}
