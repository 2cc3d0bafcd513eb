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
)

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

// TestTwoActivations: two operators in one process follow two activations with other times. Losing one stops its operator alone, in its own
// time; the other one goes on with the token that it has.
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
