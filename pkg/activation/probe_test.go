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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/activation/locks"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// memory is a lock in memory, which can be slow and fail.
type memory struct {
	mu          sync.Mutex
	record      *leadership.Record
	before      func() error
	serviceTime time.Time
}

func (m *memory) Describe() string { return "lock in memory" }

func (m *memory) Get(context.Context) (*leadership.Record, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return nil, leadership.NotFound("memory")
	}
	read := *m.record
	return &read, nil
}

func (m *memory) enter() error {
	if m.before == nil {
		return nil
	}
	return m.before()
}

func (m *memory) Create(_ context.Context, record *leadership.Record) error {
	if err := m.enter(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record != nil {
		return leadership.Conflict("memory")
	}
	written := *record
	m.record = &written
	return nil
}

func (m *memory) Update(_ context.Context, record *leadership.Record) error {
	if err := m.enter(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	written := *record
	m.record = &written
	return nil
}

func (m *memory) Watch(context.Context, func(*leadership.Record) bool) error {
	return leadership.ErrUnwatched
}

func (m *memory) LeastToken() leadership.Token { return 0 }

func (m *memory) LastToken() leadership.Token { return math.MaxInt }

func (m *memory) ServerTime() (time.Time, bool) { return m.serviceTime, !m.serviceTime.IsZero() }

func held(by string, renewed time.Time) *leadership.Record {
	return &leadership.Record{HolderIdentity: by, LeaseDurationSeconds: 15, AcquireTime: metav1.NewTime(renewed),
		RenewTime:         metav1.NewTime(renewed),
		LeaderTransitions: 7}
}

func withTimes(lease, deadline, retry time.Duration) *load.ActivationFile {
	f := &load.ActivationFile{}
	f.LeaseDuration, f.RenewDeadline, f.RetryPeriod = common.Duration(lease), common.Duration(deadline), common.Duration(retry)
	return f
}

// TestProbe: which times fit which lock.
func TestProbe(t *testing.T) {
	synctest.Test(t, testProbe)
}

func testProbe(t *testing.T) {
	t.Helper()
	slow := func(d time.Duration) func() error {
		return func() error { <-time.After(d); return nil }
	}
	tests := []struct {
		f        *load.ActivationFile
		lock     *memory
		problems []string
		reason   string
	}{
		{withTimes(15*time.Second, 10*time.Second, 20*time.Millisecond), &memory{record: held("eu_1", time.Now())}, nil, "a fast lock"},
		{withTimes(15*time.Second, 10*time.Second, 20*time.Millisecond), &memory{}, nil, "a lock that nobody has held"},
		{withTimes(4*time.Second, time.Second, 900*time.Millisecond), &memory{record: held("eu_1", time.Now())},
			[]string{"no renewal may fail: renewDeadline 1s leaves "}, "no time for a second attempt"},
		{withTimes(1200*time.Millisecond, time.Second, 20*time.Millisecond), &memory{record: held("eu_1", time.Now()),
			before: slow(300 * time.Millisecond)},
			[]string{"leaseDuration - renewDeadline is 200ms, not longer than the slowest request, 3"}, "slower than the reserve"},
		{withTimes(4*time.Second, time.Second, 20*time.Millisecond), &memory{record: held("eu_1", time.Now()),
			before: slow(1100 * time.Millisecond)},
			[]string{"the slowest request took 1.1", "no renewal may fail"}, "a round trip that is longer than the deadline"},
		{withTimes(15*time.Second, 10*time.Second, 20*time.Millisecond),
			&memory{before: func() error { return errors.New("connection refused") }},
			[]string{"4 of 4 requests failed; the first one after 0s: connection refused"}, "a service that does not answer"},
	}
	for _, test := range tests {
		p, err := ProbeLock(t.Context(), test.f, test.lock, 2)
		if err != nil || len(p.Problems) != len(test.problems) {
			t.Errorf("%s: %+v, %v", test.reason, p, err)
			continue
		}
		for i, want := range test.problems {
			if !strings.HasPrefix(p.Problems[i], want) {
				t.Errorf("%s: %q, want %q", test.reason, p.Problems[i], want)
			}
		}
		if r := test.lock.record; r != nil && r.HolderIdentity != "" && r.LeaderTransitions != 7 || r != nil && r.HolderIdentity == "probe" {
			t.Errorf("%s: the lock has changed: %+v", test.reason, r)
		}
	}
}

// TestProbeClocks: clocks that are ten minutes apart are found, that of the service and that of the holder.
func TestProbeClocks(t *testing.T) {
	const apart = 10 * time.Minute
	m := &memory{record: held("eu_1", time.Now().Add(apart)), serviceTime: time.Now().Add(-apart)}
	m.before = func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.record.RenewTime = metav1.NewTime(time.Now().Add(apart))
		return nil
	}
	p, err := ProbeLock(t.Context(), withTimes(15*time.Second, 10*time.Second, 20*time.Millisecond), m, 2)
	if err != nil || len(p.Problems) > 0 || len(p.Clocks) != 2 {
		t.Fatalf("it finds %+v, %v", p, err)
	}
	for _, c := range p.Clocks {
		want := map[string]time.Duration{"eu": -apart, "the lock's service": apart}[c.Of]
		if (c.Ahead - want).Abs() > c.Within+time.Second {
			t.Errorf("%s: it is %s ahead, within %s; want %s", c.Of, c.Ahead, c.Within, want)
		}
	}
}

// TestProbeRefused: what the next request would meet, too, ends it.
func TestProbeRefused(t *testing.T) {
	for reason, refused := range map[string]error{
		"no rights":       leadership.Forbidden(errors.New("no rights")),
		"something else":  fmt.Errorf("%w: it has 5000 bytes", locks.ErrNotOurs),
		"a broken config": &config.Error{Problem: "it cannot be read"},
	} {
		m := &memory{before: func() error { return refused }}
		if _, err := ProbeLock(t.Context(), withTimes(15*time.Second, 10*time.Second, 20*time.Millisecond), m, 3); !errors.Is(err, refused) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
