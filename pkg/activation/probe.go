package activation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/corollary-dev/corollary/pkg/activation/locks"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// Latencies are how long requests of one kind took, sorted.
type Latencies []time.Duration

// Median is the one in the middle; 0 for none.
func (l Latencies) Median() time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)/2]
}

// Slowest is the last; 0 for none.
func (l Latencies) Slowest() time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1]
}

// Clock is how far our clock is ahead of another one, give or take Within.
type Clock struct {
	Of            string
	Ahead, Within time.Duration
}

// Probed is what was measured of a lock.
type Probed struct {
	Reads, Writes Latencies
	Clocks        []Clock
	// Margin is what is left of the renew deadline for failed renewals, after a retry period and the slowest request.
	Margin time.Duration
	// Retries is how many renewals in a row may fail within the margin.
	Retries int
	// Problems say why the times of the activation do not fit what was measured.
	Problems []string
}

// ProbeLock measures requests to a lock, so many of each kind. It changes nothing: each write is one that must fail,
// since the record exists. Only where there is none yet, the first write creates one that nobody holds.
func ProbeLock(ctx context.Context, f *load.ActivationFile, store leadership.Store, rounds int) (*Probed, error) {
	p := &probe{store: store, patience: time.Duration(f.LeaseDuration)}
	for i := range rounds {
		if i > 0 {
			p.pause(ctx, time.Duration(f.RetryPeriod)/4) // so that the active cluster renews the lock meanwhile
		}
		if err := p.round(ctx); err != nil {
			return nil, fmt.Errorf("probing the %s: %w", store.Describe(), err)
		}
	}
	return p.result(f), nil
}

type probe struct {
	store    leadership.Store
	patience time.Duration
	probed   Probed
	failures []string
	// renewed is when the holder last renewed the lock, by its own clock; read when that was read.
	renewed, read time.Time
}

func (p *probe) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// round reads and writes once. It returns an error for what would fail again; one request that fails is a problem.
func (p *probe) round(ctx context.Context) error {
	record := &leadership.Record{LeaderTransitions: int(leadership.NoToken)}
	err := p.measure(ctx, &p.probed.Reads, func(ctx context.Context) error {
		begin := time.Now()
		found, err := p.store.Get(ctx)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			record = found
			p.compareClocks(found, begin)
		}
		return err
	})
	if err != nil {
		return err
	}
	now := metav1.NewTime(time.Now())
	free := &leadership.Record{LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
		LeaderTransitions: max(record.LeaderTransitions, 0)}
	return p.measure(ctx, &p.probed.Writes, func(ctx context.Context) error {
		if err := p.store.Create(ctx, free); !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
		return nil
	})
}

// measure times a request. What is refused, or no request at all, is not measured.
func (p *probe) measure(ctx context.Context, into *Latencies, request func(context.Context) error) error {
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	err := request(limited)
	took := time.Since(begin)
	switch {
	case errors.Is(err, locks.ErrDecidedByDNS):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("no answer within --timeout: %w", ctx.Err())
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), errors.As(err, new(*config.Error)),
		errors.Is(err, locks.ErrNotOurs):
		return err
	case err != nil:
		p.failures = append(p.failures, fmt.Sprintf("after %s: %v", took.Round(time.Millisecond), err))
		return nil
	}
	*into = append(*into, took)
	return nil
}

// compareClocks compares our clock with that of the service, and with that of a holder which has renewed the lock
// between two reads.
func (p *probe) compareClocks(record *leadership.Record, begin time.Time) {
	now := time.Now()
	if s, ok := p.store.(locks.Timed); ok {
		if at, ok := s.ServerTime(); ok && at.Unix() > 0 {
			p.clock(Clock{Of: "the lock's service", Ahead: begin.Sub(at), Within: now.Sub(begin) + time.Second})
		}
	}
	if record.HolderIdentity == "" || record.RenewTime.IsZero() {
		return
	}
	renewed := record.RenewTime.Time
	if !p.renewed.IsZero() && !renewed.Equal(p.renewed) {
		p.clock(Clock{Of: identityOf(record.HolderIdentity), Ahead: p.read.Sub(renewed) +
			now.Sub(p.read)/2, Within: now.Sub(p.read)})
	}
	p.renewed, p.read = renewed, begin
}

// clock keeps the last comparison with each clock.
func (p *probe) clock(c Clock) {
	p.probed.Clocks = append(slices.DeleteFunc(p.probed.Clocks, func(other Clock) bool { return other.Of == c.Of }), c)
}

// result judges what was measured.
func (p *probe) result(f *load.ActivationFile) *Probed {
	r := &p.probed
	slices.Sort(r.Reads)
	slices.Sort(r.Writes)
	deadline, retry := time.Duration(f.RenewDeadline), time.Duration(f.RetryPeriod)
	if f.DNS != nil {
		retry = time.Duration(f.DNS.Interval)
	}
	every := time.Duration(leaderelection.JitterFactor * float64(retry))
	slowest := max(r.Reads.Slowest(), r.Writes.Slowest())
	r.Margin = deadline - every - slowest
	r.Retries = int(max(r.Margin, 0) / (every + slowest))
	problem := func(format string, args ...any) { r.Problems = append(r.Problems, fmt.Sprintf(format, args...)) }
	if len(p.failures) > 0 {
		problem("%d of %d requests failed; the first one %s", len(p.failures),
			len(p.failures)+len(r.Reads)+len(r.Writes), p.failures[0])
	}
	if limit := locks.RequestTimeout(f); slowest >= limit {
		problem("the slowest request took %s, and each is given up after %s, half of renewDeadline: raise renewDeadline "+
			"and leaseDuration",
			slowest.Round(time.Millisecond), limit)
	}
	if r.Retries == 0 {
		problem("no renewal may fail: renewDeadline %s leaves %s after retryPeriod with its jitter and the slowest request, "+
			"which is too short for a second attempt. Raise renewDeadline and leaseDuration, or lower retryPeriod",
			deadline, r.Margin.Round(time.Millisecond))
	}
	if reserve := time.Duration(f.LeaseDuration) - deadline; reserve <= slowest {
		problem("leaseDuration - renewDeadline is %s, not longer than the slowest request, %s: a request may still be on "+
			"its way when another "+
			"cluster starts. Raise leaseDuration", reserve, slowest.Round(time.Millisecond))
	}
	return r
}
