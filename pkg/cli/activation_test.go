package cli_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
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
	testkit.Eventually(t, patience, func() (bool, string) { return a.Active(), "it is not active" })
}

// holderToConfirm returns which process holds the lock, by what activation force wants confirmed.
func holderToConfirm(t *testing.T, dir string) string {
	t.Helper()
	_, errs, code := split(t, "activation", "force", "-c", dir)
	_, rest, asked := strings.Cut(errs, "confirm with --holder ")
	if code != 1 || !asked {
		t.Fatalf("taking away without a confirmation: %d %s", code, errs)
	}
	return strings.TrimRight(strings.Fields(rest)[0], ".;:,")
}

// probes checks what the measured lock looks like.
func probes(t *testing.T, dir, rounds string, wanted int, texts ...string) {
	t.Helper()
	out, errs, code := split(t, "activation", "probe", "-c", dir, "--rounds", rounds, "--timeout", "1h")
	for _, text := range texts {
		if code != wanted || !strings.Contains(out+errs, text) {
			t.Errorf("it exits with %d and prints %s%s, want %q", code, out, errs, text)
		}
	}
}

// TestActivationProbe: times that do not fit make the command fail, and a lock that does not exist yet is measured, too.
func TestActivationProbe(t *testing.T) {
	t.Parallel()
	dir := activationFile(t, memory(t), "leaseDuration: 2h\nrenewDeadline: 1h\nretryPeriod: 49m\n")
	probes(t, dir, "1", 1, "Writes       1: median ", "Problem      no renewal may fail: renewDeadline 1h0m0s leaves ",
		"Error: the times of activation global do not fit the lock")
}

// TestActivationCommands: who is active, handing over, and taking the lock away.
func TestActivationCommands(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	dir := activationFile(t, ns, "leaseDuration: 1h\nrenewDeadline: 40m\nretryPeriod: 500ms\n")
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
	probes(t, dir, "2", 0, "Writes       2: median ", " that of the lock's service, within ", " renewals in a row may fail")
	shows("global       eu       20")
	us, _ := takePart(t, dir, "us", logr.Discard())
	out, errs, code := split(t, "activation", "handover", "-c", dir, "--timeout", "1h")
	if code != 0 || out != "us is active now, with token 1\n" {
		t.Errorf("handing over: %d %s%s", code, out, errs)
	}
	eventuallyActive(t, us)

	holder := holderToConfirm(t, dir)
	_, errs, code = split(t, "activation", "force", "-c", dir, "--holder", "eu_1")
	if code != 1 || !strings.Contains(errs, holder+" holds the lock, not eu_1") {
		t.Errorf("taking away from the wrong process: %d %s", code, errs)
	}
	if !us.Active() || eu.Active() {
		t.Error("the lock was taken away without a confirmation")
	}
	stopEU()
	before := us.Token()
	out, errs, code = split(t, "activation", "force", "-c", dir, "--timeout", "15s", "--holder", holder)
	if code != 1 && !strings.Contains(out, "is active now") {
		t.Errorf("taking away: %d %s%s", code, out, errs)
	}
	testkit.Eventually(t, patience, func() (bool, string) {
		return us.Active() && us.Token() > before, "nobody takes what was taken away"
	})
}
