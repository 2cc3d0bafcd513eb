package cli_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// pair is a leader, a standby whose caches are warm, and the namespace that they work for.
type pair struct {
	ns              string
	leader, standby *member
}

// startLeader starts the one that is to lead first. Its Lease is good for as long as election says.
func startLeader(t *testing.T, cfg *rest.Config, election []string) *pair {
	t.Helper()
	p := &pair{ns: testkit.Namespace(t)}
	p.leader = startMember(t, cfg, p.ns, "first", election...)
	return p
}

// addStandby waits until the leader leads, and starts the other one.
func (p *pair) addStandby(t *testing.T) {
	t.Helper()
	eventuallyLeads(t, p.leader)
	p.standby = startMember(t, testkit.Config(t), p.ns, "second", nextElection...)
}

// ready waits until both do what they are for. On a very busy machine the leader may not renew its Lease in time, and have ended.
func (p *pair) ready(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(p.standby.text(t), `"reason":"Standby"`) || p.leader.hasEnded(), "there is no standby"
	})
	testkit.Apply(t, p.ns, blueWidget)
	eventuallyColor(t, p.ns, "blue")
}

func (p *pair) turn(t *testing.T, color string) {
	t.Helper()
	testkit.Apply(t, p.ns, strings.ReplaceAll(blueWidget, "blue", color))
}

func holderOf(t *testing.T, ns string) string {
	t.Helper()
	name, _, _ := unstructured.NestedString(testkit.Get(t, leases, ns, "widgets-leader").Object, "spec", "holderIdentity")
	return name
}

func startPair(t *testing.T, election []string) *pair {
	t.Helper()
	p := startLeader(t, testkit.Config(t), election)
	p.addStandby(t)
	p.ready(t)
	return p
}

// TestStandbyTakesOver from a leader that was killed when that one's Lease runs out, and from one that was stopped at once:
// either is later by more than a test's patience if it goes by anything else.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	memory(t)
	for _, test := range []struct {
		how      string
		signal   syscall.Signal
		election []string
	}{
		{"killed", syscall.SIGKILL, firstElection},
		{"stopped", syscall.SIGTERM, steadyElection},
	} {
		p := startPair(t, test.election)
		begin := time.Now()
		p.leader.signal(t, test.signal)
		p.turn(t, "red")
		eventuallyColor(t, p.ns, "red")
		if code := p.leader.wait(t); test.signal == syscall.SIGTERM && code != 0 {
			t.Errorf("%s: exit code %d", test.how, code)
		}
		p.turn(t, "green") // what came first the leader may have done still, before it heard the signal
		eventuallyColor(t, p.ns, "green")
		written := p.standby.wrote(t, begin)
		if len(written) == 0 {
			t.Errorf("%s: nobody has done it", test.how)
			continue
		}
		t.Logf("%s: the first write of the next leader came after %s", test.how, written[0].Received.Sub(begin).Round(time.Millisecond))
		// Nobody is left to take it: it shows that the Lease was given back.
		p.standby.stop(t)
		if holder := holderOf(t, p.ns); holder != "" {
			t.Errorf("%s: after a clean stop %s holds the Lease", test.how, holder)
		}
	}
}

// writes creates and changes Widgets of a namespace until it is stopped.
type writes struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func startLoad(t *testing.T, ns string, every time.Duration) *writes {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &writes{cancel: cancel}
	client := testkit.Dynamic(t).Resource(widgets).Namespace(ns)
	l.done.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := applyWidget(ctx, client, fmt.Sprintf("load-%d", i%40), fmt.Sprintf("c%d", i)); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	t.Cleanup(l.stop)
	return l
}

func (l *writes) stop() {
	l.cancel()
	l.done.Wait()
}

func applyWidget(ctx context.Context, client dynamic.ResourceInterface, name, color string) error {
	body := fmt.Sprintf(`{"apiVersion": "tools.example.com/v1", "kind": "Widget", "metadata": {"name": %q}, "spec": {"color": %q}}`,
		name, color)
	force := true
	_, err := client.Patch(ctx, name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "test", Force: &force})
	return err
}
