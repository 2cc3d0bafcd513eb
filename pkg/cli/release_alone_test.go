package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	ns, _ := led(t)
	r := startWriting(t, testkit.Config(t), releaseIn(ns)...)
	eventuallySays(t, r, "waiting until ")
	r.interrupt(t)
	if code := r.wait(t); code != 1 || !strings.Contains(r.text(t), "waiting for Lease") {
		t.Errorf("exit code %d\n%s", code, r.text(t))
	}
	if n := finalizersOf(t, ns, "one"); n != 1 {
		t.Errorf("it has %d finalizers", n)
	}
}

const finalizedWidget = `{apiVersion: tools.example.com/v1, kind: Widget,
  metadata: {name: %s, finalizers: [tools.example.com/cleanup, tools.example.com/other]}, spec: {color: blue}}`

// TestReleaseRemovesFinalizers: with a config whose rules and templates are broken. Other finalizers stay.
func TestReleaseRemovesFinalizers(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	for i := range 3 {
		testkit.Apply(t, ns, fmt.Sprintf(finalizedWidget, fmt.Sprintf("w%d", i)))
	}
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: bare}}")
	code, out := run(t, "release", "-c", "testdata/errors/broken.yaml", "-n", ns, "--dry-run")
	if code != 0 || !strings.Contains(out, "3 upstreams would be released") {
		t.Errorf("dry run: exit code %d\n%s", code, out)
	}
	if n := finalizersOf(t, ns, "w0"); n != 2 {
		t.Errorf("a dry run left %d finalizers, want 2", n)
	}
	code, out = run(t, "release", "-c", "testdata/errors/broken.yaml", "-n", ns)
	if code != 0 || !strings.Contains(out, "3 upstreams released") ||
		!strings.Contains(out, "widgets.tools.example.com "+ns+"/w1: finalizer tools.example.com/cleanup removed") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for i := range 3 {
		if n := finalizersOf(t, ns, fmt.Sprintf("w%d", i)); n != 1 {
			t.Errorf("w%d has %d finalizers, want the other one only", i, n)
		}
	}
}

// TestReleaseHoldsTheLease: without --scale-down a process that comes meanwhile waits as a standby until release has let go.
func TestReleaseHoldsTheLease(t *testing.T) {
	t.Parallel()
	memory(t)
	ns, leader := led(t)
	r := startWriting(t, testkit.Config(t), releaseIn(ns)...)
	eventuallySays(t, r, "waiting until ")
	leader.interrupt(t)
	for r.wait(t) != 0 && strings.Contains(r.text(t), "was lost") { // on a machine that is too busy to renew the Lease within 10 s
		r = startWriting(t, testkit.Config(t), releaseIn(ns)...)
	}
	if code := r.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, r.text(t))
	}
	lease := testkit.Get(t, leases, ns, "operator")
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if n, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseTransitions"); holder != "" || n < 1 {
		t.Errorf("it was not taken and let go of: %v", lease.Object["spec"])
	}
}
