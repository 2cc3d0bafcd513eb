package operate

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/activation"
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

// TestSamplesOfActivations: the page shows what the commands print of such a lock.
func TestSamplesOfActivations(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/activation.md")).In(t)
	shows := func(command, printed string) {
		t.Helper()
		if block := "```text\n$ " + command + "\n" + printed + "```\n"; !strings.Contains(string(page), block) {
			t.Errorf("docs/activation.md does not have this block:\n%s", block)
		}
	}
	const lock, identity = "Lease locks/appoperator", "cluster-eu-1"
	ms := func(list ...float64) (all activation.Latencies) {
		for _, d := range list {
			all = append(all, time.Duration(d*float64(time.Millisecond)))
		}
		return all
	}
	var out bytes.Buffer
	must.Do(t, writeProbed(&out, "global", lock, &activation.Probed{
		Reads:  ms(1.8, 1.9, 2.0, 2.0, 2.1, 2.1, 2.2, 2.3, 2.4, 4.3),
		Writes: ms(3.0, 3.1, 3.2, 3.3, 3.4, 3.4, 3.5, 3.6, 3.9, 6.8),
		Clocks: []activation.Clock{{Of: "the lock's service", Ahead: 312 * time.Millisecond, Within: 1002 * time.Millisecond},
			{Of: identity, Ahead: -6 * time.Millisecond, Within: 508 * time.Millisecond}},
		Margin: 10*time.Second - 1200*2*time.Millisecond - 6800*time.Microsecond, Retries: 3}))
	shows("corollary activation probe -c configs/", out.String())

	out.Reset()
	w, now := newStates(&out), time.Now()
	writeState(w, "global", lock, &activation.State{Holder: identity + "_5f0c", Identity: identity, Token: 7, LeaseDuration: 15 * time.Second,
		Since: time.Date(2026, 11, 24, 8, 12, 3, 0, time.UTC), Renewed: now.Add(-time.Second)}, now)
	must.Do(t, w.Flush())
	shows("corollary activation -c configs/", out.String())
}
