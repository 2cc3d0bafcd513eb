package leadership

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/corollary-dev/corollary/internal/must"
)

// memory is a Store in this process, which others write too. It is reached while reachable is true.
type memory struct {
	mu          sync.Mutex
	record      *Record
	version     int
	changed     chan struct{}
	unreachable bool
}

func newMemory() *memory { return &memory{changed: make(chan struct{})} }

// client is one process' access to the memory.
type client struct {
	*memory
	read int
	// unwatched is true if it must be polled, and dead once this process reaches it no more.
	unwatched, dead bool
	// last is the greatest token; 0 for that of 64 bits.
	last Token
}

func (c *client) Describe() string  { return "record in memory" }
func (c *client) LeastToken() Token { return 0 }

func (c *client) LastToken() Token {
	if c.last > 0 {
		return c.last
	}
	return math.MaxInt64
}

func (c *client) Get(context.Context) (*Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.unreachable, c.dead:
		return nil, errors.New("unreachable")
	}
	c.read = c.version
	if c.record == nil {
		return nil, NotFound("record")
	}
	record := *c.record
	return &record, nil
}

func (c *client) Create(ctx context.Context, record *Record) error { return c.Update(ctx, record) }

func (c *client) Update(_ context.Context, record *Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.unreachable, c.dead:
		return errors.New("unreachable")
	case c.read != c.version:
		return Conflict("record")
	}
	written := *record
	c.record = &written
	c.version++
	c.read = c.version
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

func (c *client) Watch(ctx context.Context, seen func(*Record) bool) error {
	if c.unwatched {
		return ErrUnwatched
	}
	for {
		c.mu.Lock()
		changed := c.changed
		record, newer := c.record, c.version != c.read && !c.unreachable && !c.dead
		if newer && record == nil {
			c.mu.Unlock()
			return nil // it was deleted
		}
		if newer {
			c.read = c.version
		}
		c.mu.Unlock()
		if newer && seen(record) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// setUnreachable cuts all off, or none any more.
func (m *memory) setUnreachable(is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unreachable = is
}

// askToHandOver does what an administrator does. It does nothing if nobody holds the lock, or someone was faster.
func (m *memory) askToHandOver(ctx context.Context) {
	asker := &client{memory: m}
	if record, err := asker.Get(ctx); err == nil && record.HolderIdentity != "" {
		record.HolderIdentity = AskedToHandOver(record.HolderIdentity)
		_ = asker.Update(ctx, record)
	}
}

// untilDone is what a holder does in these tests.
func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// TestAgain: two standby processes hand the lock to each other, with a token that grows, and never hold it
// together. A takeover takes no longer than the lease and one retry. The time is not real.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, timings := newPair(t, false, 0), DefaultTimings()
		first := p.await(5 * time.Second)
		token := first.Token()
		p.pass(time.Minute)
		if p.active() != first {
			t.Fatal("it changes hands for no reason")
		}
		p.store.askToHandOver(t.Context())
		p.pass(timings.RetryPeriod + 100*time.Millisecond)
		second := p.await(timings.RetryPeriod)
		if second == first || second.Token() <= token {
			t.Errorf("it was not handed over: the token is %s after %s", second.Token(), token)
		}
		p.pass(time.Minute)
		if p.active() != second {
			t.Error("who handed it over took it back")
		}
		p.store.setUnreachable(true)
		p.pass(timings.RenewDeadline)
		if p.active() != nil {
			t.Error("it is active and cannot renew")
		}
		p.pass(time.Minute)
		p.store.setUnreachable(false)
		p.await(timings.LeaseDuration + 2*timings.RetryPeriod)
		p.end()
		if record, _ := p.machines[0].Get(t.Context()); record.HolderIdentity != "" {
			t.Errorf("after a clean stop %s holds the lock", record.HolderIdentity)
		}
	})
}

// TestTakeover: once a holder is gone, a standby takes the lock within the lease and one retry of the last renewal:
// whether it watches or polls, and if it handed the lock over just before. The time is not real.
func TestTakeover(t *testing.T) {
	for i := range 4 * 20 { // 20 of different jitter
		unwatched, handsOn := i%2 == 1, i%4 >= 2
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, unwatched, 0)
			defer p.end()
			holder := p.await(5 * time.Second)
			p.pass(takeoverTime())
			if handsOn {
				p.store.askToHandOver(t.Context())
				for before := holder; holder == before; holder = p.await(takeoverTime()) {
					<-time.After(10 * time.Millisecond)
				}
				p.pass(DefaultTimings().RetryPeriod)
			}
			p.setDead(holder, true)
			p.pass(DefaultTimings().RenewDeadline)
			if p.await(takeoverTime()) == holder {
				t.Error("who is cut off is active")
			}
			if took := time.Since(holder.renewed); took > takeoverTime() {
				t.Errorf("unwatched: %t, it handed over before: %t: it takes over after %s", unwatched, handsOn, took)
			}
		})
	}
}

// TestNoTokenLeft: a lock whose token cannot grow is taken by nobody, and one message says why, until someone writes a
// smaller token. It makes no difference whether it was released or has run out. The time is not real.
func TestNoTokenLeft(t *testing.T) {
	for _, last := range []Token{math.MaxInt32, math.MaxInt64} {
		for _, holder := range []string{"", "gone"} {
			for _, unwatched := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) { noTokenLeft(t, last, holder, unwatched) })
			}
		}
	}
}

func noTokenLeft(t *testing.T, last Token, holder string, unwatched bool) {
	t.Helper()
	store, logged := newMemory(), []string{}
	timings := DefaultTimings()
	c := &client{memory: store, last: last, unwatched: unwatched}
	write := func(token Token) {
		t.Helper()
		somebody := &client{memory: store}
		_, _ = somebody.Get(t.Context())
		record := &Record{HolderIdentity: holder, LeaseDurationSeconds: 1, LeaderTransitions: int(token)}
		must.Do(t, somebody.Update(t.Context(), record))
	}
	write(last)
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	e := must.Get(NewElection(c, Options{Timings: timings, Identity: "a", Again: true, Log: log})).In(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = e.Run(ctx, untilDone) })
	<-time.After(5 * time.Minute)
	synctest.Wait()
	exhausted := &ExhaustedError{Lock: c.Describe(), Last: last}
	if text := strings.Join(logged, "\n"); e.Active() || len(logged) != 1 || !strings.Contains(text, exhausted.Error()) {
		t.Errorf("active %v, logged:\n%s", e.Active(), text)
	}
	if r, err := c.Get(ctx); err != nil || r.LeaderTransitions != int(last) || r.HolderIdentity != holder {
		t.Errorf("the record became %v, %v", r, err)
	}
	write(7)
	<-time.After(timings.LeaseDuration)
	synctest.Wait()
	if !e.Active() || e.Token() != 8 {
		t.Errorf("after a smaller token was written: active %v, token %s", e.Active(), e.Token())
	}
	once, err := NewElection(&client{memory: store, last: 8}, Options{Timings: timings, Identity: "b", Once: true, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	cancel() // which releases the lock with the token 8
	wg.Wait()
	bounded, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	err = once.Run(bounded, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if !errors.As(err, new(*ExhaustedError)) {
		t.Errorf("a process that has one thing to do: %v", err)
	}
}
