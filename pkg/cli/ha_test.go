package cli_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"
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

// ready waits until both do what they are for. On a very busy machine the leader may not renew its Lease in time, and
// have ended.
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

// TestStandbyTakesOver from a leader that was killed when that one's Lease runs out, and from one that was stopped at
// once: either is later by more than a test's patience if it goes by anything else.
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

// line is a way to the API server that can stop carrying anything, for as long as a test wants it. What it was given
// before that and meanwhile it keeps, and delivers afterwards, also from those who have hung up.
type line struct {
	listener net.Listener
	server   string

	mu   sync.Mutex
	open chan struct{} // closed while it carries
}

func newLine(t *testing.T, server string) *line {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &line{listener: listener, server: server, open: make(chan struct{})}
	close(l.open)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.connect(client)
		}
	}()
	return l
}

func (l *line) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *line) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
}

func (l *line) connect(client net.Conn) {
	server, err := net.Dial("tcp", l.server)
	if err != nil {
		_ = client.Close()
		return
	}
	go l.carry(client, server)
	l.carry(server, client)
}

// carry copies from one to the other; while the line is stopped, it takes and does not give.
func (l *line) carry(from, to net.Conn) {
	taken := make(chan []byte, 1<<16)
	go func() {
		defer close(taken)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				taken <- data[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	defer func() { _ = to.Close() }()
	for data := range taken {
		l.mu.Lock()
		open := l.open
		l.mu.Unlock()
		<-open
		if _, err := to.Write(data); err != nil {
			_, _ = io.Copy(io.Discard, from) // until it hangs up
			return
		}
	}
}

// TestLeaderThatIsCutOff from the API server stops writing at its deadline and ends; another one goes on. What was on
// its way when the line broke may arrive when it is whole again: nobody can call that back. It is only what workers had
// in their hands, and it is fixed.
func TestLeaderThatIsCutOff(t *testing.T) {
	t.Parallel()
	memory(t)
	cfg := testkit.Config(t)
	server := must(url.Parse(cfg.Host))(t)
	l := newLine(t, server.Host)
	cfg.Host = "http://" + l.listener.Addr().String()
	p := startLeader(t, cfg, slices.Concat(firstElection, []string{"--workers", strconv.Itoa(workers)}))
	p.addStandby(t)
	p.ready(t)
	load := startLoad(t, p.ns, 100*time.Millisecond)
	burst(t, p.ns)
	broken := time.Now()
	l.stop()
	eventuallyLeads(t, p.standby)
	if code := p.leader.wait(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	t.Logf("cut off, it ended after %s", time.Since(broken).Round(time.Millisecond))
	text := p.leader.text(t)
	if strings.Count(text, "nothing is written until it is") != 1 ||
		!strings.Contains(text, "it could not be renewed within "+renewDeadline.String()) {
		t.Errorf("it does not say what happened:\n%s", text)
	}
	if n := strings.Count(text, "action failed, will retry"); n > workers {
		t.Errorf("%d failed actions were told, each worker had one in its hands", n)
	}
	load.stop()
	allMatch(t, p.ns)
	whole := time.Now()
	l.goOn()
	p.turn(t, "red")
	eventuallyColor(t, p.ns, "red")
	late := slices.DeleteFunc(p.leader.wrote(t, whole), func(r testkit.Request) bool { return r.Resource == "events" })
	t.Logf("%d writes arrived when the line was whole again", len(late))
	if len(late) > workers {
		t.Errorf("%d writes arrived after that, more than the %d that workers had in their hands", len(late), workers)
	}
	allMatch(t, p.ns)
}

// workers are those of the process that is cut off.
const workers = 4

// allMatch waits until every Widget has its ConfigMap as it asks for it.
func allMatch(t *testing.T, ns string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		colors := map[string]string{}
		for _, cm := range testkit.List(t, configMaps, ns, "") {
			colors[cm.GetName()], _, _ = unstructured.NestedString(cm.Object, "data", "color")
		}
		for _, w := range testkit.List(t, widgets, ns, "") {
			if color, _, _ := unstructured.NestedString(w.Object, "spec", "color"); colors[w.GetName()] != color {
				return false, w.GetName() + " has the color " + colors[w.GetName()] + ", not " + color
			}
		}
		return true, ""
	})
}

// TestFrozenLeaderWritesNothing: leaders at work are frozen in the midst of a burst, others take over, and the first
// ones go on. None of them writes anything any more: they see who leads, and end.
func TestFrozenLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	memory(t)
	const rounds = 5
	pairs, loads := make([]*pair, rounds), make([]*writes, rounds) // they run side by side, since most of it is waiting
	for i := range pairs {
		pairs[i] = startLeader(t, testkit.Config(t), firstElection)
	}
	for _, p := range pairs {
		p.addStandby(t)
	}
	for _, p := range pairs {
		p.ready(t)
	}
	for i, p := range pairs {
		loads[i] = startLoad(t, p.ns, 100*time.Millisecond)
		burst(t, p.ns)
		moment := time.After(rand.N(50 * time.Millisecond))
		<-moment
		p.leader.signal(t, syscall.SIGSTOP)
	}
	for i, p := range pairs {
		eventuallyLeads(t, p.standby)
		loads[i].stop()
	}
	thawed := make([]time.Time, rounds)
	for i, p := range pairs {
		thawed[i] = time.Now()
		p.leader.signal(t, syscall.SIGCONT)
	}
	for i, p := range pairs {
		if code := p.leader.wait(t); code != 1 {
			t.Errorf("round %d: a leader that lost its Lease ends with exit code %d, want 1", i, code)
		}
		text := p.leader.text(t)
		if !strings.Contains(text, "Error: running: the Lease "+p.ns+"/widgets-leader was lost: ") || strings.Contains(text, "goroutine ") {
			t.Errorf("round %d: it does not say what happened, or panics:\n%s", i, text)
		}
		t.Logf("round %d: it ended %s after it went on", i, time.Since(thawed[i]).Round(time.Millisecond))
	}
	for i, p := range pairs {
		p.turn(t, "red")
		eventuallyColor(t, p.ns, "red")
		if late := p.leader.wrote(t, thawed[i]); len(late) > 0 {
			t.Errorf("round %d: %d writes after it went on, the first %+v", i, len(late), late[0])
		}
		taken := testkit.Audit(t, testkit.By(p.leader.user), testkit.Request.Mutating, func(r testkit.Request) bool {
			return r.Resource == "leases" && r.Received.After(thawed[i]) && r.Code < 300
		})
		if len(taken) > 0 {
			t.Errorf("round %d: it wrote the next leader's Lease: %+v", i, taken[0])
		}
	}
}

// burst makes more work than the leader can do in a moment.
func burst(t *testing.T, ns string) {
	t.Helper()
	client := testkit.Dynamic(t).Resource(widgets).Namespace(ns)
	for i := range 40 {
		ok(t, applyWidget(t.Context(), client, fmt.Sprintf("burst-%d", i), "blue"))
	}
}
