package leadership

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// machine is one of two that take part, with a wall clock of its own. It writes records by that clock.
type machine struct {
	*client
	*Election
	mu     sync.Mutex
	offset time.Duration // of its wall clock
	// renewed is when it last renewed the lock in truth.
	renewed time.Time
}

func (m *machine) step(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offset += by
}

// now is the moment by its two clocks: the wall clock was stepped, the monotonic one was not.
func (m *machine) now() Instant {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := Now()
	i.wall = i.wall.Add(m.offset)
	return i
}

// Create implements Store, and Describe says which of the embedded ones is meant.
func (m *machine) Create(ctx context.Context, record *Record) error { return m.Update(ctx, record) }

func (m *machine) Describe() string { return m.client.Describe() }

func (m *machine) Update(ctx context.Context, record *Record) error {
	m.mu.Lock()
	stamped, begin := *record, time.Now()
	stamped.RenewTime = metav1.NewTime(record.RenewTime.Add(m.offset))
	stamped.AcquireTime = metav1.NewTime(record.AcquireTime.Add(m.offset))
	m.mu.Unlock()
	err := m.client.Update(ctx, &stamped)
	if err == nil {
		m.mu.Lock()
		m.renewed = begin
		m.mu.Unlock()
	}
	return err
}

// pair are two machines that take part in one election.
type pair struct {
	t        *testing.T
	store    *memory
	machines [2]*machine
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	history  []string
}

func newPair(t *testing.T, unwatched bool, apart time.Duration) *pair {
	t.Helper()
	p := &pair{t: t, store: newMemory()}
	ctx, cancel := context.WithCancel(t.Context())
	p.cancel = cancel
	for i, name := range []string{"a", "b"} {
		m := &machine{client: &client{memory: p.store, unwatched: unwatched}, offset: time.Duration(i) * apart}
		e, err := NewElection(m, Options{Timings: DefaultTimings(), Identity: name, Again: true, HandsOver: true, Log: logr.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		e.clock = m.now
		m.Election, p.machines[i] = e, m
		p.wg.Go(func() {
			if err := e.Run(ctx, untilDone); err != nil {
				t.Error(err)
			}
		})
	}
	return p
}

// active is the machine that may write, nil for none. It checks that only one may, and that it renewed the lock in
// time.
func (p *pair) active() *machine {
	p.t.Helper()
	synctest.Wait()
	var found *machine
	for _, m := range p.machines {
		if m.MayWrite() != nil {
			continue
		}
		if found != nil {
			p.t.Fatalf("both may write, after %s", p.history)
		}
		found = m
		m.mu.Lock()
		silent := time.Since(m.renewed)
		m.mu.Unlock()
		if silent >= DefaultTimings().RenewDeadline {
			p.t.Fatalf("it may write %s after its last renewal, after %s", silent, p.history)
		}
	}
	return found
}

// pass lets time pass, and checks all the while.
func (p *pair) pass(d time.Duration) {
	p.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		p.active()
		<-time.After(50 * time.Millisecond)
	}
}

// await waits until one is active, which takes no longer than within.
func (p *pair) await(within time.Duration) *machine {
	p.t.Helper()
	begin := time.Now()
	for {
		m := p.active()
		switch {
		case m != nil:
			return m
		case time.Since(begin) > within:
			p.t.Fatalf("nobody is active after %s, after %s", within, p.history)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// setDead has a machine lose its way to the lock, or find it again.
func (p *pair) setDead(m *machine, is bool) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	m.dead = is
}

func (p *pair) end() {
	p.cancel()
	p.wg.Wait()
}

// takeoverTime is after how long another machine takes over.
func takeoverTime() time.Duration {
	t := DefaultTimings()
	return t.LeaseDuration + t.RetryPeriod
}

// TestClockSteps: wall clocks that differ or are set take the lock from nobody, and delay no takeover. The time is not
// real.
func TestClockSteps(t *testing.T) {
	const step = 10 * time.Minute
	tests := []struct {
		reason         string
		apart          time.Duration // from the start
		active, standB time.Duration // steps
	}{
		{"the clock of one is ahead", step, 0, 0},
		{"the clock of one is behind", -step, 0, 0},
		{"that of the active one is set forward", 0, step, 0},
		{"that of the active one is set back", 0, -step, 0},
		{"that of the active one is set forward by less than the deadline", 0, 9 * time.Second, 0},
		{"that of the active one is set back by one renewal", 0, -2 * time.Second, 0},
		{"that of the standby is set forward", 0, 0, step},
		{"that of the standby is set back", 0, 0, -step},
		{"both are set, away from each other", 0, step, -step},
		{"both are set, to the same time", step, step, 0},
	}
	for _, test := range tests {
		for _, unwatched := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, watched %t", strings.ReplaceAll(test.reason, " ", "_"), !unwatched), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPair(t, unwatched, test.apart)
					defer p.end()
					first := p.await(5 * time.Second)
					token := first.Token()
					p.pass(time.Minute)
					second := p.machines[0]
					if first == second {
						second = p.machines[1]
					}
					first.step(test.active)
					second.step(test.standB)
					if m := p.await(2 * DefaultTimings().RetryPeriod); m != first || m.Token() != token {
						t.Errorf("the lock changed hands: token %s after %s", m.Token(), token)
					}
					p.pass(time.Minute)
					if p.active() != first || first.Token() != token {
						t.Error("the lock changed hands later")
					}
					p.setDead(first, true)
					first.step(test.active) // once more, when it cannot renew
					p.pass(DefaultTimings().RenewDeadline)
					if p.await(takeoverTime()) != second {
						t.Error("the other one did not take over")
					}
				})
			})
		}
	}
}

// TestClockChaos sets clocks at random, while machines lose their way to the lock, hand it over, or find it deleted.
// The time is not real.
func TestClockChaos(t *testing.T) {
	const rounds = 60
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				p := newPair(t, seed%2 == 0, 0)
				defer p.end()
				for range rounds {
					p.disturb(random)
					p.pass(time.Duration(random.Int64N(int64(2 * takeoverTime()))))
					for _, m := range p.machines {
						p.setDead(m, false)
					}
					p.await(2 * takeoverTime()) // one that handed over lets the other one come first
				}
			})
		})
	}
}

// disturb has one thing go wrong.
func (p *pair) disturb(random *rand.Rand) {
	m := p.machines[random.IntN(len(p.machines))]
	name, _, _ := strings.Cut(m.Self(), "_")
	note := func(what string) { p.history = append(p.history, what+" "+name) }
	switch random.IntN(6) {
	case 0:
		note("cut off")
		p.setDead(m, true)
	case 1:
		note("hand over")
		p.store.askToHandOver(p.t.Context())
	case 2:
		note("delete")
		p.store.mu.Lock()
		p.store.record = nil
		p.store.version++
		p.store.mu.Unlock()
	default:
		by := []time.Duration{10 * time.Minute, -10 * time.Minute, 9 * time.Second, -9 * time.Second, 14 * time.Second, -time.Second}
		step := by[random.IntN(len(by))]
		note("step " + step.String())
		m.step(step)
	}
}

// TestPollClockSteps: a wall clock that is set makes no cluster active early or late, where a name says which one is.
// It is asked each two seconds; the deadline is 10 s, the lease lasts 15 s.
func TestPollClockSteps(t *testing.T) {
	tests := []struct {
		reason      string
		at, by      time.Duration // a step
		from, until int           // seconds between which it becomes active; 0 for never
		stops       bool          // whether it stops, and begins again
	}{
		{"no step", 0, 0, 16, 16, false},
		{"set forward by less than the deadline, while it waits", 5 * time.Second, 7 * time.Second, 16, 16, false},
		{"set forward by 10 minutes, while it waits", 5 * time.Second, 10 * time.Minute, 16, 22, false},
		{"set back by 10 minutes, while it waits", 5 * time.Second, -10 * time.Minute, 16, 16, false},
		{"set back by 10 minutes, while it is active", 31 * time.Second, -10 * time.Minute, 16, 16, false},
		{"set forward by 10 minutes, while it is active: as after a suspended machine", 31 * time.Second, 10 * time.Minute, 16, 16, true},
	}
	for _, test := range tests {
		p := NewPoll(PollOptions{Name: "DNS name x", Again: true, Log: logr.Discard(), Timings: DefaultTimings(),
			Ask: func(context.Context) (bool, string, error) { return true, "us", nil }})
		now := time.Duration(0)
		p.clock = func() Instant {
			i := Instant{wall: processStart.Round(0).Add(now), monotonic: now}
			if now >= test.at {
				i.wall = i.wall.Add(test.by)
			}
			return i
		}
		active, stopped := 0, false
		for second := 0; second <= 60; second += 2 {
			now = time.Duration(second) * time.Second
			if err := p.ask(t.Context()); err != nil {
				t.Fatal(err)
			}
			writes := p.MayWrite() == nil
			if writes && active == 0 {
				active = second
			}
			stopped = stopped || !writes && active > 0
		}
		if active < test.from || active > test.until || stopped != test.stops || p.MayWrite() != nil {
			t.Errorf("%s: active after %d s, stopped since: %t, in the end: %v", test.reason, active, stopped, p.MayWrite())
		}
	}
}
