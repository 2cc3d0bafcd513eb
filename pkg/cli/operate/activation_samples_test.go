package operate

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/activation"
)

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
