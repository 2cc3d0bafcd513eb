package reconcile

import (
	"testing"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Several watches may show one object: another downstream of its kind and deletion.before each have their own. Only what the watch of
// the object's downstream shows replaces a response, since the object is looked up there.
func TestResponseCountsUntilItsWatchCatchesUp(t *testing.T) {
	live := &drift.Live{Identity: drift.Identity{UID: "u", Namespace: "ns", Name: "a", ResourceVersion: "7"}}
	at, now := operator.Ref{Namespace: "ns", Name: "a"}, time.Now()
	for _, row := range []struct {
		reason string
		watch  int
		parked bool // the object is not among the desired ones at present
		counts bool // the response does afterwards
	}{
		{reason: "the watch of its downstream", watch: 1},
		{reason: "the watch of its downstream, while the desired objects are not known", watch: 1, parked: true},
		{reason: "the watch of another downstream of the kind", watch: 0, counts: true},
		{reason: "the watch of another downstream, while the desired objects are not known", watch: 0, parked: true, counts: true},
		{reason: "the watch of deletion.before", watch: operator.BeforeIndex, counts: true},
	} {
		for event, tell := range map[string]func(*Reconciler, operator.Ref){
			"shows it": func(r *Reconciler, up operator.Ref) {
				if echo := r.IsEchoOf(row.watch, up, live); echo == row.counts {
					t.Errorf("%s shows it: the event needs no work: %t", row.reason, echo)
				}
			},
			"shows it gone": func(r *Reconciler, up operator.Ref) { r.NoteDownstreamGone(row.watch, up, live.UID) },
		} {
			r, up := &Reconciler{}, operator.Ref{Namespace: "ns", Name: "up"}
			rec := r.memory.record(up, types.UID("of up"))
			s := slot{downstream: 1, item: at}
			if rec.desired = (&operator.Desired{}); row.parked {
				rec.park(&objectMemory{slot: s, read: rare[response]{&response{live, now.Add(freshFor)}}})
			} else {
				rec.objects = []*objectMemory{{slot: s}}
				rec.remember(0, live, now)
			}
			tell(r, up)
			if row.parked {
				rec.objects = []*objectMemory{rec.parked[s]}
			}
			if have, _ := rec.latest(0, at, func() *drift.Live { return nil }, now); (have != nil) != row.counts {
				t.Errorf("%s %s: the response counts: %t", row.reason, event, have != nil)
			}
		}
	}
}

// A response that no longer counts is dropped by whoever decides without it, so that the event of its object is not an echo of a write that
// somebody has decided about.
func TestEventOfAResponseThatNoLongerCounts(t *testing.T) {
	live := &drift.Live{Identity: drift.Identity{UID: "u", Namespace: "ns", Name: "a", ResourceVersion: "7"}}
	now, up := time.Now(), operator.Ref{Namespace: "ns", Name: "up"}
	for _, row := range []struct {
		reason string
		keep   func(*record, response)
	}{
		{"of a desired object", func(rec *record, to response) {
			rec.objects = []*objectMemory{{slot: slot{downstream: 1}, read: rare[response]{&to}}}
		}},
		{"while the desired objects are not known", func(rec *record, to response) {
			rec.park(&objectMemory{slot: slot{downstream: 1}, read: rare[response]{&to}})
		}},
		{"of an object that is not desired any more", func(rec *record, to response) {
			rec.park(&objectMemory{slot: slot{downstream: 1, item: operator.Ref{Name: "a"}}, read: rare[response]{&to}})
			rec.align()
		}},
	} {
		for after, counts := range map[time.Duration]bool{0: true, freshFor: false} {
			r := &Reconciler{}
			rec := r.memory.record(up, types.UID("of up"))
			rec.desired, rec.inSync = &operator.Desired{}, unique.Make(status.Verdict{})
			if !r.IsUnaffected(up) || !r.IsInSync(up, "of up") || r.IsInSync(up, "") {
				t.Error("an upstream in sync is not")
			}
			row.keep(rec, response{live, now.Add(freshFor)})
			// The watch may jump from what the cache had to another state that is the same, and show nothing in between.
			if r.IsUnaffected(up) || r.IsInSync(up, "of up") {
				t.Errorf("%s: it is in sync, although it was decided by a response", row.reason)
			}
			if shown := len(rec.unshown(2, now.Add(after))[1]) == 1; shown != counts {
				t.Errorf("%s, after %s: it is shown: %t", row.reason, after, shown)
			}
			if echo := r.IsEchoOf(1, up, live); echo != counts {
				t.Errorf("%s, after %s: its event is an echo: %t", row.reason, after, echo)
			}
			if !r.IsUnaffected(up) {
				t.Errorf("%s, after %s: it is not in sync, although no response counts any more", row.reason, after)
			}
		}
	}
}
