//go:build controlplane

package clusters

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/activation"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// observer reads the lock all the time, so that it has seen the last renewal of each hold.
type observer struct {
	lock leadership.Store

	mu    sync.Mutex
	holds map[leadership.Token]*activation.State
	// late is when this process read too late, and by how much: how busy the machine is, and for how long it was blind.
	late []lateness
}

type lateness struct {
	at time.Time
	by time.Duration
}

// run reads until ctx is done.
func (o *observer) run(ctx context.Context) {
	const every = 50 * time.Millisecond
	for ctx.Err() == nil {
		begin := time.Now()
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
		s, err := activation.Read(ctx, o.lock)
		by := time.Since(begin) - every
		o.mu.Lock()
		if by > every {
			o.late = append(o.late, lateness{begin, by})
		}
		if err == nil && s.Holder != "" {
			o.holds[s.Token] = s
		}
		o.mu.Unlock()
	}
}

// gap is how long after the last renewal of one hold the next began, and how long that may be. A standby counts from
// when it has first seen the lock. The machine may be busy: what it was late by, each process may have been late by at
// each of its steps.
func (o *observer) gap(since, seen time.Time, before leadership.Token, after *activation.State) (gap, allowed time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	allowed = leaseDuration + retryPeriod + 100*time.Millisecond
	var worst time.Duration
	for _, l := range o.late {
		if l.at.After(since.Add(-time.Second)) {
			worst = max(worst, l.by)
		}
	}
	if last := o.holds[before]; last != nil {
		gap = min(after.Since.Sub(last.Renewed), after.Since.Sub(seen))
	}
	return gap, allowed + 4*worst
}

// renewed is when the holder with a token last renewed the lock; zero if that was not seen.
func (o *observer) renewed(token leadership.Token) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if hold := o.holds[token]; hold != nil {
		return hold.Renewed
	}
	return time.Time{}
}

// all are the holds in their order.
func (o *observer) all() []*activation.State {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.SortedFunc(maps.Values(o.holds), func(a, b *activation.State) int { return a.Since.Compare(b.Since) })
}
