package leadership

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Tenure is the time in which this process may write: from the first renewal of a lock that succeeded until the
// deadline has passed since the last one was sent. Once it has ended, it may begin again, if whoever renews it allows
// that.
type Tenure struct {
	name     string // of the lock, such as Lease NAMESPACE/NAME
	deadline time.Duration
	clock    func() Instant
	log      logr.Logger
	elected  chan struct{} // closed when it begins for the first time

	mu sync.Mutex
	// sent is when the last renewal that succeeded was sent: the lock runs for others from no earlier than that.
	sent Instant
	// renewals counts all of them; holds is true from the first one of a tenure until it ends.
	renewals int
	holds    bool
	// ended is why it is over; nil while it is not.
	ended error
	// leaving is true while it is given up: nothing new is begun, and what was begun is finished.
	leaving bool
	// token and preceded are about the current hold: see Token and Preceded.
	token    Token
	preceded bool
	since    time.Time
	// underWay are the writes that have passed the gate and were neither answered nor given up.
	underWay map[*write]struct{}
	renewed  chan struct{} // closed, and replaced, at each renewal
	actors   actors
	// doubted is true from when it was logged that nothing is written until it is logged that writing goes on.
	doubted bool
	timer   *time.Timer
	conns   map[*conn]struct{}
}

// NewTenure returns a tenure of a lock that has not begun. The lock is named as in "Lease apps/main".
func NewTenure(lock string, deadline time.Duration, log logr.Logger) *Tenure {
	return &Tenure{name: lock, deadline: deadline, clock: Now, log: log, token: NoToken,
		elected: make(chan struct{}), renewed: make(chan struct{}),
		actors: actors{stop: make(chan struct{}), idle: make(chan struct{})}, underWay: map[*write]struct{}{},
		conns: map[*conn]struct{}{}}
}

// Renew notes a renewal that succeeded, by when it was sent: how long its answer took does not prolong anything.
func (t *Tenure) Renew(sent Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	t.sent = sent
	t.renewals++
	if !t.holds {
		t.holds, t.since = true, sent.wall
	}
	left := t.deadline - t.clock().since(sent)
	if t.renewals == 1 {
		t.timer = time.AfterFunc(left, t.expire)
		close(t.elected)
	} else {
		t.timer.Reset(left)
	}
	if left > 0 {
		t.resume()
	}
	close(t.renewed)
	t.renewed = make(chan struct{})
}

// resume lets acting begin again. mu is held.
func (t *Tenure) resume() {
	t.actors.resume()
	if t.doubted {
		t.doubted = false
		t.log.Info("renewed after all: writing again", "lock", t.name)
	}
}

// End ends it; the first reason stays.
func (t *Tenure) End(why error) {
	t.mu.Lock()
	if t.ended == nil {
		t.ended = why
	}
	t.holds = false
	t.actors.end()
	t.mu.Unlock()
	t.cut()
}

// Restart allows it to begin again after its end.
func (t *Tenure) Restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.holds, t.leaving, t.doubted = nil, false, false, false
	t.token, t.preceded = NoToken, false
}

// leave has those that act finish, and returns when all have, or ctx is done, or the deadline has passed.
func (t *Tenure) leave(ctx context.Context) {
	t.mu.Lock()
	t.leaving = true
	t.actors.end()
	t.mu.Unlock()
	for {
		t.mu.Lock()
		acting, idle, over := t.actors.n > 0, t.actors.idle, t.over()
		t.mu.Unlock()
		if !acting || over {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-idle:
		}
	}
}

// lost is why it is over; nil while it is not.
func (t *Tenure) lost() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// over reports whether it has begun, and nothing may be written any more, or until the lock is renewed. mu is held.
func (t *Tenure) over() bool {
	return t.renewals > 0 && (t.ended != nil || !t.holds || t.clock().since(t.sent) >= t.deadline)
}

// MayWrite returns nil, or a *RefusedError that says why nothing may be written now.
func (t *Tenure) MayWrite() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refusal(false)
}

// Left is how long writing is allowed if there is no other renewal.
func (t *Tenure) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deadline - t.clock().since(t.sent)
}

// refusal is why nothing may be written now; early allows it before the tenure has begun. mu is held.
func (t *Tenure) refusal(early bool) error {
	switch {
	case t.renewals == 0 && !early, t.renewals > 0 && !t.holds && t.ended == nil:
		return &RefusedError{Lock: t.name}
	case t.over():
		return &RefusedError{Lock: t.name, After: t.clock().since(t.sent)}
	}
	return nil
}

// Wait returns true as soon as writing is allowed, and false once ctx is done.
func (t *Tenure) Wait(ctx context.Context) bool {
	for {
		t.mu.Lock()
		allowed, renewed := t.mayBegin(), t.renewed
		t.mu.Unlock()
		if allowed {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-renewed:
		}
	}
}

// mayBegin reports whether something new may be begun: nothing is after the deadline until the next renewal, though the
// clock is set back. mu is held.
func (t *Tenure) mayBegin() bool {
	return t.renewals > 0 && !t.over() && !t.leaving && !t.actors.stopped
}

// Active reports whether something new may be begun now.
func (t *Tenure) Active() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mayBegin()
}

// Act waits until writing is allowed, and returns a context that ends when no more is to be begun: the deadline has
// passed, or the lock is lost or given up. done says that whoever acted has stopped, for which a lock that is given up
// waits. ok is false once ctx is done.
func (t *Tenure) Act(ctx context.Context) (acting context.Context, done func(), ok bool) {
	for t.Wait(ctx) {
		t.mu.Lock()
		stop, allowed := t.actors.stop, t.mayBegin()
		if allowed {
			t.actors.n++
		}
		t.mu.Unlock()
		if !allowed {
			continue
		}
		acting, cancel := context.WithCancel(ctx)
		go func() {
			defer cancel()
			select {
			case <-stop:
			case <-acting.Done():
			}
		}()
		return acting, sync.OnceFunc(func() { cancel(); t.stopOne() }), true
	}
	return ctx, func() {}, false
}

// stopOne notes that one of those that act has stopped.
func (t *Tenure) stopOne() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.actors.leave()
}

// expire does what is due when the deadline passes without a renewal: it is logged once, acting is to stop, and what is
// still on its way is cut off.
func (t *Tenure) expire() {
	t.mu.Lock()
	if !t.over() {
		t.mu.Unlock()
		return
	}
	if !t.doubted && t.ended == nil && t.holds {
		t.doubted = true
		t.log.Info("not renewed in time: another process may hold the lock, so nothing is written until it is renewed",
			"lock", t.name,
			"lastRenewal", t.clock().since(t.sent).Round(time.Millisecond).String()+" ago", "renewDeadline", t.deadline.String())
	}
	t.actors.end()
	t.mu.Unlock()
	t.cut()
}

// cut ends every write that is under way, and every connection that one may be on, with what the kernel has not sent
// yet.
func (t *Tenure) cut() {
	t.mu.Lock()
	var stale []*conn
	for c := range t.conns {
		if t.stale(c) {
			stale = append(stale, c)
		}
	}
	if t.over() {
		for w := range t.underWay {
			w.cancel(&RefusedError{Lock: t.name, After: t.clock().since(t.sent), Sent: true})
		}
	}
	t.mu.Unlock()
	for _, c := range stale {
		c.abort()
	}
}

// stale reports whether a write may be on the connection that must not be sent any more. No write is on one that was
// made after the tenure was over, with none under way. mu is held.
func (t *Tenure) stale(c *conn) bool {
	return t.over() && c.madeAfter != t.renewals
}
