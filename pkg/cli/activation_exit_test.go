package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestActivationExit: with onLost: Exit the process ends when the lock is taken away or handed over, says why, and has written nothing
// since. Its metrics say that it is active. The identity comes from the environment.
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
