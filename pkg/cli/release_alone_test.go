package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// led is a namespace in which an operator leads and holds a Widget by its finalizer.
func led(t *testing.T) (ns string, leader *process) {
	t.Helper()
	ns = testkit.Namespace(t)
	leader = startRun(t, testkit.Config(t), ns, slices.Concat(steadyElection, []string{"--leader-elect", "--leader-election-id", "operator",
		"-n", ns, "--set", "widgets:.deletion.wait=true"})...)
	testkit.Apply(t, ns, blueWidget)
	testkit.Eventually(t, patience, func() (bool, string) { return finalizersOf(t, ns, "one") == 1, "there is no finalizer" })
	return ns, leader
}

func releaseIn(ns string, args ...string) []string {
	return append([]string{"release", "-c", operatorFile, "-n", ns, "--leader-election-id", "operator", "--leader-election-namespace", ns},
		args...)
}

// TestReleaseStopsWaiting: Ctrl-C ends the wait for a Lease.
func TestReleaseStopsWaiting(t *testing.T) {
	t.Parallel()
	memory(t)
	ns, leader := led(t)
	r := startWriting(t, testkit.Config(t), releaseIn(ns)...)
	eventuallySays(t, r, "waiting until ")
	r.interrupt(t)
	if code := r.wait(t); code != 1 || !strings.Contains(r.text(t), "waiting for Lease") {
		t.Errorf("exit code %d\n%s", code, r.text(t))
	}
	if n := finalizersOf(t, ns, "one"); n != 1 {
		t.Errorf("it has %d finalizers", n)
	}
	leader.interrupt(t)
	leader.wait(t)
	testkit.Patch(t, widgets, ns, "one", "test", `{"metadata": {"finalizers": null}}`)
}
