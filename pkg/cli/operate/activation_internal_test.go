package operate

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// TestActivationNobodyTakesOver: the commands wait no longer than they may, and say who holds the lock by then.
func TestActivationNobodyTakesOver(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		ns := testkit.Namespace(t)
		store := must.Get(leadership.NewLease(testkit.Config(t), ns, "lock", time.Minute)).In(t)
		f := &load.ActivationFile{}
		f.LeaseDuration, f.RenewDeadline = common.Duration(time.Minute), common.Duration(40*time.Second)
		f.RetryPeriod = common.Duration(time.Second)
		lease := func(token string) {
			t.Helper()
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
			testkit.Apply(t, ns, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: lock}, spec: {holderIdentity: another_1, "+
				"leaseDurationSeconds: 60, acquireTime: '2026-01-02T03:04:05.000000Z', leaseTransitions: "+token+", renewTime: '"+now+"'}}")
		}
		fails := func(want string, timeout, waits time.Duration, work func(context.Context, *activationCommand) error) {
			t.Helper()
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			var said strings.Builder
			err := work(ctx, &activationCommand{streams: command.IO{Out: &said, Err: &said}, timeout: timeout})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it fails with %v, want %s", err, want)
			}
			if took := time.Since(begin); took != waits {
				t.Errorf("it takes %s, want %s: %v", took, waits, err)
			}
		}
		handOver := func(ctx context.Context, o *activationCommand) error { return o.handover(ctx, f, store) }
		lease("3")
		fails("no other cluster has become active within 2s: is one running, and can it reach the Lease "+ns+"/lock? "+
			"another has not handed over yet", 2*time.Second, 2*time.Second, handOver)
		fails("within 1m1s: ", time.Hour, 61*time.Second, handOver)
		lease("3")
		fails("Nobody holds the lock now: the first cluster that can takes it, also another if it runs", 2*time.Second, 2*time.Second,
			func(ctx context.Context, o *activationCommand) error { return o.force(ctx, f, store, "another_1") })
		lease("2147483647")
		fails("Lease "+ns+"/lock has the fencing token 2147483647, the greatest possible one", time.Hour, 0, handOver)
	})
}
