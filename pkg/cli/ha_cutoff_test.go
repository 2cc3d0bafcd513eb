package cli_test

import (
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

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

// TestLeaderThatIsCutOff from the API server stops writing at its deadline and ends; another one goes on. What was on its
// way when the line broke may arrive when it is whole again: nobody can call that back. It is only what workers had
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
