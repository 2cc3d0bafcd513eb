package leadership

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
)

// stored is a Lease without an API server.
type stored struct {
	record Record
	err    error
	writes int
	least  Token
}

func (s *stored) Get(context.Context) (*Record, error) {
	record := s.record
	return &record, s.err
}

func (s *stored) Create(ctx context.Context, r *Record) error { return s.Update(ctx, r) }

func (s *stored) Update(_ context.Context, r *Record) error {
	if s.err == nil {
		s.record = *r
		s.writes++
	}
	return s.err
}

func (s *stored) Watch(context.Context, func(*Record) bool) error { return ErrUnwatched }
func (s *stored) LeastToken() Token                               { return s.least }
func (s *stored) LastToken() Token                                { return math.MaxInt32 }
func (s *stored) Describe() string                                { return "Lease apps/lease" }

func heldBy(holder string) Record {
	return Record{HolderIdentity: holder, LeaseDurationSeconds: 15, RenewTime: metav1.Now()}
}

// testLock returns a lock of a process that leads, or waits on standby, and the Lease that it is about.
func testLock(leads bool) (*lock, *stored, *hands, *bool) {
	tenure, clocks := testTenure(logr.Discard())
	lease, abandoned := &stored{}, false
	l := &lock{store: lease, self: "self", tenure: tenure, standby: &standby{store: lease, self: "self"}, record: func(string) {},
		greatest: NoToken, abandon: func() { abandoned = true }}
	if leads {
		_ = l.Create(context.Background(), heldBy("self"))
	}
	return l, lease, clocks, &abandoned
}

func TestLockTakesWhatIsFree(t *testing.T) {
	tests := []struct {
		record Record
		since  time.Duration // it was seen first; it lasts an hour
		holder string        // what the elector gets to see
		taken  bool
		reason string
	}{
		{heldBy("another"), 0, "another", false, "another process renewed it just now"},
		{heldBy("another"), 59 * time.Minute, "another", false, "it has not run out"},
		{heldBy("another"), time.Hour, "", true, "it has run out"},
		{heldBy(""), 0, "", true, "it was released"},
		{heldBy("self"), 0, "self", true, "the answer to our own request was lost"},
	}
	for _, test := range tests {
		l, lease, _, abandoned := testLock(false)
		test.record.LeaseDurationSeconds = 3600
		lease.record = test.record
		l.standby.observe(&test.record)
		l.standby.since = l.standby.since.Add(-test.since)
		record, _, err := l.Get(t.Context())
		if err != nil || record.HolderIdentity != test.holder || *abandoned == test.taken {
			t.Errorf("%s: the elector sees the holder %q and the attempt is abandoned: %v (%v)", test.reason, record.HolderIdentity, *abandoned, err)
		}
	}
}

func TestLockReportsTheTenure(t *testing.T) {
	l, lease, clocks, abandoned := testLock(true)
	clocks.turn(9*time.Second, 9*time.Second)
	lease.err = errors.New("no answer")
	if err := l.Update(t.Context(), heldBy("self")); err == nil || *abandoned {
		t.Errorf("a leader gives up at once: %v", err)
	}
	clocks.turn(2*time.Second, 2*time.Second)
	if l.tenure.MayWrite() == nil {
		t.Error("a renewal that failed counts")
	}
	lease.err = nil
	if err := l.Update(t.Context(), heldBy("self")); err != nil || l.tenure.MayWrite() != nil {
		t.Errorf("a renewal does not count: %v", err)
	}
}

// TestLockEndsWhereAnotherHeldIt, even if the Lease is free again by now: the elector would go on as if nothing had
// been.
func TestLockEndsWhereAnotherHeldIt(t *testing.T) {
	for _, c := range []struct {
		holder string
		after  time.Duration
		want   string
	}{
		{"another", 11 * time.Second, "another holds it now; nothing was written after the 10s in which it was to be renewed"},
		{"", 11 * time.Second, "it could not be renewed within 10s, and nothing was written after that"},
		{"another", 9 * time.Second, "another holds it now, before the renew deadline had passed; nothing was written after that was seen"},
		{"", 9 * time.Second, "somebody released it, by hand or with corollary activation force, before the renew deadline had passed"},
	} {
		l, lease, clocks, abandoned := testLock(true)
		clocks.turn(c.after, c.after)
		lease.record = heldBy(c.holder)
		if _, _, err := l.Get(t.Context()); err != nil || !*abandoned {
			t.Errorf("held by %q, it goes on: %v", c.holder, err)
		}
		var lost *LostError
		if !errors.As(l.tenure.lost(), &lost) || lost.Holder != c.holder || l.tenure.MayWrite() == nil ||
			!strings.Contains(lost.Error(), c.want) {
			t.Errorf("held by %q, it ended with %v", c.holder, l.tenure.lost())
		}
	}
}

// TestLockReleasesItsOwn: the elector, when it gives up, releases whatever Lease there is, the next leader's too.
func TestLockReleasesItsOwn(t *testing.T) {
	tests := []struct {
		holder   string
		late     time.Duration
		released bool
		reason   string
	}{
		{"self", 0, true, "a clean stop"},
		{"self", 11 * time.Second, false, "the deadline has passed: writes may be on their way"},
		{"another", 11 * time.Second, false, "another process leads by now"},
	}
	for _, test := range tests {
		l, lease, clocks, _ := testLock(true)
		lease.record = heldBy(test.holder)
		clocks.turn(test.late, test.late)
		before := lease.writes
		if _, _, err := l.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease.err = apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "lease", nil) // a renewal is on its way: it is tried again
		if err := l.Update(t.Context(), heldBy("")); (err != nil) != test.released {
			t.Errorf("%s: the first try: %v", test.reason, err)
		}
		lease.err = nil
		if err := l.Update(t.Context(), heldBy("")); err != nil || lease.writes-before == 1 != test.released {
			t.Errorf("%s: %d writes, %v", test.reason, lease.writes-before, err)
		}
		if test.released && (l.tenure.MayWrite() == nil || !errors.Is(l.tenure.lost(), errReleased)) {
			t.Errorf("%s: it may write after the release", test.reason)
		}
	}
}

// TestLockEndsWhereTheLeaseIsGone, if the deadline has passed: another process may have led since, and have deleted it.
func TestLockEndsWhereTheLeaseIsGone(t *testing.T) {
	for late, ends := range map[time.Duration]bool{9 * time.Second: false, 11 * time.Second: true} {
		l, lease, clocks, abandoned := testLock(true)
		lease.err = apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "lease")
		clocks.turn(late, late)
		if _, _, err := l.Get(t.Context()); err == nil || *abandoned != ends || (l.tenure.lost() != nil) != ends {
			t.Errorf("%s after the last renewal: given up: %v, ended with %v (%v)", late, *abandoned, l.tenure.lost(), err)
		}
	}
}

// TestStandbyWaitsForADeletedRecord: a record that is deleted by hand is not free at once, whoever held it when it was
// seen: someone may have taken it since, and has not found out yet. Nobody waits for a record that never was. The time
// is not real.
func TestStandbyWaitsForADeletedRecord(t *testing.T) {
	for _, test := range []struct {
		reason string
		holder string
		seen   bool
		lasts  time.Duration // in the record
		waits  time.Duration
	}{
		{"held by another process", "another", true, 15 * time.Second, 15 * time.Second},
		{"held for longer than our own lease", "another", true, time.Minute, time.Minute},
		{"given back", "", true, time.Second, 15 * time.Second},
		{"our own", "self", true, 15 * time.Second, 15 * time.Second},
		{"never seen", "", false, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &standby{store: &client{memory: newMemory()}, self: "self", retry: 100 * time.Millisecond, lease: 15 * time.Second}
			if test.seen {
				record := heldBy(test.holder)
				record.LeaseDurationSeconds = int(test.lasts.Seconds())
				s.observe(&record)
				<-time.After(5 * time.Second) // of what it saw: it may be long before it is found gone
			}
			begin := time.Now()
			free := s.wait(t.Context())
			if waited := time.Since(begin); !free || waited < test.waits || waited > test.waits+2*s.retry { // with the jitter
				t.Errorf("%s: free: %v, after %s", test.reason, free, waited)
			}
		})
	}
}

// TestStandbyBelievesHolders, and nobody else: a release is written with a time of its own, an edit by hand is not, and
// the holder writes until it finds out.
func TestStandbyBelievesHolders(t *testing.T) {
	held := heldBy("another")
	for reason, test := range map[string]struct {
		edit func(r *Record)
		free bool
	}{
		"the holder is taken out":      {func(r *Record) { r.HolderIdentity = "" }, false},
		"it is to last for no time":    {func(r *Record) { r.LeaseDurationSeconds = 0 }, false},
		"another holder is written in": {func(r *Record) { r.HolderIdentity = "self" }, false},
		"the holder gives it back": {func(r *Record) {
			r.HolderIdentity, r.RenewTime = "", metav1.NewTime(held.RenewTime.Add(time.Millisecond))
		}, true},
	} {
		s, edited := standby{self: "self"}, held
		s.observe(&held)
		test.edit(&edited)
		must.Same(t, test.free, s.observe(&edited), reason, "free")
		s.since = s.since.Add(-15 * time.Second)
		if !s.observe(&edited) {
			t.Errorf("%s: still taken when the renewal has run out", reason)
		}
	}
}

func TestTimings(t *testing.T) {
	must.Same(t, "", DefaultTimings().Problem(), "the defaults")
	for _, test := range []struct {
		timings Timings
		reason  string
	}{
		{Timings{1500 * time.Millisecond, time.Second, 200 * time.Millisecond}, "the Lease stores whole seconds"},
		{Timings{0, -3, -4}, "no length"},
		{Timings{5 * time.Second, 5 * time.Second, time.Second}, "a leader that writes until another one starts"},
		{Timings{5 * time.Second, 2 * time.Second, 2 * time.Second}, "no second attempt to renew"},
		{Timings{5 * time.Second, 2 * time.Second, 0}, "renewing without pause"},
	} {
		if test.timings.Problem() == "" {
			t.Errorf("%s: %+v is let through", test.reason, test.timings)
		}
	}
}

// TestLockReportsWhyItWasRefused: a leader that has lost the right to its Lease reports that, until it has the right
// again. If the API server cannot be reached, that changes nothing.
func TestLockReportsWhyItWasRefused(t *testing.T) {
	l, lease, _, _ := testLock(true)
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "lease", errors.New("no right"))
	for _, step := range []struct {
		err    error
		want   error
		reason string
	}{
		{context.DeadlineExceeded, nil, "it is not reached"},
		{refused, refused, "it refuses"},
		{context.DeadlineExceeded, refused, "the last try is cut short"},
		{nil, nil, "it was renewed"},
	} {
		lease.err = step.err
		_ = l.Update(t.Context(), heldBy("self"))
		if l.refused != step.want { //nolint:errorlint // that very one
			t.Errorf("%s: %v", step.reason, l.refused)
		}
	}
	lost := &LostError{Lock: "Lease apps/lease", Deadline: 4 * time.Second, Err: refused}
	if text := lost.Error(); !strings.Contains(text, "could not be renewed within 4s") || !strings.Contains(text, "no right") ||
		!apierrors.IsForbidden(lost) {
		t.Error(text)
	}
}

// TestLockTokens: every holder has a greater token than all before, whatever happened to the record; one that takes up
// its own hold again keeps its token.
func TestLockTokens(t *testing.T) {
	tests := []struct {
		record Record
		gone   bool
		seen   Token
		least  Token
		want   Token
		reason string
	}{
		{gone: true, seen: NoToken, want: 0, reason: "the first holder of a lock that counts from 0"},
		{gone: true, seen: 7, want: 8, reason: "the record was deleted, and a greater token was seen before"},
		{gone: true, seen: NoToken, least: 4711, want: 4711, reason: "the store knows a greater number"},
		{record: Record{LeaderTransitions: 7}, seen: NoToken, want: 8, reason: "it was released"},
		{record: Record{LeaderTransitions: 7}, seen: 12, want: 13, reason: "the store was set back"},
		{record: Record{LeaderTransitions: 7}, seen: NoToken, least: 4711, want: 4711, reason: "the store's number is greater"},
		{record: Record{LeaderTransitions: 7, HolderIdentity: "self", LeaseDurationSeconds: 15}, seen: NoToken, least: 4711, want: 7,
			reason: "nobody else has held it since"},
	}
	for _, test := range tests {
		l, lease, _, _ := testLock(false)
		l.greatest, lease.record, lease.least = test.seen, test.record, test.least
		if test.gone {
			lease.err = NotFound("lease")
		}
		_, _, err := l.Get(t.Context())
		if apierrors.IsNotFound(err) != test.gone {
			t.Fatalf("%s: %v", test.reason, err)
		}
		lease.err = nil
		for range 2 { // it renews with what the elector believes
			if err := l.Update(t.Context(), Record{HolderIdentity: "self", LeaderTransitions: 99}); err != nil {
				t.Fatalf("%s: %v", test.reason, err)
			}
			if have := l.tenure.Token(); have != test.want || lease.record.LeaderTransitions != int(test.want) {
				t.Errorf("%s: token %d, in the record %d, want %d", test.reason, have, lease.record.LeaderTransitions, test.want)
			}
		}
	}
}

// TestLockWithoutATokenLeft is not taken. A token that someone wrote while this process led counts only as long as it
// is there.
func TestLockWithoutATokenLeft(t *testing.T) {
	l, lease, _, _ := testLock(true)
	lease.record = Record{LeaderTransitions: math.MaxInt32, HolderIdentity: "self", LeaseDurationSeconds: 15}
	if _, _, err := l.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.begin(func() {})
	lease.record.HolderIdentity = ""
	writes := lease.writes
	take := func() error {
		if _, _, err := l.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l.Update(t.Context(), heldBy("self"))
	}
	if err := take(); !errors.As(err, new(*ExhaustedError)) || lease.writes != writes {
		t.Errorf("without a token left: %v, and the record is %v", err, lease.record)
	}
	lease.record.LeaderTransitions = 7
	if err := take(); err != nil || lease.record.LeaderTransitions != 8 {
		t.Errorf("with a smaller token: %v, and the record is %v", err, lease.record)
	}
}

// TestLockHandsOver if the record asks for it, but not before what was begun has ended; the lock is free then. A
// process that does not hand over has lost it.
func TestLockHandsOver(t *testing.T) {
	for _, handsOver := range []bool{true, false} {
		l, lease, _, abandoned := testLock(true)
		l.handsOver = handsOver
		acting, done, _ := l.tenure.Act(t.Context())
		lease.record.HolderIdentity = AskedToHandOver("self")
		finished := make(chan bool, 1)
		go func() {
			<-acting.Done()
			finished <- l.tenure.MayWrite() == nil
			done()
		}()
		if _, _, err := l.Get(t.Context()); err != nil || !*abandoned {
			t.Errorf("hands over: %v: it goes on (%v)", handsOver, err)
		}
		must.Same(t, handsOver, <-finished, "hands over:", handsOver, "what was begun may be finished")
		if free := lease.record.HolderIdentity == ""; free != handsOver || l.tenure.MayWrite() == nil {
			t.Errorf("hands over: %v: the record has the holder %q", handsOver, lease.record.HolderIdentity)
		}
	}
}
