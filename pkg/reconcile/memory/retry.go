package memory

import (
	"math/rand/v2"
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
)

// Spacing is how a config delays attempts that failed, and writes that do not last.
type Spacing struct{ minDelay, maxDelay time.Duration }

// SpacingOf is the spacing of a config.
func SpacingOf(conf config.Retry) Spacing {
	return Spacing{time.Duration(conf.MinDelay), time.Duration(conf.MaxDelay)}
}

// Retry delays attempts that failed, for one downstream or for the upstream itself: they wait and delay nothing else,
// and a changed upstream does not wait.
type Retry struct {
	failures int
	until    time.Time
	cause    canonical.Sum
}

// Fail records a failed attempt for an upstream with that cause and returns its delay: growing, with jitter, so that
// many that failed together are not retried together.
func (r *Retry) Fail(s Spacing, atLeast time.Duration, cause canonical.Sum, now time.Time) time.Duration {
	delay := max(atLeast, decide.Backoff(s.minDelay, s.maxDelay, r.failures))
	delay += rand.N(delay/4 + 1)
	r.failures++
	r.until, r.cause = now.Add(delay), cause
	return delay
}

// Wait returns how long an upstream with that cause still has to wait; zero if it may be tried now.
func (r Retry) Wait(cause canonical.Sum, now time.Time) time.Duration {
	if r.failures == 0 || r.cause != cause || !now.Before(r.until) {
		return 0
	}
	return r.until.Sub(now)
}

// HasFailed reports whether any attempt failed.
func (r Retry) HasFailed() bool { return r.failures > 0 }
