package leadership

import (
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// Timings say how often a Lease is renewed, and when it counts as lost.
type Timings struct {
	// LeaseDuration is how long a standby waits after a renewal before it takes the Lease. Whole seconds: the Lease
	// stores no fractions.
	LeaseDuration time.Duration
	// RenewDeadline is how long after a renewal the leader writes without having renewed again.
	RenewDeadline time.Duration
	// RetryPeriod is how often the leader renews.
	RetryPeriod time.Duration
}

// DefaultTimings are those of Kubernetes' own components.
func DefaultTimings() Timings {
	return Timings{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
}

// Problem says which of the timings makes no sense, and why; it is empty if all do. It calls them by the names of the
// flags, without "leader-election-".
func (t Timings) Problem() string {
	switch jittered := time.Duration(leaderelection.JitterFactor * float64(t.RetryPeriod)); {
	case t.LeaseDuration < time.Second || t.LeaseDuration%time.Second != 0:
		return fmt.Sprintf("lease-duration is %s: whole seconds are needed, at least one, since the Lease stores no "+
			"fractions", t.LeaseDuration)
	case t.RetryPeriod <= 0:
		return fmt.Sprintf("retry-period is %s: it must be longer than 0", t.RetryPeriod)
	case t.LeaseDuration <= t.RenewDeadline:
		return fmt.Sprintf("renew-deadline is %s: it must be shorter than lease-duration, which is %s, so that the leader "+
			"stops writing "+
			"before another one starts", t.RenewDeadline, t.LeaseDuration)
	case t.RenewDeadline <= jittered:
		return fmt.Sprintf("retry-period is %s: %.1f times that must be shorter than renew-deadline, which is %s, so that "+
			"a renewal that "+
			"failed can be tried again", t.RetryPeriod, leaderelection.JitterFactor, t.RenewDeadline)
	}
	return ""
}
