package activation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/nameserver"
	"github.com/corollary-dev/corollary/pkg/activation/locks"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// remote is a lock that several reach, each by a way of its own.
type remote struct {
	mu      sync.Mutex
	record  *leadership.Record
	version int
}

// way is one process' way to it: how long a request takes, how far the clock there is ahead, and why it fails.
type way struct {
	*remote
	takes time.Duration
	ahead time.Duration
	fails error
	read  int
}

func (w *way) Describe() string             { return "remote lock" }
func (w *way) LeastToken() leadership.Token { return 0 }
func (w *way) LastToken() leadership.Token  { return math.MaxInt }

// travel takes half of a round trip.
func (w *way) travel(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(w.takes / 2):
		return w.fails
	}
}

func (w *way) Get(ctx context.Context) (*leadership.Record, error) {
	if err := w.travel(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	record := w.record
	w.read = w.version
	w.mu.Unlock()
	if record == nil {
		return nil, leadership.NotFound("remote")
	}
	copied := *record
	return &copied, w.travel(ctx)
}

func (w *way) Create(ctx context.Context, record *leadership.Record) error {
	return w.Update(ctx, record)
}

func (w *way) Update(ctx context.Context, record *leadership.Record) error {
	if err := w.travel(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	current := w.read == w.version
	if current {
		written := *record
		written.RenewTime = metav1.NewTime(record.RenewTime.Add(w.ahead))
		w.record, w.version = &written, w.version+1
		w.read = w.version
	}
	w.mu.Unlock()
	if !current {
		return leadership.Conflict("remote")
	}
	return w.travel(ctx)
}

// Watch sees each record a little later.
func (w *way) Watch(ctx context.Context, seen func(*leadership.Record) bool) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Millisecond):
		}
		w.mu.Lock()
		record, newer := w.record, w.version > w.read
		w.read = w.version
		w.mu.Unlock()
		if newer && seen(record) {
			return nil
		}
	}
}

// takePart takes part until ctx is done, and is noted in running.
func takePart(ctx context.Context, t *testing.T, running *sync.WaitGroup, f *load.ActivationFile, store leadership.Store,
	log logr.Logger) *Activation {
	t.Helper()
	a := &Activation{Name: f.Metadata.Name, identity: f.Identity, log: log}
	if err := a.elect(f, store); err != nil {
		t.Fatal(err)
	}
	may := make(chan struct{})
	close(may)
	running.Go(func() { _ = a.Run(ctx, may, func(ctx context.Context) error { <-ctx.Done(); return nil }) })
	return a
}

// TestTroubles: what this cluster says where something is wrong with its config, its lock or another cluster, whether
// it is active then, and whether it says it once. The time is not real.
func TestTroubles(t *testing.T) {
	usual := [3]time.Duration{15 * time.Second, 10 * time.Second, 2 * time.Second}
	somebody := func(lasts int) *leadership.Record {
		r := held("somebody", time.Now())
		r.LeaseDurationSeconds = lasts
		return r
	}
	tests := []struct {
		reason string
		times  [3]time.Duration // leaseDuration, renewDeadline, retryPeriod
		own    way
		other  string // identity of another cluster that takes part, from before
		ahead  time.Duration
		record *leadership.Record // that exists
		after  time.Duration
		active bool
		says   []string
	}{
		{reason: "two clusters with one identity", times: usual, other: "eu", after: time.Minute,
			says: []string{"another process with this identity is active: give each cluster an identity of its own"}},
		{reason: "clocks ten minutes apart", times: usual, other: "us", ahead: 10 * time.Minute, after: time.Minute,
			says: []string{"the clocks of the clusters differ", `"by"="10m0s"`}},
		{reason: "clocks ten minutes apart, the other way", times: usual, other: "us", ahead: -10 * time.Minute, after: time.Minute,
			says: []string{"the clocks of the clusters differ", `"by"="10m0s"`}},
		{reason: "a round trip longer than the lease", times: [3]time.Duration{time.Second, 600 * time.Millisecond, 200 * time.Millisecond},
			own: way{takes: 3 * time.Second}, after: time.Minute,
			says: []string{"no answer within 1s; if the round trip takes that long, raise renewDeadline and leaseDuration"}},
		{reason: "a round trip longer than half of the deadline", times: usual, own: way{takes: 6 * time.Second}, after: time.Minute,
			says: []string{"no answer within 5s; if the round trip takes that long, raise renewDeadline and leaseDuration"}},
		{reason: "each renewal at the last moment", times: usual, own: way{takes: 4500 * time.Millisecond}, after: 25 * time.Second, active: true,
			says: []string{"renewals are slow: the deadline passes before the next one, and writing pauses. Raise renewDeadline and leaseDuration"}},
		{reason: "held by nobody's identity", times: usual, record: somebody(15), after: 14 * time.Second,
			says: []string{`another cluster is active`, `"holder"="somebody"`, `"unlessItIsNotRenewedFor"="15s"`}},
		{reason: "the same, and it has run out", times: usual, record: somebody(15), after: 18 * time.Second, active: true,
			says: []string{`"holder"="somebody"`, "this cluster is active"}},
		{reason: "held by nobody's identity for a day", times: usual, record: somebody(86400), after: time.Hour,
			says: []string{`"holder"="somebody"`, `"unlessItIsNotRenewedFor"="24h0m0s"`}},
		{reason: "something else is stored there", times: usual,
			own: way{fails: fmt.Errorf("%w: it has 5000 bytes", locks.ErrNotOurs)}, after: time.Minute,
			says: []string{"the lock cannot be read, will retry", "is not the record of a lock: use another place, or remove it"}},
		{reason: "no way to the lock", times: usual, own: way{fails: errors.New("connection refused")}, after: time.Minute,
			says: []string{"the lock cannot be read, will retry", "connection refused"}},
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.reason, " ", "_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				defer func() { cancel(); running.Wait() }()
				lock := &remote{record: test.record}
				f := withTimes(test.times[0], test.times[1], test.times[2])
				f.Metadata.Name = "global"
				if test.other != "" {
					f.Identity = test.other
					takePart(ctx, t, &running, f, &way{remote: lock, ahead: test.ahead}, logr.Discard())
					<-time.After(2 * test.times[2])
				}
				log := &lines{}
				f.Identity = "eu"
				test.own.remote = lock
				a := takePart(ctx, t, &running, f, &test.own, log.logger())
				<-time.After(test.after)
				for _, text := range test.says {
					if log.count(text) != 1 {
						t.Errorf("it logs %d times %q: %q", log.count(text), text, log.list)
					}
				}
				if a.Active() != test.active {
					t.Errorf("it is active: %t: %q", a.Active(), log.list)
				}
			})
		})
	}
}

// TestTenAddresses: a cluster whose name resolves to ten addresses is a standby, and lists them.
func TestTenAddresses(t *testing.T) {
	server, log := nameserver.Start(t), &lines{}
	addresses := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8", "10.0.0.9",
		"10.0.1.0"}
	server.Say(addresses...)
	f := dnsFile(lock.ActivationDNS{Host: "active.example.com", Addresses: addresses[:1], Resolver: server.Addr,
		Interval: common.Duration(5 * time.Millisecond)})
	f.LeaseDuration = common.Duration(time.Millisecond)
	a, err := New(f, log.logger())
	if err != nil {
		t.Fatal(err)
	}
	may := make(chan struct{})
	close(may)
	err = a.Run(t.Context(), may, func(ctx context.Context) error {
		for server.Asked() < 20 {
			<-time.After(time.Millisecond)
		}
		return nil
	})
	says := `"another cluster is named"`
	if err != nil || a.Active() || log.count(says) != 1 || log.count(strings.Join(addresses, ", ")) != 1 {
		t.Errorf("it is active: %t, and logs %q; %v", a.Active(), log.list, err)
	}
}
