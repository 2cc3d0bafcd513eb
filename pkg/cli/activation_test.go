package cli_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/activation"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// activationFile writes an activation whose lock is a Lease of the test's namespace.
func activationFile(t *testing.T, ns, times string) string {
	t.Helper()
	return activationFileFor(t, testkit.Config(t), ns, times)
}

// activationFileFor is activationFile for a user.
func activationFileFor(t *testing.T, cfg *rest.Config, ns, times string) string {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf("apiVersion: corollary.dev/v1alpha1\nkind: Activation\nmetadata: {name: global}\n"+
		"lease: {namespace: %s, name: lock, kubeconfig: %s}\n%s", ns, testkit.KubeconfigFor(t, cfg), times)
	write(t, filepath.Join(dir, "activation.yaml"), text)
	return dir
}

// takePart takes part as a cluster until the test ends, or stop is called.
func takePart(t *testing.T, dir, identity string, log logr.Logger) (a *activation.Activation, stop func()) {
	t.Helper()
	files, errs := load.Activations(load.Options{Files: []string{dir}, Identity: identity}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	a = must(activation.New(files[0], log))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	may := make(chan struct{})
	close(may)
	wg.Go(func() {
		if err := a.Run(ctx, may, func(ctx context.Context) error { <-ctx.Done(); return nil }); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return a, stop
}

func eventuallyActive(t *testing.T, a *activation.Activation) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) { return a.Active(), a.Self() + " is not active" })
}

// probes checks what the measured lock looks like.
func probes(t *testing.T, dir string, wanted int, texts ...string) {
	t.Helper()
	out, errs, code := split(t, "activation", "probe", "-c", dir, "--rounds", "3")
	for _, text := range texts {
		if code != wanted || !strings.Contains(out+errs, text) {
			t.Errorf("it exits with %d and prints %s%s, want %q", code, out, errs, text)
		}
	}
}

// TestActivationProbe: times that do not fit make the command fail, and a lock that does not exist yet is measured, too.
func TestActivationProbe(t *testing.T) {
	t.Parallel()
	dir := activationFile(t, memory(t), "leaseDuration: 2s\nrenewDeadline: 1s\nretryPeriod: 800ms\n")
	probes(t, dir, 1, "Writes       3: median ", "Problem      no renewal may fail: renewDeadline 1s leaves ",
		"Error: the times of activation global do not fit the lock")
}

// TestActivationCommands: who is active, handing over, and taking the lock away.
func TestActivationCommands(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	dir := activationFile(t, ns, "leaseDuration: 60s\nrenewDeadline: 40s\nretryPeriod: 500ms\n")
	shows := func(want string) {
		t.Helper()
		if out, errs, code := split(t, "activation", "-c", dir); code != 0 || !strings.Contains(out, want) {
			t.Errorf("it shows %s%s, want %q", out, errs, want)
		}
	}
	shows("global       none     -       -       -         Lease " + ns + "/lock")
	if _, errs, code := split(t, "activation", "handover", "-c", dir); code != 1 || !strings.Contains(errs, "no cluster is active") {
		t.Errorf("nobody to hand over: %d %s", code, errs)
	}
	eu, stopEU := takePart(t, dir, "eu", logr.Discard())
	eventuallyActive(t, eu)
	shows("global       eu       20")
	probes(t, dir, 0, "Writes       3: median ", " that of the lock's service, within ", " renewals in a row may fail")
	shows("global       eu       20")
	us, _ := takePart(t, dir, "us", logr.Discard())
	if out, errs, code := split(t, "activation", "handover", "-c", dir); code != 0 || out != "us is active now, with token 1\n" {
		t.Errorf("handing over: %d %s%s", code, out, errs)
	}
	eventuallyActive(t, us)

	_, errs, code := split(t, "activation", "force", "-c", dir)
	if code != 1 || !strings.Contains(errs, "confirm with --holder "+us.Self()) {
		t.Errorf("taking away without a confirmation: %d %s", code, errs)
	}
	_, errs, code = split(t, "activation", "force", "-c", dir, "--holder", eu.Self())
	if code != 1 || !strings.Contains(errs, us.Self()+" holds the lock, not "+eu.Self()) {
		t.Errorf("taking away from the wrong process: %d %s", code, errs)
	}
	if !us.Active() || eu.Active() {
		t.Error("the lock was taken away without a confirmation")
	}
	stopEU()
	before := us.Token()
	out, errs, code := split(t, "activation", "force", "-c", dir, "--timeout", "5s", "--holder", us.Self())
	if code != 1 && !strings.Contains(out, "is active now") {
		t.Errorf("taking away: %d %s%s", code, out, errs)
	}
	testkit.Eventually(t, patience, func() (bool, string) {
		return us.Active() && us.Token() > before, "nobody takes what was taken away"
	})
}

// TestSameIdentity: of two clusters with one identity one is active, and the other says what is wrong.
func TestSameIdentity(t *testing.T) {
	t.Parallel()
	dir := activationFile(t, memory(t), "leaseDuration: 10s\nrenewDeadline: 8s\nretryPeriod: 100ms\n")
	first, _ := takePart(t, dir, "eu", logr.Discard())
	eventuallyActive(t, first)
	lines := make(chan string, 100)
	log := funcr.New(func(_, args string) {
		select {
		case lines <- args:
		default:
		}
	}, funcr.Options{})
	second, _ := takePart(t, dir, "eu", log)
	for found := false; !found; {
		select {
		case line := <-lines:
			found = strings.Contains(line, "another process with this identity is active")
		case <-time.After(patience):
			t.Fatal("it does not say that another process has its identity")
		}
	}
	if second.Active() || !first.Active() {
		t.Error("the second one is active, too")
	}
}

// TestActivationNobodyTakesOver: the commands wait no longer than they may, and say who holds the lock by then.
func TestActivationNobodyTakesOver(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	dir := activationFile(t, ns, "leaseDuration: 60s\nrenewDeadline: 40s\nretryPeriod: 500ms\n")
	lease := func(spec string) {
		t.Helper()
		now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
		testkit.Apply(t, ns, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: lock}, spec: {"+spec+
			", leaseDurationSeconds: 60, acquireTime: '2026-01-02T03:04:05.000000Z', renewTime: '"+now+"'}}")
	}
	fails := func(want string, command ...string) {
		t.Helper()
		begin := time.Now()
		_, errs, code := split(t, append([]string{"activation", command[0], "-c", dir, "--timeout", "2s"}, command[1:]...)...)
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%v: it exits with %d and prints %s, want %s", command, code, errs, want)
		}
		if took := time.Since(begin); took > 30*time.Second { // and not the 60s of the lock
			t.Errorf("%v: it takes %s", command, took)
		}
	}
	lease("holderIdentity: stranger_1, leaseTransitions: 3")
	fails("no other cluster has become active within 2s: is one running, and can it reach the Lease "+ns+"/lock? "+
		"stranger has not handed over yet", "handover")
	fails("Nobody holds the lock now: the first cluster that can takes it, also stranger if it runs", "force", "--holder", "stranger_1")
	lease("holderIdentity: stranger_1, leaseTransitions: 2147483647")
	fails("Lease "+ns+"/lock has the fencing token 2147483647, the greatest possible one", "handover")
}
