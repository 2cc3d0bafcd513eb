package shards_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/leadership"
	"github.com/corollary-dev/corollary/pkg/shards"
)

const number = 12

// process is a member that runs.
type process struct {
	*shards.Member
	stop context.CancelFunc
	over chan error
	// cut is true while no request of it is answered: it died, or is frozen as far as others can see.
	cut atomic.Bool
	// deaf is true while its lists are not answered.
	deaf     atomic.Bool
	requests atomic.Int64
	gained   atomic.Int64
}

func (p *process) Gained(context.Context, int) { p.gained.Add(1) }

func (p *process) Lost(int) {}

func (p *process) MembersChanged() {}

func start(t *testing.T, namespace string, n int) *process {
	t.Helper()
	quick := leadership.Timings{LeaseDuration: 5 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 500 * time.Millisecond}
	return startWith(t, namespace, n, quick)
}

func startWith(t *testing.T, namespace string, n int, timings leadership.Timings) *process {
	t.Helper()
	p := &process{over: make(chan error, 1)}
	cfg := rest.CopyConfig(testkit.Config(t))
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if p.cut.Load() || p.deaf.Load() && r.Method == http.MethodGet && r.URL.Query().Has("labelSelector") {
				return nil, errors.New("the network is cut")
			}
			p.requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	var err error
	p.Member, err = shards.New(cfg, shards.Options{Namespace: namespace, ID: "set", N: n, Log: logr.Discard(), Timings: timings})
	if err != nil {
		t.Fatal(err)
	}
	p.Subscribe(p)
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		p.over <- p.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(stop)
	return p
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (p *process) holds() []int {
	var list []int
	for k := range number {
		if p.Has(k) && p.Process().MayWrite() == nil && p.Set().MayWrite() == nil {
			list = append(list, k)
		}
	}
	return list
}

// await waits until the processes have these numbers of shards, and fails if two hold one at any time.
func await(t *testing.T, why string, counts []int, processes ...*process) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var got []int
		holders := map[int]int{}
		for _, p := range processes {
			list := p.holds()
			got = append(got, len(list))
			for _, k := range list {
				if holders[k]++; holders[k] > 1 && p.Has(k) {
					t.Fatalf("%s: shard %d has two holders", why, k)
				}
			}
		}
		slices.Sort(got)
		if slices.Equal(got, counts) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: the processes hold %v, want %v", why, got, counts)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// Processes that start together load each shard once: none takes the shares of all before the others have joined.
func TestMembersStartTogether(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		namespace := testkit.Namespace(t)
		slow := leadership.Timings{LeaseDuration: 20 * time.Second, RenewDeadline: 12 * time.Second, RetryPeriod: 4 * time.Second}
		processes := []*process{startWith(t, namespace, number, slow)}
		<-processes[0].Elected()
		<-time.After(time.Second) // that the others start later
		for range 2 {
			processes = append(processes, startWith(t, namespace, number, slow))
		}
		await(t, "three processes", []int{4, 4, 4}, processes...)
		gained := func() (n int64) {
			for _, p := range processes {
				n += p.gained.Load()
			}
			return n
		}
		testkit.Eventually(t, time.Minute, func() (bool, string) { return gained() >= number, fmt.Sprintf("%d shards were loaded", gained()) })
		if n := gained(); n != number {
			t.Errorf("%d shards were loaded %d times in all", number, n)
		}
	})
}

// TestAnotherNumberAfterAllDied: processes with another number of shards take over once the Lease of those that died
// has run out.
func TestAnotherNumberAfterAllDied(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		namespace := testkit.Namespace(t)
		a := start(t, namespace, number)
		<-a.Elected()
		a.cut.Store(true)
		a.stop()
		b := start(t, namespace, 5)
		select {
		case <-b.Elected():
		case err := <-b.over:
			t.Errorf("it ended: %v", err)
		}
	})
}

// Processes join, leave, die and come back: no shard has two holders, and all are shared fairly.
func TestMembersShareShards(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		namespace := testkit.Namespace(t)
		a := start(t, namespace, number)
		await(t, "one process", []int{12}, a)
		b := start(t, namespace, number)
		await(t, "a second one joined", []int{6, 6}, a, b)
		c, d := start(t, namespace, number), start(t, namespace, number)
		await(t, "two more joined", []int{3, 3, 3, 3}, a, b, c, d)

		d.stop()
		if err := <-d.over; err != nil {
			t.Errorf("one left: %v", err)
		}
		await(t, "one left", []int{4, 4, 4}, a, b, c)

		c.cut.Store(true)
		await(t, "one was cut off", []int{0, 6, 6}, a, b, c)
		c.cut.Store(false)
		if err := <-c.over; err == nil || c.Process().MayWrite() == nil {
			t.Errorf("one that was cut off may write again, or has not noticed: %v", err)
		}
		if err := a.Ready(); err != nil {
			t.Errorf("it holds its share: %v", err)
		}

		other := start(t, namespace, 5)
		mismatch := (*shards.MismatchError)(nil)
		if err := <-other.over; !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "--shards is 5") || mismatch.Theirs != number {
			t.Errorf("another number of shards: %v", err)
		}

		before := a.requests.Load() + b.requests.Load()
		begin := time.Now()
		<-time.After(5 * time.Second) // the time in which requests are counted
		periods := float64(time.Since(begin)) / float64(500*time.Millisecond)
		if sent := a.requests.Load() + b.requests.Load() - before; float64(sent) > 7*(periods+2) {
			t.Errorf("two processes at rest sent %d requests in %.1f retry periods, want 7 in each at most", sent, periods)
		} else {
			t.Logf("two processes at rest sent %.1f requests in a retry period", float64(sent)/periods)
		}
	})
}
