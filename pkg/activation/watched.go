package activation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// watched is a lock whose requests are measured, and whose records are checked for what nobody would notice otherwise.
type watched struct {
	leadership.Store
	name, identity, self string
	timings              leadership.Timings
	log                  logr.Logger

	mu sync.Mutex
	// lasting are the troubles that were logged and last.
	lasting map[string]bool
	// other is another process of our identity, renewed when it last renewed the lock, and renewals how often it was seen
	// to.
	other    string
	renewed  time.Time
	renewals int
}

// Get implements leadership.Store.
func (w *watched) Get(ctx context.Context) (*leadership.Record, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, w.limit())
	defer cancel()
	record, err := w.Store.Get(ctx)
	if err != nil {
		return nil, w.explain(err, time.Since(begin))
	}
	w.check(record)
	return record, nil
}

// Create implements leadership.Store.
func (w *watched) Create(ctx context.Context, record *leadership.Record) error {
	return w.write(ctx, record, w.Store.Create)
}

// Update implements leadership.Store.
func (w *watched) Update(ctx context.Context, record *leadership.Record) error {
	return w.write(ctx, record, w.Store.Update)
}

// Watch implements leadership.Store.
func (w *watched) Watch(ctx context.Context, seen func(*leadership.Record) bool) error {
	return w.Store.Watch(ctx, func(record *leadership.Record) bool {
		w.check(record)
		w.checkClock(record)
		return seen(record)
	})
}

func (w *watched) write(
	ctx context.Context, record *leadership.Record, write func(context.Context, *leadership.Record) error,
) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, w.limit())
	defer cancel()
	err := write(ctx, record)
	took := time.Since(begin)
	observeRenewal(w.name, took, err)
	if err != nil {
		return w.explain(err, took)
	}
	// The next renewal is sent a retry period after this answer, and counts once it is answered, too.
	left := w.timings.RenewDeadline - took - w.timings.RetryPeriod - took
	w.say("slow", left <= 0,
		"renewals are slow: the deadline passes before the next one, and writing pauses. Raise renewDeadline and "+
			"leaseDuration, or lower retryPeriod", "took", took.Round(time.Millisecond).String(), "renewDeadline",
		w.timings.RenewDeadline.String(),
		"retryPeriod", w.timings.RetryPeriod.String())
	return nil
}

// limit is when a request is given up: one that hangs shall not cost the lock.
func (w *watched) limit() time.Duration { return max(w.timings.RenewDeadline/2, time.Second) }

// explain says more of a request that was given up.
func (w *watched) explain(err error, took time.Duration) error {
	if limit := w.limit(); took >= limit && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s; if the round trip takes that long, raise renewDeadline and "+
			"leaseDuration: %w", limit, err)
	}
	return err
}

// check finds another process that has our identity and renews the lock: not one that has died.
func (w *watched) check(record *leadership.Record) {
	holder, _ := leadership.HolderOf(record.HolderIdentity)
	if holder == w.self || identityOf(holder) != w.identity {
		return
	}
	w.mu.Lock()
	if holder != w.other {
		w.other, w.renewals = holder, 0
	} else if !record.RenewTime.Time.Equal(w.renewed) {
		w.renewals++
	}
	w.renewed = record.RenewTime.Time
	twice := w.renewals >= 2
	w.mu.Unlock()
	if twice {
		setIdentityConflict(w.name)
		w.say("identity "+holder, true,
			"another process with this identity is active: give each cluster an identity of its own, and start "+
				"replicas in one cluster with --leader-elect", "identity", w.identity, "holder", holder)
	}
}

// checkClock compares the clock of a holder that has renewed the lock just now with our own.
func (w *watched) checkClock(record *leadership.Record) {
	if record.HolderIdentity == "" {
		return
	}
	apart := time.Since(record.RenewTime.Time).Abs()
	w.say("clock", apart > w.timings.LeaseDuration,
		"the clocks of the clusters differ. The lock does not depend on them, but times in "+
			"logs and in corollary activation do", "by", apart.Round(time.Second).String(), "holder", record.HolderIdentity)
}

// say logs a trouble once while it lasts.
func (w *watched) say(trouble string, lasts bool, message string, keysAndValues ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if lasts && !w.lasting[trouble] {
		w.log.Info(message, keysAndValues...)
	}
	if w.lasting == nil {
		w.lasting = map[string]bool{}
	}
	w.lasting[trouble] = lasts
}
