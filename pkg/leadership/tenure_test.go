package leadership

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/apply"
)

// hands are clocks that a test turns.
type hands struct {
	mu sync.Mutex
	instant
}

func (h *hands) now() instant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.instant
}

func (h *hands) turn(wall, monotonic time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall = h.wall.Add(wall)
	h.monotonic += monotonic
}

// testTenure returns a tenure of ten seconds that has not begun.
func testTenure(log logr.Logger) (*tenure, *hands) {
	h := &hands{instant: instant{wall: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), monotonic: time.Hour}}
	t := newTenure("apps/lease", 10*time.Second, log)
	t.clock = h.now
	return t, h
}

func TestTenureByTwoClocks(t *testing.T) {
	tests := []struct {
		wall, monotonic time.Duration
		allowed         bool
		reason          string
	}{
		{9 * time.Second, 9 * time.Second, true, "the deadline has not passed"},
		{10 * time.Second, 10 * time.Second, false, "the deadline is not part of it"},
		{time.Hour, 0, false, "the machine was suspended: the monotonic clock stood still"},
		{-time.Hour, 11 * time.Second, false, "the wall clock was set back, which prolongs nothing"},
		{-time.Hour, 9 * time.Second, true, "the wall clock was set back, and the deadline has not passed"},
		{time.Hour, 9 * time.Second, false, "the wall clock was set forward: it cannot be told from a suspended machine"},
	}
	for _, test := range tests {
		tenure, clocks := testTenure(logr.Discard())
		tenure.renew(clocks.now())
		clocks.turn(test.wall, test.monotonic)
		if err := tenure.mayWrite(); (err == nil) != test.allowed {
			t.Errorf("%s: %v", test.reason, err)
		}
		var refused *RefusedError
		if err := tenure.mayWrite(); !test.allowed && !errors.As(err, &refused) {
			t.Errorf("%s: %T is no *RefusedError", test.reason, err)
		}
	}
}

// mayWriteEarly is mayWrite for what a standby may write too.
func mayWriteEarly(t *tenure) error {
	leave, err := t.enter(true)
	if err == nil {
		leave()
	}
	return err
}

func TestTenureBeginsAndEnds(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	if tenure.mayWrite() == nil {
		t.Error("it may write before it was elected")
	}
	if err := mayWriteEarly(tenure); err != nil {
		t.Errorf("what a standby may write is refused: %v", err)
	}
	select {
	case <-tenure.elected:
		t.Error("it is elected without a renewal")
	default:
	}
	sent := clocks.now()
	clocks.turn(8*time.Second, 8*time.Second) // the answer was slow
	tenure.renew(sent)
	<-tenure.elected
	clocks.turn(2*time.Second, 2*time.Second)
	if tenure.mayWrite() == nil || mayWriteEarly(tenure) == nil {
		t.Error("the renewal counts from its answer, not from when it was sent")
	}
	tenure.renew(clocks.now())
	if err := tenure.mayWrite(); err != nil {
		t.Errorf("renewed after all, it may not write: %v", err)
	}
	lost := &LostError{Lease: "apps/lease", Holder: "another"}
	tenure.end(lost)
	tenure.end(errReleased)
	tenure.renew(clocks.now())
	if tenure.mayWrite() == nil || mayWriteEarly(tenure) == nil {
		t.Error("it may write after the end")
	}
	if !errors.Is(tenure.lost(), lost) {
		t.Errorf("the first reason is gone: %v", tenure.lost())
	}
}

func TestTenureWaits(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan bool)
	wait := func() { answers <- tenure.wait(ctx) }
	go wait()
	tenure.renew(clocks.now())
	if !<-answers {
		t.Error("the first renewal did not let it write")
	}
	clocks.turn(time.Minute, time.Minute)
	go wait()
	cancel()
	if <-answers {
		t.Error("it may write with the deadline passed")
	}
}

func TestTenureReportsOnce(t *testing.T) {
	var lines []string
	tenure, clocks := testTenure(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	tenure.renew(clocks.now())
	tenure.expire() // too early
	clocks.turn(11*time.Second, 11*time.Second)
	for range 3 {
		tenure.expire()
	}
	tenure.renew(clocks.now())
	if len(lines) != 2 || !strings.Contains(lines[0], "nothing is written") || !strings.Contains(lines[1], "writing again") {
		t.Errorf("it said: %s", strings.Join(lines, "\n"))
	}
}

// fencedClient returns a client of a server that counts, and that answers a request for /hang only when the test ends.
func fencedClient(t *testing.T, tenure *tenure, dial dialer) (client *http.Client, url string, count func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	seen := map[string]int{}
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Method]++
		mu.Unlock()
		if r.URL.Path == "/hang" {
			<-ended
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	client, err := rest.HTTPClientFor((&Election{tenure: tenure}).Fence(&rest.Config{Host: server.URL, Dial: dial}))
	if err != nil {
		t.Fatal(err)
	}
	return client, server.URL, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return map[string]int{"GET": seen["GET"], "PATCH": seen["PATCH"]}
	}
}

func send(t *testing.T, client *http.Client, method, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

func TestGuard(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	client, url, count := fencedClient(t, tenure, nil)
	steps := []struct {
		before  func()
		refused bool
		reason  string
	}{
		{func() {}, true, "it stands by"},
		{func() { tenure.renew(clocks.now()) }, false, "it leads"},
		{func() { clocks.turn(11*time.Second, 11*time.Second) }, true, "the deadline has passed"},
		{func() { tenure.renew(clocks.now()) }, false, "it was renewed after all"},
		{func() { tenure.end(errReleased) }, true, "the Lease was given back"},
	}
	writes, reads := 0, 0
	for _, step := range steps {
		step.before()
		err := send(t, client, http.MethodPatch, url)
		var refused *RefusedError
		if errors.As(err, &refused) != step.refused || err != nil && !step.refused {
			t.Errorf("%s: %v", step.reason, err)
		}
		if step.refused && apply.Classify(err).Reason != apply.ReasonUnavailable {
			t.Errorf("%s: the engine takes it for %+v", step.reason, apply.Classify(err))
		}
		if !step.refused {
			writes++
		}
		if err := errors.Join(send(t, client, http.MethodGet, url), send(t, client, http.MethodPatch, url+"?dryRun=All")); err != nil {
			t.Errorf("%s: a read or a dry run fails: %v", step.reason, err)
		}
		reads++
		if have := count(); have["PATCH"] != writes+reads || have["GET"] != reads {
			t.Errorf("%s: the server saw %v, want %d writes, %d dry runs, %d reads", step.reason, have, writes, reads, reads)
		}
	}
}

// TestGuardCutsWhatIsOnItsWay: a write that waits for its answer when the deadline passes ends then.
func TestGuardCutsWhatIsOnItsWay(t *testing.T) {
	const left = 100 * time.Millisecond
	tenure := newTenure("apps/lease", time.Hour, logr.Discard())
	client, url, count := fencedClient(t, tenure, nil)
	tenure.renew(now())
	var arrived time.Time
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for count()["PATCH"] == 0 && t.Context().Err() == nil {
			<-time.After(time.Millisecond)
		}
		arrived = time.Now()
		nearlyOver := now()
		nearlyOver.wall, nearlyOver.monotonic = nearlyOver.wall.Add(left-time.Hour), nearlyOver.monotonic+left-time.Hour
		tenure.renew(nearlyOver)
	})
	if err := send(t, client, http.MethodPatch, url+"/hang"); err == nil {
		t.Error("it was answered")
	}
	if count()["PATCH"] == 0 {
		t.Fatal("it never arrived")
	}
	waiting.Wait()
	if took := time.Since(arrived); took < left || took > time.Minute {
		t.Errorf("it ended %s after its arrival", took)
	}
	if err := send(t, client, http.MethodGet, url); err != nil {
		t.Errorf("a read afterwards: %v", err)
	}
	remembered := func() int {
		tenure.mu.Lock()
		defer tenure.mu.Unlock()
		return len(tenure.conns)
	}
	for end := time.Now().Add(time.Minute); remembered() != 1; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are remembered", remembered())
		}
	}
}

// TestGuardChecksBeforeBytesAreSent: a write that passed the gate before the process was frozen is not sent afterwards.
func TestGuardChecksBeforeBytesAreSent(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	here, there := net.Pipe()
	defer func() { _ = there.Close() }()
	tenure.renew(clocks.now())
	c := tenure.keep(here)
	clocks.turn(11*time.Second, 11*time.Second)
	var refused *RefusedError
	if n, err := c.Write([]byte("the rest of a write")); n != 0 || !errors.As(err, &refused) {
		t.Errorf("%d bytes were sent: %v", n, err)
	}
	if _, err := here.Write([]byte("x")); err == nil {
		t.Error("the connection is still open")
	}
	// What is made afterwards carries reads, until the Lease is renewed and runs out once more.
	here, there = net.Pipe()
	go func() { _, _ = there.Read(make([]byte, 1)) }()
	c = tenure.keep(here)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Errorf("a new connection cannot be written to: %v", err)
	}
	tenure.renew(clocks.now())
	clocks.turn(11*time.Second, 11*time.Second)
	if _, err := c.Write([]byte("x")); !errors.As(err, &refused) {
		t.Errorf("bytes were sent after the second deadline: %v", err)
	}
}

// TestGuardBelowRetries: client-go waits where it is throttled, and sends the request again by itself.
func TestGuardBelowRetries(t *testing.T) {
	t.Parallel()
	tenure, clocks := testTenure(logr.Discard())
	tenure.renew(clocks.now())
	sent := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent <- struct{}{}
		clocks.turn(11*time.Second, 11*time.Second)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	e := &Election{tenure: tenure}
	client, err := dynamic.NewForConfig(e.Fence(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("apps").
		Patch(t.Context(), "web", types.ApplyPatchType, []byte("{}"), metav1.PatchOptions{FieldManager: "test"})
	var refused *RefusedError
	if !errors.As(err, &refused) || len(sent) != 1 {
		t.Errorf("it was sent %d times: %v", len(sent), err)
	}
}

// TestGuardHoldsWhatWaitsForAConnection: a write that has passed the gate, and then waits for a connection until the
// deadline has passed, is not sent on one that is made for it; nor does a read suffer from that once the write has failed.
func TestGuardHoldsWhatWaitsForAConnection(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	client, url, count := fencedClient(t, tenure, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		clocks.turn(11*time.Second, 11*time.Second)
		return c, err
	})
	tenure.renew(clocks.now())
	if err := send(t, client, http.MethodPatch, url); err == nil || count()["PATCH"] != 0 {
		t.Errorf("the server saw %v: %v", count(), err)
	}
	if err := send(t, client, http.MethodGet, url); err != nil {
		t.Errorf("a read afterwards: %v", err)
	}
}
