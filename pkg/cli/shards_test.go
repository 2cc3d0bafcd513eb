package cli_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/shards"
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

// shared reports whether as many processes hold all shards, and all are loaded.
func shared(t *testing.T, ns string, processes int) (bool, string) {
	t.Helper()
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
}

// eventuallyShared waits until it is so.
func eventuallyShared(t *testing.T, ns string, processes int) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) { return shared(t, ns, processes) })
}

// TestShardsBesideALeader: processes with and without --shards wait for each other, and say for whom.
func TestShardsBesideALeader(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	election := timings(time.Minute, 50*time.Second, 500*time.Millisecond) // it runs out if it cannot be given back
	sharing := startSharing(t, ns, "first", election)
	eventuallyShared(t, ns, 1)
	alone := startMember(t, testkit.Config(t), ns, "second", election...)
	eventuallySays(t, alone.process, `"msg":"waiting: processes with --shards hold the Lease","lease":"`+ns+`/widgets-leader","shards":4`)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	if written := alone.wrote(t, time.Time{}); len(written) > 0 {
		t.Errorf("it writes beside a set: %+v", written[0])
	}
	sharing.stop(t)
	eventuallyLeads(t, alone)

	sharing = startSharing(t, ns, "third", election)
	eventuallySays(t, sharing.process, `"msg":"waiting: a process without --shards holds the Lease","lease":"`+ns+`/widgets-leader"`)
	if _, errs := shardsTable(t, ns); !strings.Contains(errs, "a process without --shards, holds Lease "+ns+"/widgets-leader") {
		t.Errorf("corollary shards says: %s", errs)
	}
	alone.interrupt(t)
	eventuallyShared(t, ns, 1)
	testkit.Apply(t, ns, strings.ReplaceAll(blueWidget, "blue", "red"))
	eventuallyColor(t, ns, "red")
}

var shardsInState = regexp.MustCompile(`(?m)^corollary_shards\{state="([a-z]+)"\} ([0-9]+)$`)

// eventuallyCounts waits until the metrics of processes have these numbers of shards together, by state, and 0 for all
// other states.
func eventuallyCounts(t *testing.T, addresses []string, want map[string]int) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		got := map[string]int{}
		for _, address := range addresses {
			_, text := answer(t, "http://"+address+"/metrics")
			for _, m := range shardsInState.FindAllStringSubmatch(text, -1) {
				if n, _ := strconv.Atoi(m[2]); n > 0 {
					got[m[1]] += n
				}
			}
		}
		return maps.Equal(got, want), fmt.Sprintf("the metrics count %v, want %v", got, want)
	})
}

// eventuallyCopied waits until each of the widgets that startLoad and burst name has its ConfigMap.
func eventuallyCopied(t *testing.T, ns string, names ...string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		for _, name := range names {
			if testkit.Find(t, configMaps, ns, name) == nil {
				return false, name + " has no ConfigMap"
			}
		}
		return true, ""
	})
}

// TestFrozenProcessOfASetWritesNothing: processes of sets are frozen in the midst of changes for longer than a lease
// duration, and go on while changes go on. The others have taken their shards, and they write nothing any more.
func TestFrozenProcessOfASetWritesNothing(t *testing.T) {
	t.Parallel()
	memory(t)
	const rounds = 3
	election := timings(12*time.Second, 9*time.Second, 500*time.Millisecond) // its end is waited for
	var sets [rounds]struct {
		ns     string
		frozen *member
		thawed time.Time
		load   *writes
	}
	for i := range sets {
		sets[i].ns = testkit.Namespace(t)
		startSharing(t, sets[i].ns, "first", steadyElection)
	}
	for i := range sets {
		s := &sets[i]
		eventuallyShared(t, s.ns, 1) // one that comes before the Leases of the shards doubts for a lease duration that they are free
		s.frozen = startSharing(t, s.ns, "second", election)
	}
	for i := range sets {
		s := &sets[i]
		testkit.Eventually(t, patience, func() (bool, string) {
			if s.frozen.hasEnded() { // on a machine that is too busy it does not renew its Lease in time
				s.frozen = startSharing(t, s.ns, "second", election)
			}
			return shared(t, s.ns, 2)
		})
		s.load = startLoad(t, s.ns, 100*time.Millisecond)
		burst(t, s.ns)
		s.frozen.signal(t, syscall.SIGSTOP)
	}
	for i := range sets {
		eventuallyShared(t, sets[i].ns, 1) // after a lease duration
	}
	for i := range sets {
		sets[i].thawed = time.Now()
		sets[i].frozen.signal(t, syscall.SIGCONT)
	}
	for i := range sets {
		s := &sets[i]
		if code := s.frozen.wait(t); code != 1 {
			t.Errorf("round %d: a process that lost its Lease ends with exit code %d, want 1", i, code)
		}
		if text := s.frozen.text(t); !strings.Contains(text, "Error: running: the Lease "+s.ns+"/widgets-leader") ||
			strings.Contains(text, "goroutine ") {
			t.Errorf("round %d: it does not say what happened, or panics:\n%s", i, text)
		}
		testkit.Apply(t, s.ns, blueWidget)
		eventuallyColor(t, s.ns, "blue")
		s.load.stop()
	}
	for _, r := range testkit.Audit(t, testkit.Request.Mutating) {
		for i := range sets {
			shared := r.Resource == "leases" && r.Name == "widgets-leader" // all processes of the set renew it
			refused := r.Resource == "leases" && r.Code >= 300
			if r.User == sets[i].frozen.user && r.Received.After(sets[i].thawed) && !shared && !refused {
				t.Errorf("round %d: it wrote after it went on: %+v", i, r)
			}
		}
	}
}

// TestReleaseShardOfRunningProcesses: a shard in quarantine is nobody's, and is taken again once it is released.
func TestReleaseShardOfRunningProcesses(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	metrics := []string{testkit.FreeAddress(t), testkit.FreeAddress(t)}
	testkit.Apply(t, ns, `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: widgets-leader-shard-2,
  labels: {widgets-leader/shards: "4"}, annotations: {widgets-leader/deaths: "3", widgets-leader/group: "1"}},
  spec: {holderIdentity: "", leaseDurationSeconds: 1}}`)
	startSharing(t, ns, "first", slices.Concat(steadyElection, []string{"--metrics-bind-address", metrics[0]}))
	eventuallyCounts(t, metrics[:1], map[string]int{"held": 3, "quarantined": 1})
	startSharing(t, ns, "second", slices.Concat(steadyElection, []string{"--metrics-bind-address", metrics[1]}))
	testkit.Eventually(t, patience, func() (bool, string) {
		lines, errs := shardsTable(t, ns)
		return len(lines) == fourShards && strings.Contains(lines[2], "quarantined"), strings.Join(lines, "") + errs
	})
	eventuallyCounts(t, metrics, map[string]int{"held": 3, "elsewhere": 3, "quarantined": 2})
	release := func(shard string) (out, errs string, code int) {
		return split(t, "shards", "release", shard, "--leader-election-id", "widgets-leader", "-n", ns, "--kubeconfig", testkit.Kubeconfig(t))
	}
	if _, errs, code := release("99"); code == 0 || !strings.Contains(errs, "shard 99 does not exist: give one that corollary shards shows") {
		t.Errorf("shard 99 was released: %s", errs)
	}
	if _, errs, code := release("1"); code == 0 || !strings.Contains(errs, "shard 1 is not in quarantine") {
		t.Errorf("of a shard that is held: exit code %d, %s", code, errs)
	}
	burst(t, ns)
	var inQuarantine, others []string
	for _, w := range testkit.List(t, widgets, ns, "") {
		if (shards.Ring{N: fourShards}).Of(string(w.GetUID())) == 2 {
			inQuarantine = append(inQuarantine, w.GetName())
		} else {
			others = append(others, w.GetName())
		}
	}
	eventuallyCopied(t, ns, others...)
	for _, name := range inQuarantine {
		if testkit.Find(t, configMaps, ns, name) != nil {
			t.Errorf("%s is in a shard in quarantine, and somebody acted for it", name)
		}
	}
	if out, errs, code := release("2"); code != 0 || out != "shard 2 is released: a process takes it; 3 processes had died\n" {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	eventuallyShared(t, ns, 2)
	eventuallyCounts(t, metrics, map[string]int{"held": 4, "elsewhere": 4})
	eventuallyCopied(t, ns, inQuarantine...)
}
