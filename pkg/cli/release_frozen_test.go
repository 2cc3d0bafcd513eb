package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestFrozenReleaseWritesNothing: release is frozen in the midst of many upstreams, an operator takes the Lease and
// puts the finalizers on again, and release goes on. It writes nothing any more: it sees who leads, and ends. But for
// the gate, one or two patches of each run arrive, before the election notices anything.
func TestFrozenReleaseWritesNothing(t *testing.T) {
	t.Parallel()
	const upstreams, before = 20, 5
	ns := memory(t)
	for i := range upstreams {
		testkit.Apply(t, ns, fmt.Sprintf(finalizedWidget, fmt.Sprintf("w%d", i)))
	}
	d := newDam(t, before)
	r := &member{user: "release-of-" + ns}
	r.process = startWriting(t, &rest.Config{Host: d.URL}, "release", "-c", operatorFile, "-n", ns, "--as", r.user, "--as-group",
		"system:masters",
		"--leader-election-id", "widgets-leader", "--leader-election-namespace", ns)
	testkit.Closed(t, d.full, func() string { return fmt.Sprintf("it did not come to %d upstreams:\n%s", before, r.text(t)) })
	r.signal(t, syscall.SIGSTOP)
	d.open() // the answer waits for it to go on
	operator := startMember(t, testkit.Config(t), ns, "second",
		slices.Concat(steadyElection, []string{"--set", "widgets:.deletion.wait=true"})...)
	eventuallyLeads(t, operator)
	allHeld := func() (bool, string) {
		for _, w := range testkit.List(t, widgets, ns, "") {
			if !slices.Contains(w.GetFinalizers(), "tools.example.com/cleanup") {
				return false, w.GetName() + " has no finalizer"
			}
		}
		return true, ""
	}
	testkit.Eventually(t, patience, allHeld)
	thawed := time.Now()
	r.signal(t, syscall.SIGCONT)
	if code := r.wait(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	text := r.text(t)
	if !strings.Contains(text, "Error: the Lease "+ns+"/widgets-leader was lost: ") || !strings.Contains(text, " upstreams released") ||
		strings.Contains(text, "goroutine ") {
		t.Errorf("it does not say what happened, or panics:\n%s", text)
	}
	t.Logf("it ended %s after it went on:\n%s", time.Since(thawed).Round(time.Millisecond), text)
	if late := r.wrote(t, thawed); len(late) > 0 {
		t.Errorf("%d writes after it went on, the first %+v", len(late), late[0])
	}
	taken := testkit.Audit(t, testkit.By(r.user), testkit.Request.Mutating, func(q testkit.Request) bool {
		return q.Resource == "leases" && q.Received.After(thawed) && q.Code < 300
	})
	if len(taken) > 0 {
		t.Errorf("it wrote the operator's Lease: %+v", taken[0])
	}
	if ok, why := allHeld(); !ok {
		t.Error(why)
	}
	operator.stop(t)
	for i := range upstreams {
		testkit.Patch(t, widgets, ns, fmt.Sprintf("w%d", i), "test", `{"metadata": {"finalizers": null}}`)
	}
}

// dam is a way to the API server that holds back the answer to one patch, so that whoever waits for it is known to be
// in the midst of its work, however slow the machine is.
type dam struct {
	*httptest.Server
	full chan struct{} // closed when the answer is held back
	open func()        // lets it through
}

// newDam holds back the answer to the n-th patch, as an admin's way to the API server.
func newDam(t *testing.T, n int) *dam {
	t.Helper()
	cfg := testkit.Config(t)
	server := must(url.Parse(cfg.Host))(t)
	transport := must(rest.TransportFor(cfg))(t)
	opened, patches := make(chan struct{}), make(chan int, 1)
	d := &dam{full: make(chan struct{}), open: sync.OnceFunc(func() { close(opened) })}
	patches <- 0
	d.Server = httptest.NewServer(&httputil.ReverseProxy{Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method != http.MethodPatch {
				return nil
			}
			nth := 1 + <-patches
			patches <- nth
			if nth == n {
				close(d.full)
				<-opened
			}
			return nil
		}})
	t.Cleanup(d.Close)
	t.Cleanup(d.open)
	return d
}
