package cli_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/clusters"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/activation"
)

// following is an operator that follows an activation of its own, and how the process reaches its lock.
type following struct {
	name, ns, times string
	deadline        time.Duration
	proxy           *clusters.Proxy
	other           *activation.Activation // that of another cluster
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

// TestTwoActivations: two operators in one process follow two activations with other times. Losing one stops its operator alone, in its
// own time; the other one goes on with the token that it has.
func TestTwoActivations(t *testing.T) {
	t.Parallel()
	memory(t)
	slow := &following{name: "slow", ns: testkit.Namespace(t), deadline: 10 * time.Second,
		times: "leaseDuration: 15s\nrenewDeadline: 10s\nretryPeriod: 2s\n"}
	fast := &following{name: "fast", ns: testkit.Namespace(t), deadline: 3 * time.Second,
		times: "leaseDuration: 5s\nrenewDeadline: 3s\nretryPeriod: 1s\n"}
	dir, user := t.TempDir(), "eu-of-"+slow.ns
	slow.write(t, dir)
	fast.write(t, dir)
	start(t, testkit.Config(t), "run", "-c", dir, "--as", user, "--as-group", "system:masters", "--activation-identity", "eu",
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--reload-interval", "0")
	for _, f := range []*following{slow, fast} {
		testkit.Apply(t, f.ns, blueWidget)
		eventuallyColor(t, f.ns, "blue")
		f.other, _ = takePart(t, activationFile(t, f.ns, f.times), "us", logr.Discard())
	}
	colors := 0
	writes := func(f *following) { // waits until the operator does what is new
		t.Helper()
		colors++
		color := fmt.Sprintf("c%d", colors)
		testkit.Apply(t, f.ns, strings.Replace(blueWidget, "blue", color, 1))
		eventuallyColor(t, f.ns, color)
	}
	for _, round := range [][2]*following{{fast, slow}, {slow, fast}} {
		lost, kept := round[0], round[1]
		tokens := holderAndToken(t, kept.ns)
		dropped := time.Now()
		lost.proxy.Drop()
		for n := 0; !lost.other.Active(); n++ { // both have something to do all the while
			testkit.Apply(t, lost.ns, strings.Replace(blueWidget, "blue", fmt.Sprintf("lost%d", n), 1))
			writes(kept)
			if time.Since(dropped) > patience {
				t.Fatalf("nobody takes over %s", lost.name)
			}
		}
		writes(kept)
		if now := holderAndToken(t, kept.ns); now != tokens {
			t.Errorf("%s is lost, and %s changes from %s to %s", lost.name, kept.name, tokens, now)
		}
		const onItsWay = time.Second
		late := dropped.Add(lost.deadline + onItsWay)
		for _, r := range testkit.Audit(t, testkit.By(user), testkit.Request.Mutating) {
			if r.Namespace == lost.ns && r.Received.After(late) {
				t.Errorf("%s was lost, and this came %s later: %+v", lost.name, r.Received.Sub(dropped), r)
			}
		}
		lost.proxy.Pass()
		if out, errs, code := split(t, "activation", "handover", "-c", activationFile(t, lost.ns, lost.times)); code != 0 {
			t.Fatalf("handing back: %d %s%s", code, out, errs)
		}
		writes(lost)
		writes(kept)
	}
}
