package cli_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

const fourShards = 4

// startSharing starts a process that shares four shards with the others of the namespace.
func startSharing(t *testing.T, ns, name string, args []string) *member {
	t.Helper()
	return startMember(t, testkit.Config(t), ns, name, append([]string{"--shards", strconv.Itoa(fourShards)}, args...)...)
}

// shardsTable is what `corollary shards` prints: a line for each shard.
func shardsTable(t *testing.T, ns string) (lines []string, errs string) {
	t.Helper()
	out, errs, _ := split(t, "shards", "--leader-election-id", "widgets-leader", "-n", ns, "--kubeconfig", testkit.Kubeconfig(t))
	for line := range strings.Lines(out) {
		if line[0] >= '0' && line[0] <= '9' && len(lines) < fourShards {
			lines = append(lines, line)
		}
	}
	return lines, errs
}

// eventuallyShared waits until as many processes hold all shards, and all are loaded.
func eventuallyShared(t *testing.T, ns string, processes int) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		lines, errs := shardsTable(t, ns)
		holders := map[string]bool{}
		for _, line := range lines {
			if fields := strings.Fields(line); fields[1] == "held" {
				holders[fields[2]] = true
				continue
			}
			return false, line
		}
		return len(lines) == fourShards && len(holders) == processes, strings.Join(lines, "") + errs
	})
}

// TestShardsBesideALeader: processes with and without --shards wait for each other, and say for whom.
func TestShardsBesideALeader(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	sharing := startSharing(t, ns, "first", firstElection)
	eventuallyShared(t, ns, 1)
	alone := startMember(t, testkit.Config(t), ns, "second", firstElection...)
	eventuallySays(t, alone.process, `"msg":"waiting: processes with --shards hold the Lease","lease":"`+ns+`/widgets-leader","shards":4`)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	if written := alone.wrote(t, time.Time{}); len(written) > 0 {
		t.Errorf("it writes beside a set: %+v", written[0])
	}
	sharing.interrupt(t)
	if code := sharing.wait(t); code != 0 {
		t.Errorf("exit code %d after an interrupt, want 0", code)
	}
	eventuallyLeads(t, alone)

	sharing = startSharing(t, ns, "third", firstElection)
	eventuallySays(t, sharing.process, `"msg":"waiting: a process without --shards holds the Lease","lease":"`+ns+`/widgets-leader"`)
	if _, errs := shardsTable(t, ns); !strings.Contains(errs, "a process without --shards, holds Lease "+ns+"/widgets-leader") {
		t.Errorf("corollary shards says: %s", errs)
	}
	alone.interrupt(t)
	eventuallyShared(t, ns, 1)
	testkit.Apply(t, ns, strings.ReplaceAll(blueWidget, "blue", "red"))
	eventuallyColor(t, ns, "red")
}
