//go:build controlplane

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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/shards"
)

var shardsInState = regexp.MustCompile(`(?m)^corollary_shards\{state="([a-z]+)"\} ([0-9]+)$`)

// eventuallyCounts waits until the metrics of processes have these numbers of shards together, by state, and 0 for all other states.
func eventuallyCounts(t *testing.T, addresses []string, want map[string]int) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		got := map[string]int{}
		for _, address := range addresses {
			for _, m := range shardsInState.FindAllStringSubmatch(get(t, "http://"+address+"/metrics"), -1) {
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

// TestFrozenProcessOfASetWritesNothing: processes of sets are frozen in the midst of changes for longer than a lease duration, and go
// on while changes go on. The others have taken their shards, and they write nothing any more.
func TestFrozenProcessOfASetWritesNothing(t *testing.T) {
	t.Parallel()
	const rounds = 3
	var sets [rounds]struct {
		ns             string
		frozen, others *member
		thawed         time.Time
		load           *load
	}
	for i := range sets {
		s := &sets[i]
		s.ns = testkit.Namespace(t)
		s.frozen, s.others = startSharing(t, s.ns, "first", firstElection), startSharing(t, s.ns, "second", firstElection)
	}
	for i := range sets {
		s := &sets[i]
		eventuallyShared(t, s.ns, 2)
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
	ns := testkit.Namespace(t)
	metrics := []string{testkit.FreeAddress(t), testkit.FreeAddress(t)}
	startSharing(t, ns, "first", slices.Concat(firstElection, []string{"--metrics-bind-address", metrics[0]}))
	startSharing(t, ns, "second", slices.Concat(firstElection, []string{"--metrics-bind-address", metrics[1]}))
	eventuallyShared(t, ns, 2)
	eventuallyCounts(t, metrics, map[string]int{"held": 4, "elsewhere": 4})
	release := func(shard string) (out, errs string, code int) {
		return split(t, "shards", "release", shard, "--leader-election-id", "widgets-leader", "-n", ns, "--kubeconfig", testkit.Kubeconfig(t))
	}
	if _, errs, code := release("99"); code == 0 || !strings.Contains(errs, "shard 99 does not exist: give one that corollary shards shows") {
		t.Errorf("shard 99 was released: %s", errs)
	}
	if _, errs, code := release("2"); code == 0 || !strings.Contains(errs, "shard 2 is not in quarantine") {
		t.Errorf("of a shard that is held: exit code %d, %s", code, errs)
	}
	testkit.Update(t, leases, ns, "widgets-leader-shard-2", func(lease *unstructured.Unstructured) {
		lease.SetAnnotations(map[string]string{"widgets-leader/deaths": "3", "widgets-leader/group": "1"})
		lease.Object["spec"] = map[string]any{"holderIdentity": "", "leaseDurationSeconds": int64(1)}
	})
	testkit.Eventually(t, patience, func() (bool, string) {
		lines, errs := shardsTable(t, ns)
		return len(lines) == fourShards && strings.Contains(lines[2], "quarantined"), strings.Join(lines, "") + errs
	})
	eventuallyCounts(t, metrics, map[string]int{"held": 3, "elsewhere": 3, "quarantined": 2})
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

// TestRightsOfShards: what generate rbac prints is enough for processes that join, share, die and leave, and they use all of the rights
// to Leases whose names are not known before.
func TestRightsOfShards(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	configs := []string{"-c", operatorFile, "--set", "widgets:.watch.namespaces=[" + ns + "]", "--set", "widgets:.guard.maxChanged=100%"}
	out, errs, code := split(t, append([]string{"generate", "rbac", "-n", ns, "--name", "sharing", "--leader-election-id", "lead", "--shards",
		"4", "--crds", "testdata/offline/crd.yaml"}, configs...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	granted := map[string]bool{}
	for _, text := range strings.Split(out, "\n---\n")[1:] {
		o := testkit.Apply(t, ns, text)
		rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
		for _, rule := range rules {
			if r := rule.(map[string]any); slices.Contains(r["resources"].([]any), any("leases")) && r["resourceNames"] == nil {
				for _, verb := range r["verbs"].([]any) {
					granted[strings.ToUpper(verb.(string))] = true
				}
			}
		}
	}
	if err := testkit.RightsInForce(t.Context()); err != nil {
		t.Fatal(err)
	}
	user := "system:serviceaccount:" + ns + ":sharing"
	args := append([]string{"run", "--as", user, "-n", ns, "--leader-elect", "--leader-election-id", "lead", "--metrics-bind-address", "0",
		"--health-probe-bind-address", "0"}, configs...)
	sharing := append(append(slices.Clone(args), "--shards", "4"), timings(5*time.Second, 3*time.Second, 500*time.Millisecond)...)
	alone := start(t, testkit.Config(t), append(args, steadyElection...)...)
	eventuallySays(t, alone, `"msg":"Successfully acquired lease"`)
	first := start(t, testkit.Config(t), sharing...) // waits, and watches the Lease
	eventuallySays(t, first, "waiting: a process without --shards holds the Lease")
	alone.interrupt(t)
	second := start(t, testkit.Config(t), sharing...)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	for _, p := range []*process{first, second} {
		eventuallySays(t, p, `"msg":"taking part in the set of shards"`)
	}
	if err := second.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, func() (bool, string) { // it is marked as dead, and its Lease deleted
		used := map[string]bool{}
		for _, r := range testkit.Audit(t, testkit.By(user)) {
			if r.Code == 403 {
				t.Fatalf("it was refused: %+v", r)
			}
			if r.Resource == "leases" && r.Name != "lead" {
				used[r.Verb] = true
			}
		}
		return maps.Equal(used, granted), fmt.Sprintf("of the rights to Leases %v, these are used: %v", granted, used)
	})
	first.interrupt(t)
	if code := first.wait(t); code != 0 {
		t.Errorf("exit code %d after an interrupt, want 0", code)
	}
}
