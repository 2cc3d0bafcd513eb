//go:build controlplane

package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// previousVersion is the last commit before writes were held to the Lease. Its leader election is client-go's alone.
const previousVersion = "b92b9128f1c42fbbac90f5f9e88f3c498978f599"

// buildPrevious builds the binary of the previous version and returns its path.
func buildPrevious(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "source"), filepath.Join(dir, "corollary")
	shell := func(command string) error {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := shell("mkdir " + source + " && cd ../.. && git archive -o " + source + ".tar " + previousVersion + " && tar -xf " + source +
		".tar -C " + source); err != nil {
		t.Logf("the checkout does not have the previous version, so that this is an upgrade from the present one: %v", err)
		source = "../.."
	}
	if err := shell("cd " + source +
		" && GOWORK=off GOFLAGS=-mod=readonly go build -buildvcs=false -ldflags '-s -w -X " +
		"github.com/corollary-dev/corollary/pkg/cli.Version=previous' -o " + binary + " ./cmd/corollary"); err != nil {
		t.Fatal(err)
	}
	return binary
}

// startReplica starts one replica of a Deployment and waits until it is ready, as a Deployment does.
func startReplica(t *testing.T, binary, ns, name string, election ...string) *member {
	t.Helper()
	user, health := name+"-of-"+ns, testkit.FreeAddress(t)
	m := &member{user: user, process: startBinary(t, binary, testkit.Config(t), false,
		append([]string{"run", "-c", operatorFile, "--set", "widgets:.watch.namespaces=[" + ns + "]",
			"--metrics-bind-address", "0", "--health-probe-bind-address", health, "--as", user, "--as-group", "system:masters",
			"-n", ns, "--leader-elect", "--leader-election-id", "widgets-leader"}, election...)...)}
	eventuallyAnswers(t, health+"/readyz", http.StatusOK)
	return m
}

// TestRollingUpgrade from the previous version, while upstreams are made and changed and a rival writes over downstreams:
// nothing is lost, nothing is done twice, what rests is left alone, and nothing waits for longer than a moment.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	self := must(os.Executable())(t)
	binary, ns := buildPrevious(t), testkit.Namespace(t)
	old := []*member{startReplica(t, binary, ns, "old-1")}
	eventuallyLeads(t, old[0])
	old = append(old, startReplica(t, binary, ns, "old-2"))
	for i := range resting {
		for _, name := range []string{"resting", "harmed"} {
			testkit.Apply(t, ns, fmt.Sprintf("{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: %s-%d}, spec: {color: gray}}", name,
				i))
		}
	}
	eventuallySettled(t, ns)
	begin := time.Now()
	traffic, holders := startTraffic(t, ns), followHolders(t, ns)
	traffic.goesOn(t)
	var fresh []*member
	for i, m := range old { // as a Deployment does it: one more than wanted at a time, one by one
		fresh = append(fresh, startReplica(t, self, ns, fmt.Sprintf("new-%d", i+1), steadyElection...))
		traffic.goesOn(t)
		m.signal(t, syscall.SIGTERM)
		if code := m.wait(t); code != 0 {
			t.Errorf("%s: exit code %d", m.user, code)
		}
		traffic.goesOn(t)
	}
	traffic.stop()
	allMatch(t, ns)
	eventuallySettled(t, ns)
	traffic.check(t)
	holders.check(t, holderOf(t, ns))
	oneByOne(t, append(old, fresh...), begin)
}

// oneByOne checks that no two of the members wrote in the same time, that none wrote what rests, and that each ConfigMap
// was created once.
func oneByOne(t *testing.T, members []*member, begin time.Time) {
	t.Helper()
	var ended time.Time
	var who string
	created := map[string]int{}
	for _, m := range members {
		written := slices.DeleteFunc(m.wrote(t, begin), func(r testkit.Request) bool { return r.Resource == "events" })
		t.Logf("%s made %d writes", m.user, len(written))
		for _, r := range written {
			if strings.HasPrefix(r.Name, "resting") {
				t.Errorf("%s wrote what rests: %+v", m.user, r)
			}
			if r.Resource == "configmaps" && r.Code == http.StatusCreated {
				created[r.Name]++
			}
		}
		if len(written) == 0 {
			continue
		}
		slices.SortFunc(written, func(a, b testkit.Request) int { return a.Received.Compare(b.Received) })
		if first := written[0].Received; first.Before(ended) {
			t.Errorf("%s wrote %s before %s wrote for the last time", m.user, ended.Sub(first), who)
		}
		ended, who = written[len(written)-1].Received, m.user
	}
	for name, n := range created {
		if n != 1 {
			t.Errorf("%s was created %d times", name, n)
		}
	}
}

// eventuallySettled waits until the status of every Widget says that it is ready as it is now.
func eventuallySettled(t *testing.T, ns string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		for _, w := range testkit.List(t, widgets, ns, "") {
			conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions")
			if len(conditions) == 0 {
				return false, w.GetName() + " has no conditions"
			}
			if c := conditions[0].(map[string]any); c["observedGeneration"] != w.GetGeneration() || c["status"] != "True" {
				return false, fmt.Sprintf("%s: %v", w.GetName(), c)
			}
		}
		return true, ""
	})
}
