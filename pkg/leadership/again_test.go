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

// TestAgain: two processes that stand by again hand the lock to each other, with a token that grows, and never hold it together.
// A takeover takes no longer than the lease and one retry. The time is not real.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var held []Token
		elections := map[string]*Election{}
		timings := Timings{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
		for _, name := range []string{"a", "b"} {
			c := &client{memory: store}
			e, err := NewElection(c, Options{Timings: timings, Identity: name, Again: true, HandsOver: true, Log: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			elections[name] = e
			wg.Go(func() {
				if err := e.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		active := func() *Election {
			synctest.Wait()
			var found *Election
			for _, e := range elections {
				if e.MayWrite() == nil {
					if found != nil {
						t.Fatal("both may write")
					}
					found = e
				}
			}
			return found
		}
		await := func(within time.Duration) *Election {
			for range int(within / (100 * time.Millisecond)) {
				if e := active(); e != nil {
					if len(held) > 0 && e.Token() <= held[len(held)-1] {
						t.Errorf("the token is %s after %s", e.Token(), held[len(held)-1])
					}
					held = append(held, e.Token())
					return e
				}
				<-time.After(100 * time.Millisecond)
			}
			t.Fatalf("nobody holds the lock after %s", within)
			return nil
		}
		first := await(5 * time.Second)
		<-time.After(time.Minute)
		if active() != first {
			t.Fatal("it changes hands for no reason")
		}
		asker := &client{memory: store}
		record, _ := asker.Get(ctx)
		record.HolderIdentity = AskedToHandOver(record.HolderIdentity)
		if err := asker.Update(ctx, record); err != nil {
			t.Fatal(err)
		}
		<-time.After(timings.RetryPeriod + 100*time.Millisecond)
		second := await(timings.RetryPeriod)
		if second == first {
			t.Error("it was not handed over")
		}
		<-time.After(time.Minute)
		if active() != second {
			t.Error("who handed it over took it back")
		}
		store.mu.Lock()
		store.unreachable = true
		store.mu.Unlock()
		<-time.After(timings.RenewDeadline)
		if active() != nil {
			t.Error("it is active and cannot renew")
		}
		<-time.After(time.Minute)
		store.mu.Lock()
		store.unreachable = false
		store.mu.Unlock()
		await2 := func() *Election { held = nil; return await(timings.LeaseDuration + 2*timings.RetryPeriod) }
		await2()
		cancel()
		wg.Wait()
		if record, _ := asker.Get(t.Context()); record.HolderIdentity != "" {
			t.Errorf("after a clean stop %s holds the lock", record.HolderIdentity)
		}
	})
}

// TestTakeover: once a holder is gone, a standby takes the lock within the lease and one retry of the last renewal: whether it
// watches or polls, and if it handed the lock over just before. The time is not real.
func TestTakeover(t *testing.T) {
	for _, test := range []struct {
		name               string
		unwatched, handsOn bool
	}{
		{"watched", false, false},
		{"polled", true, false},
		{"watched, after it handed over", false, true},
		{"polled, after it handed over", true, true},
	} {
		for range 20 { // of different jitter
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { takeOver(t, test.unwatched, test.handsOn) })
			})
		}
	}
}

func takeOver(t *testing.T, unwatched, handsOn bool) {
	t.Helper()
	timings := Timings{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
	store := newMemory()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clients, elections := make([]*client, 2), make([]*Election, 2)
	for i, name := range []string{"a", "b"} {
		clients[i] = &client{memory: store, unwatched: unwatched}
		e, err := NewElection(clients[i], Options{Timings: timings, Identity: name, Again: true, HandsOver: true, Log: logr.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		elections[i] = e
		go func() { _ = e.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }) }()
	}
	holder := func() int {
		for {
			for i, e := range elections {
				if e.MayWrite() == nil {
					return i
				}
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	at := holder()
	<-time.After(timings.LeaseDuration)
	if handsOn {
		asker := &client{memory: store}
		record, _ := asker.Get(ctx)
		record.HolderIdentity = AskedToHandOver(record.HolderIdentity)
		if err := asker.Update(ctx, record); err != nil {
			t.Fatal(err)
		}
		for before := at; at == before; at = holder() {
			<-time.After(10 * time.Millisecond)
		}
		<-time.After(timings.RetryPeriod)
	}
	store.mu.Lock()
	clients[at].dead = true
	last := store.record.RenewTime.Time
	store.mu.Unlock()
	for elections[1-at].MayWrite() != nil {
		<-time.After(10 * time.Millisecond)
	}
	if took := time.Since(last); took > timings.LeaseDuration+timings.RetryPeriod {
		t.Errorf("it takes over after %s", took)
	}
	cancel()
	synctest.Wait()
}

// TestNoTokenLeft: a lock whose token cannot grow is taken by nobody, and one message says why, until somebody writes a smaller token.
// It makes no difference whether it was released or has run out. The time is not real.
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
	timings := Timings{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
	c := &client{memory: store, last: last, unwatched: unwatched}
	write := func(token Token) {
		t.Helper()
		somebody := &client{memory: store}
		_, _ = somebody.Get(t.Context())
		record := &Record{HolderIdentity: holder, LeaseDurationSeconds: 1, LeaderTransitions: int(token)}
		if err := somebody.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	write(last)
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	e, err := NewElection(c, Options{Timings: timings, Identity: "a", Again: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = e.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }) })
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
