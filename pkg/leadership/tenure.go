package leadership

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// tenure is the time in which this process may write: from the first renewal of the Lease that succeeded until the
// deadline has passed since the last one was sent. A process has one tenure at most.
type tenure struct {
	lease    string // NAMESPACE/NAME
	deadline time.Duration
	clock    func() instant
	log      logr.Logger
	elected  chan struct{} // closed when it begins

	mu sync.Mutex
	// sent is when the last renewal that succeeded was sent: the Lease runs for others from no earlier than that.
	sent     instant
	renewals int
	// ended is why it is over for good; nil while it is not.
	ended error
	// underWay is how many writes have passed the gate and were neither answered nor given up.
	underWay int
	// renewed is closed, and replaced, at each renewal.
	renewed chan struct{}
	// doubted is true from when it was told that nothing is written until it is told that writing goes on.
	doubted bool
	timer   *time.Timer
	conns   map[*conn]struct{}
}

func newTenure(lease string, deadline time.Duration, log logr.Logger) *tenure {
	return &tenure{lease: lease, deadline: deadline, clock: now, log: log, elected: make(chan struct{}), renewed: make(chan struct{}),
		conns: map[*conn]struct{}{}}
}

// renew notes a renewal that succeeded, by when it was sent: how long its answer took does not prolong anything.
func (t *tenure) renew(sent instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	t.sent = sent
	t.renewals++
	close(t.renewed)
	t.renewed = make(chan struct{})
	left := t.deadline - t.clock().since(sent)
	if t.renewals == 1 {
		t.timer = time.AfterFunc(left, t.expire)
		close(t.elected)
	} else {
		t.timer.Reset(left)
	}
	if t.doubted && left > 0 {
		t.doubted = false
		t.log.Info("the Lease was renewed after all: writing again", "lease", t.lease)
	}
}

// end ends it for good; the first reason stays.
func (t *tenure) end(why error) {
	t.mu.Lock()
	if t.ended == nil {
		t.ended = why
	}
	t.mu.Unlock()
	t.cut()
}

// begun reports whether there was a renewal.
func (t *tenure) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.renewals > 0
}

// lost is why it is over for good; nil while it is not.
func (t *tenure) lost() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// over reports whether it has begun, and nothing may be written any more, or until the Lease is renewed. mu is held.
func (t *tenure) over() bool {
	return t.renewals > 0 && (t.ended != nil || t.clock().since(t.sent) >= t.deadline)
}

// mayWrite returns nil, or a *RefusedError that says why nothing may be written now.
func (t *tenure) mayWrite() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refusal(false)
}

// refusal is why nothing may be written now; early allows it before the tenure has begun. mu is held.
func (t *tenure) refusal(early bool) error {
	switch {
	case t.renewals == 0 && !early:
		return &RefusedError{Lease: t.lease}
	case t.over():
		return &RefusedError{Lease: t.lease, After: t.clock().since(t.sent)}
	}
	return nil
}

// enter is mayWrite for a write that is sent now, before the tenure has begun too where early is set. Where the error is nil,
// leave is to be called when the write has been answered or given up.
func (t *tenure) enter(early bool) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refusal(early); err != nil {
		return nil, err
	}
	t.underWay++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.underWay--
	}, nil
}

// wait returns true as soon as writing is allowed, and false once ctx is done.
func (t *tenure) wait(ctx context.Context) bool {
	for {
		t.mu.Lock()
		allowed, renewed := t.renewals > 0 && !t.over(), t.renewed
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

// expire does what is due when the deadline passes without a renewal: it is told once, and what is still on its way is
// cut off.
func (t *tenure) expire() {
	t.mu.Lock()
	if !t.over() {
		t.mu.Unlock()
		return
	}
	if !t.doubted && t.ended == nil {
		t.doubted = true
		t.log.Info("the Lease was not renewed in time: another process may lead, so nothing is written until it is renewed",
			"lease", t.lease, "lastRenewal", t.clock().since(t.sent).Round(time.Millisecond).String()+" ago", "renewDeadline", t.deadline.String())
	}
	t.mu.Unlock()
	t.cut()
}

// cut ends every connection that a write may be on, with what the kernel has not sent yet.
func (t *tenure) cut() {
	t.mu.Lock()
	var stale []*conn
	for c := range t.conns {
		if t.stale(c) {
			stale = append(stale, c)
		}
	}
	t.mu.Unlock()
	for _, c := range stale {
		c.abort()
	}
}

// stale reports whether a write may be on the connection that must not be sent any more. No write is on one that was made
// after the tenure was over, with none under way. mu is held.
func (t *tenure) stale(c *conn) bool {
	return t.over() && c.madeAfter != t.renewals
}
