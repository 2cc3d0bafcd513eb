package activation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/nameserver"
	"github.com/corollary-dev/corollary/pkg/activation/locks"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// TestReadHolder: whether the holder is active is known, however far its clock is from ours. The time is not real.
func TestReadHolder(t *testing.T) {
	const lease, deadline, every = 15 * time.Second, 10 * time.Second, 2 * time.Second
	tests := []struct {
		reason string
		ahead  time.Duration // the holder's clock
		silent time.Duration // since its last renewal, and for good
		dead   bool
		active bool
	}{
		{"clocks that agree", 0, time.Second, false, true},
		{"ten minutes ahead", 10 * time.Minute, time.Second, false, true},
		{"ten minutes behind", -10 * time.Minute, time.Second, false, true},
		{"died a minute ago", 0, time.Minute, true, false},
		{"died a minute ago, ten minutes ahead", 10 * time.Minute, time.Minute, true, false},
		{"died a minute ago, ten minutes behind", -10 * time.Minute, time.Minute, true, false},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			m := &memory{}
			m.before = func() error {
				renewed := begin.Add(-test.silent)
				if !test.dead {
					renewed = renewed.Add(time.Since(begin).Truncate(every))
				}
				m.record = held("eu_1", renewed.Add(test.ahead))
				m.record.LeaseDurationSeconds = int(lease.Seconds())
				return nil
			}
			s := must.Get(ReadHolder(t.Context(), m, deadline)).In(t)
			if s.RanOut(time.Now()) == test.active {
				t.Errorf("%s: silent for %s", test.reason, s.Silent(time.Now()))
			}
			if took := time.Since(begin); took > deadline+readAgain {
				t.Errorf("%s: it takes %s", test.reason, took)
			}
			if !test.dead && test.ahead != 0 && (s.Ahead-test.ahead).Abs() > every {
				t.Errorf("%s: the clock is %s ahead", test.reason, s.Ahead)
			}
		})
	}
}

// TestReadHolderEnds: a command that is stopped waits no longer for a renewal, and says what it has read.
func TestReadHolderEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &memory{record: held("eu_1", time.Now().Add(-time.Hour))}
	m.before = func() error { cancel(); return nil }
	if s, err := ReadHolder(ctx, m, time.Hour); err != nil || s.Identity != "eu" || !s.Since.Equal(metav1.NewTime(s.Renewed).Time) {
		t.Errorf("it reads %+v, %v", s, err)
	}
}

// busy is a lock that another process writes just before each of the first writes.
type busy struct {
	*memory
	by []string // who holds the lock after each of them
}

func (b *busy) Update(ctx context.Context, record *leadership.Record) error {
	if len(b.by) == 0 {
		return b.memory.Update(ctx, record)
	}
	b.record = held(b.by[0], time.Now())
	b.by = b.by[1:]
	return leadership.Conflict("memory")
}

// TestRewrite: whoever changes a lock that is held is not stopped by a renewal that comes in between.
func TestRewrite(t *testing.T) {
	const asked = "eu_1 (asked to hand over)"
	changes := map[string]struct {
		change func(context.Context, leadership.Store) (*State, error)
		done   string // who holds the lock after it
	}{
		"hand over": {AskToHandOver, asked},
		"take away": {func(ctx context.Context, store leadership.Store) (*State, error) { return TakeAway(ctx, store, "eu_1") }, ""},
	}
	tests := []struct {
		reason string
		by     []string
		holder string // who holds the lock after it, "done" for what the change is for
		fails  bool
	}{
		{"nothing comes in between", nil, "done", false},
		{"one renewal", []string{"eu_1"}, "done", false},
		{"nine renewals", strings.Fields(strings.Repeat("eu_1 ", 9)), "done", false},
		{"a renewal each time", strings.Fields(strings.Repeat("eu_1 ", 10)), "eu_1", true},
		{"the holder gives it up", []string{"eu_1", ""}, "", false},
		{"another process takes it", []string{"eu_1", "us_1"}, "us_1", false},
	}
	for name, c := range changes {
		for _, test := range tests {
			store := &busy{&memory{record: held("eu_1", time.Now())}, test.by}
			before, err := c.change(t.Context(), store)
			taken := name == "take away" && test.holder == "us_1" // by another process than the one that was named
			if (test.fails || taken) != (err != nil) || test.fails != apierrors.IsConflict(err) || err == nil && before.Holder != "eu_1" {
				t.Errorf("%s, %s: it returns %+v, %v", name, test.reason, before, err)
			}
			want := test.holder
			if want == "done" {
				want = c.done
			}
			if store.record.HolderIdentity != want {
				t.Errorf("%s, %s: %q holds the lock, want %q", name, test.reason, store.record.HolderIdentity, want)
			}
		}
	}
}

// dnsFile is an activation by a name in DNS.
func dnsFile(d lock.ActivationDNS) *load.ActivationFile {
	f := &load.ActivationFile{}
	f.DNS, f.Identity, f.RenewDeadline = &d, "cluster-eu-1", common.Duration(time.Hour)
	return f
}

// TestDNSState: who is named can be shown, and no command changes it.
func TestDNSState(t *testing.T) {
	server := nameserver.Start(t)
	store := must.Get(locks.Open(dnsFile(lock.ActivationDNS{TXT: "active.example.com", Resolver: server.Addr}))).In(t)
	if s, err := Read(t.Context(), store); err != nil || s.Holder != "" || s.Token.String() != "" {
		t.Errorf("nobody is named: %+v, %v", s, err)
	}
	if _, err := AskToHandOver(t.Context(), store); !errors.Is(err, ErrNobody) {
		t.Errorf("nobody hands over: %v", err)
	}
	server.Say("cluster-us-1")
	if s, err := Read(t.Context(), store); err != nil || s.Holder != "cluster-us-1" || s.Token.String() != "" {
		t.Errorf("one is named: %+v, %v", s, err)
	}
	if _, err := AskToHandOver(t.Context(), store); !errors.Is(err, locks.ErrDecidedByDNS) {
		t.Errorf("it is asked to hand over: %v", err)
	}
	if _, err := TakeAway(t.Context(), store, "cluster-us-1"); !errors.Is(err, locks.ErrDecidedByDNS) {
		t.Errorf("it is taken away: %v", err)
	}
}
