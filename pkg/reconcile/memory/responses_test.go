package memory

import (
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Several watches may show one object: another downstream of its kind and deletion.before each have their own. Only
// what the watch of the object's downstream shows replaces a response, since the object is looked up there.
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
		for event, tell := range map[string]func(*Upstream){
			"shows it": func(u *Upstream) {
				if echo := u.IsEchoOf(row.watch, live); echo == row.counts {
					t.Errorf("%s shows it: the event needs no work: %t", row.reason, echo)
				}
			},
			"shows it gone": func(u *Upstream) { u.NoteUnwatched(row.watch, live.UID) },
		} {
			u, s := &Upstream{}, slot{downstream: 1, item: at}
			if row.parked {
				u.park(&Object{slot: s, read: Rare[response]{&response{live, now.Add(FreshFor)}}})
			} else {
				u.list = []*Object{{slot: s}}
				u.Remember(0, live, now)
			}
			tell(u)
			if row.parked {
				u.list = []*Object{u.parked[s]}
			}
			if have, _ := u.Latest(0, at, func() *drift.Live { return nil }, now); (have != nil) != row.counts {
				t.Errorf("%s %s: the response counts: %t", row.reason, event, have != nil)
			}
		}
	}
}

// A response that no longer counts is dropped by whoever decides without it, so that the event of its object is not an
// echo of a write that someone has decided about.
func TestEventOfAResponseThatNoLongerCounts(t *testing.T) {
	live := &drift.Live{Identity: drift.Identity{UID: "u", Namespace: "ns", Name: "a", ResourceVersion: "7"}}
	now, up := time.Now(), operator.Ref{Namespace: "ns", Name: "up"}
	for _, row := range []struct {
		reason string
		keep   func(*Upstream, response)
	}{
		{"of a desired object", func(u *Upstream, to response) {
			u.list = []*Object{{slot: slot{downstream: 1}, read: Rare[response]{&to}}}
		}},
		{"while the desired objects are not known", func(u *Upstream, to response) {
			u.park(&Object{slot: slot{downstream: 1}, read: Rare[response]{&to}})
		}},
		{"of an object that is not desired any more", func(u *Upstream, to response) {
			u.park(&Object{slot: slot{downstream: 1, item: operator.Ref{Name: "a"}}, read: Rare[response]{&to}})
			u.SetDesired(u.desired, u.digest)
		}},
	} {
		for after, counts := range map[time.Duration]bool{0: true, FreshFor: false} {
			var m Upstreams
			u := m.Recall(up, "of up")
			u.desired = &operator.Desired{}
			u.NoteInSync(status.Verdict{})
			if !u.IsInSync() || !m.PeekAt(up, "of up").IsInSync() || m.PeekAt(up, "").IsInSync() {
				t.Error("an upstream in sync is not")
			}
			row.keep(u, response{live, now.Add(FreshFor)})
			// The watch may jump from what the cache had to another state that is the same, and show nothing in between.
			if u.IsInSync() {
				t.Errorf("%s: it is in sync, although it was decided by a response", row.reason)
			}
			if shown := len(u.Unshown(2, func(Place) *drift.Live { return nil }, now.Add(after))[1]) == 1; shown != counts {
				t.Errorf("%s, after %s: it is shown: %t", row.reason, after, shown)
			}
			if echo := u.IsEchoOf(1, live); echo != counts {
				t.Errorf("%s, after %s: its event is an echo: %t", row.reason, after, echo)
			}
			if !u.IsInSync() {
				t.Errorf("%s, after %s: it is not in sync, although no response counts any more", row.reason, after)
			}
		}
	}
}
