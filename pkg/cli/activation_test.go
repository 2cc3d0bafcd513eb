package cli_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/clusters"
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

// TestActivationProbe: times that do not fit make the command fail, and a lock that does not exist yet is measured,
// too.
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

// following is an operator that follows an activation of its own, and how the process reaches its lock.
type following struct {
	name, ns, times string
	proxy           *clusters.Proxy
}

// behindProxy is the API server as it is reached by a proxy.
func behindProxy(t *testing.T) (*rest.Config, *clusters.Proxy) {
	t.Helper()
	at := must(url.Parse(testkit.Config(t).Host))(t)
	proxy := must(clusters.NewProxy(at.Host))(t)
	t.Cleanup(func() { _ = proxy.Close() })
	cfg := rest.CopyConfig(testkit.Config(t))
	cfg.Host = "http://" + proxy.Addr()
	return cfg, proxy
}

// write writes the operator and its activation into the directory of a process.
func (f *following) write(t *testing.T, dir string) {
	t.Helper()
	operator := read(t, operatorFile)
	text := strings.NewReplacer("name: widgets\n", "name: "+f.name+"\nactivation: "+f.name+"\n", "kind: Widget\n",
		"kind: Widget\n  namespaces: ["+f.ns+"]\n", "fieldManager: widgets", "fieldManager: "+f.name, "managed-by: widgets",
		"managed-by: "+f.name,
		"example.com/cleanup", "example.com/"+f.name).Replace(operator)
	cfg, proxy := behindProxy(t)
	f.proxy = proxy
	lock := read(t, filepath.Join(activationFileFor(t, cfg, f.ns, f.times), "activation.yaml"))
	named := strings.Replace(lock, "{name: global}", "{name: "+f.name+"}", 1)
	for file, text := range map[string]string{f.name + ".yaml": text, f.name + "-lock.yaml": named} {
		write(t, filepath.Join(dir, file), text)
	}
}

// TestTwoActivations: two operators in one process follow two activations with other times. Losing one stops its
// operator alone, in its own time; the other one goes on with the token that it has.
func TestTwoActivations(t *testing.T) {
	t.Parallel()
	memory(t)
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		t.Run(names[0]+" is lost", func(t *testing.T) {
			t.Parallel()
			lost := &following{name: names[0], ns: testkit.Namespace(t), times: "leaseDuration: 16s\nrenewDeadline: 3s\nretryPeriod: 1s\n"}
			kept := &following{name: names[1], ns: testkit.Namespace(t), times: "leaseDuration: 2h\nrenewDeadline: 1h\nretryPeriod: 1s\n"}
			dir, user := t.TempDir(), "eu-of-"+lost.ns
			for _, f := range []*following{lost, kept} {
				f.write(t, dir)
			}
			start(t, testkit.Config(t), "run", "-c", dir, "--as", user, "--as-group", "system:masters", "--activation-identity", "eu",
				"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--reload-interval", "0")
			n := 0
			change := func(f *following) (color string) {
				t.Helper()
				n++
				color = fmt.Sprintf("c%d", n)
				testkit.Apply(t, f.ns, strings.Replace(blueWidget, "blue", color, 1))
				return color
			}
			writes := func(f *following) { // waits until the operator does what is new
				t.Helper()
				eventuallyColor(t, f.ns, change(f))
			}
			writes(lost)
			writes(kept)
			other, give := takePart(t, activationFile(t, lost.ns, lost.times), "us", logr.Discard())
			tokens := holderAndToken(t, kept.ns)
			lost.proxy.Drop()
			testkit.Eventually(t, patience, func() (bool, string) { // both have something to do all the while
				change(lost)
				writes(kept)
				return other.Active(), "nobody takes over"
			})
			taken := time.Now()
			change(lost)
			writes(kept)
			if now := holderAndToken(t, kept.ns); now != tokens {
				t.Errorf("%s is lost, and %s changes from %s to %s", lost.name, kept.name, tokens, now)
			}
			for _, r := range testkit.Audit(t, testkit.By(user), testkit.Request.Mutating) {
				if r.Namespace == lost.ns && r.Received.After(taken) {
					t.Errorf("another cluster is active, and this came %s later: %+v", r.Received.Sub(taken), r)
				}
			}
			lost.proxy.Pass()
			give()
			writes(lost)
			writes(kept)
		})
	}
}

// TestActivationExit: with onLost: Exit the process ends when the lock is taken away or handed over, says why, and has
// written nothing since. Its metrics say that it is active. The identity comes from the environment.
func TestActivationExit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command, ends string
		force         bool
	}{
		{"handover", "Error: running: activation global: the lock was handed over", false},
		{"force", "before the renew deadline had passed; nothing was written after that was seen", true},
	} {
		t.Run(test.command, func(t *testing.T) {
			t.Parallel()
			ns := memory(t)
			times := "leaseDuration: 1h\nrenewDeadline: 40m\nretryPeriod: 500ms\nonLost: Exit\n"
			dir, user, metrics := activationFile(t, ns, times), "eu-of-"+ns, testkit.FreeAddress(t)
			self := must(os.Executable())(t)
			p := startBinary(t, "env", testkit.Config(t), false, "COROLLARY_ACTIVATION_IDENTITY=eu", self,
				"run", "-c", operatorFile, "-c", filepath.Join(dir, "activation.yaml"),
				"--set", "widgets:.watch.namespaces=["+ns+"]", "--as", user, "--as-group", "system:masters", "--metrics-bind-address", metrics,
				"--health-probe-bind-address", "0")
			testkit.Apply(t, ns, blueWidget)
			eventuallyColor(t, ns, "blue")
			_, text := answer(t, "http://"+metrics+"/metrics")
			for _, want := range []string{"\ncorollary_activation_active{activation=\"global\",identity=\"eu\"} 1\n",
				"\ncorollary_activation_token{activation=\"global\"} 0\n",
				"\ncorollary_activation_renew_seconds_count{activation=\"global\",result=\"Renewed\"} "} {
				if !strings.Contains(text, want) {
					t.Errorf("the metrics do not say %q", want)
				}
			}
			us, _ := takePart(t, activationFile(t, ns, times), "us", logr.Discard())
			args := []string{"activation", test.command, "-c", dir, "--timeout", "1h"}
			if test.force {
				args = append(args, "--holder", strings.Split(holderAndToken(t, ns), ",")[0])
			}
			if out, errs, code := split(t, args...); code != 0 {
				t.Errorf("%d %s%s", code, out, errs)
			}
			eventuallyActive(t, us)
			taken := time.Now()
			testkit.Apply(t, ns, strings.ReplaceAll(blueWidget, "blue", "red"))
			if code := p.wait(t); code != 1 || !strings.Contains(p.text(t), test.ends) {
				t.Errorf("it ends with %d and:\n%s", code, p.text(t))
			}
			late := testkit.Audit(t, testkit.By(user), testkit.Request.Mutating, func(r testkit.Request) bool { return r.Received.After(taken) })
			if len(late) > 0 && !test.force {
				t.Errorf("it wrote after another cluster was active: %+v", late)
			}
		})
	}
}

// holderAndToken are what a Lease says of its holder.
func holderAndToken(t *testing.T, ns string) string {
	t.Helper()
	spec, _ := testkit.Get(t, leases, ns, "lock").Object["spec"].(map[string]any)
	return fmt.Sprintf("%v, token %v", spec["holderIdentity"], spec["leaseTransitions"])
}
