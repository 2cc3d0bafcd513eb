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

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/apply"
)

// hands are clocks that a test turns.
type hands struct {
	mu sync.Mutex
	Instant
}

func (h *hands) now() Instant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Instant
}

func (h *hands) turn(wall, monotonic time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall = h.wall.Add(wall)
	h.monotonic += monotonic
}

// testTenure returns a tenure of ten seconds that has not begun.
func testTenure(log logr.Logger) (*Tenure, *hands) {
	h := &hands{Instant: Instant{wall: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), monotonic: time.Hour}}
	t := NewTenure("Lease apps/lease", 10*time.Second, log)
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
		tenure.Renew(clocks.now())
		clocks.turn(test.wall, test.monotonic)
		if err := tenure.MayWrite(); (err == nil) != test.allowed {
			t.Errorf("%s: %v", test.reason, err)
		}
		var refused *RefusedError
		if err := tenure.MayWrite(); !test.allowed && !errors.As(err, &refused) {
			t.Errorf("%s: %T is no *RefusedError", test.reason, err)
		}
	}
}

// mayWriteEarly is mayWrite for what a standby may write too.
func mayWriteEarly(t *Tenure) error {
	leave, err := t.enter(&write{cancel: func(error) {}}, true)
	if err == nil {
		leave()
	}
	return err
}

func TestTenureBeginsAndEnds(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	if tenure.MayWrite() == nil {
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
	tenure.Renew(sent)
	<-tenure.elected
	clocks.turn(2*time.Second, 2*time.Second)
	if tenure.MayWrite() == nil || mayWriteEarly(tenure) == nil {
		t.Error("the renewal counts from its answer, not from when it was sent")
	}
	tenure.Renew(clocks.now())
	if err := tenure.MayWrite(); err != nil {
		t.Errorf("renewed after all, it may not write: %v", err)
	}
	lost := &LostError{Lock: "Lease apps/lease", Holder: "another"}
	tenure.End(lost)
	tenure.End(errReleased)
	tenure.Renew(clocks.now())
	if tenure.MayWrite() == nil || mayWriteEarly(tenure) == nil {
		t.Error("it may write after the end")
	}
	if !errors.Is(tenure.lost(), lost) {
		t.Errorf("the first reason is gone: %v", tenure.lost())
	}
}

// TestTenureWaitsForARenewal: a clock that is set forward ends acting. Though it is set back, nothing begins before the
// next renewal, and who waits for that does only wait.
func TestTenureWaitsForARenewal(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	tenure.Renew(clocks.now())
	clocks.turn(time.Hour, 0)
	tenure.expire()
	clocks.turn(-time.Hour, 0)
	ctx, cancel := context.WithCancel(t.Context())
	acts := make(chan bool)
	go func() {
		_, done, ok := tenure.Act(ctx)
		done()
		acts <- ok
	}()
	cancel()
	if <-acts {
		t.Error("it acts without a renewal")
	}
	tenure.Renew(clocks.now())
	if !tenure.Active() {
		t.Error("it does not begin after the renewal")
	}
}

func TestTenureWaits(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan bool)
	wait := func() { answers <- tenure.Wait(ctx) }
	go wait()
	tenure.Renew(clocks.now())
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
	tenure.Renew(clocks.now())
	tenure.expire() // too early
	clocks.turn(11*time.Second, 11*time.Second)
	for range 3 {
		tenure.expire()
	}
	tenure.Renew(clocks.now())
	if len(lines) != 2 || !strings.Contains(lines[0], "nothing is written") || !strings.Contains(lines[1], "writing again") {
		t.Errorf("it said: %s", strings.Join(lines, "\n"))
	}
}

// fencedClient returns a client of a server that counts, and that answers a request for /hang only when the test ends.
func fencedClient(t *testing.T, tenure *Tenure, dial dialer) (client *http.Client, url string, count func() map[string]int) {
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
	client = must.Get(rest.HTTPClientFor(tenure.Fence(&rest.Config{Host: server.URL, Dial: dial}))).In(t)
	return client, server.URL, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return map[string]int{"GET": seen["GET"], "PATCH": seen["PATCH"]}
	}
}

func send(t *testing.T, client *http.Client, method, url string) error {
	t.Helper()
	request := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))).In(t)
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
		{func() { tenure.Renew(clocks.now()) }, false, "it leads"},
		{func() { clocks.turn(11*time.Second, 11*time.Second) }, true, "the deadline has passed"},
		{func() { tenure.Renew(clocks.now()) }, false, "it was renewed after all"},
		{func() { tenure.End(errReleased) }, true, "the Lease was given back"},
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
	tenure := NewTenure("Lease apps/lease", time.Hour, logr.Discard())
	client, url, count := fencedClient(t, tenure, nil)
	tenure.Renew(Now())
	var arrived time.Time
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for count()["PATCH"] == 0 && t.Context().Err() == nil {
			<-time.After(time.Millisecond)
		}
		arrived = time.Now()
		nearlyOver := Now()
		nearlyOver.wall, nearlyOver.monotonic = nearlyOver.wall.Add(left-time.Hour), nearlyOver.monotonic+left-time.Hour
		tenure.Renew(nearlyOver)
	})
	if err := send(t, client, http.MethodPatch, url+"/hang"); err == nil {
		t.Error("it was answered")
	}
	if count()["PATCH"] == 0 {
		t.Fatal("it never arrived")
	}
	waiting.Wait()
	if took := time.Since(arrived); took < left {
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
	for remembered() != 1 { // the others soon are not
		<-time.After(time.Millisecond)
	}
}

// TestGuardChecksBeforeBytesAreSent: a write that passed the gate before the process was frozen is not sent afterwards.
func TestGuardChecksBeforeBytesAreSent(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	here, there := net.Pipe()
	defer func() { _ = there.Close() }()
	tenure.Renew(clocks.now())
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
	tenure.Renew(clocks.now())
	clocks.turn(11*time.Second, 11*time.Second)
	if _, err := c.Write([]byte("x")); !errors.As(err, &refused) {
		t.Errorf("bytes were sent after the second deadline: %v", err)
	}
}

// TestGuardBelowRetries: client-go waits where it is throttled, and sends the request again by itself.
func TestGuardBelowRetries(t *testing.T) {
	t.Parallel()
	tenure, clocks := testTenure(logr.Discard())
	tenure.Renew(clocks.now())
	sent := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent <- struct{}{}
		clocks.turn(11*time.Second, 11*time.Second)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(tenure.Fence(&rest.Config{Host: server.URL}))
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
// deadline has passed, is not sent on one that is made for it; nor does a read suffer from that once the write has
// failed.
func TestGuardHoldsWhatWaitsForAConnection(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	client, url, count := fencedClient(t, tenure, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		clocks.turn(11*time.Second, 11*time.Second)
		return c, err
	})
	tenure.Renew(clocks.now())
	if err := send(t, client, http.MethodPatch, url); err == nil || count()["PATCH"] != 0 {
		t.Errorf("the server saw %v: %v", count(), err)
	}
	if err := send(t, client, http.MethodGet, url); err != nil {
		t.Errorf("a read afterwards: %v", err)
	}
}

// TestTenureBeginsAnew: after its end it lets nothing pass, until it is renewed once it was restarted.
func TestTenureBeginsAnew(t *testing.T) {
	tenure, clocks := testTenure(logr.Discard())
	tenure.Begin(7, false)
	tenure.Renew(clocks.now())
	tenure.End(errors.New("lost"))
	tenure.Restart()
	if tenure.MayWrite() == nil || tenure.Active() || tenure.Token() != NoToken || mayWriteEarly(tenure) == nil {
		t.Error("it may write, or has a token, before it was renewed again")
	}
	tenure.Begin(8, true)
	tenure.Renew(clocks.now())
	if tenure.MayWrite() != nil || !tenure.Active() || tenure.Token() != 8 || !tenure.Preceded() {
		t.Errorf("renewed again: %v, token %s", tenure.MayWrite(), tenure.Token())
	}
}

// TestTenureActs: the context of those that act ends with the tenure, for whatever reason, and they act again when it
// goes on.
func TestTenureActs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		end    func(*Tenure, *hands)
		again  func(*Tenure, *hands)
		reason string
	}{
		{func(t *Tenure, _ *hands) { t.End(errReleased) }, func(t *Tenure, _ *hands) { t.Restart() }, "it ends"},
		{func(t *Tenure, h *hands) { h.turn(11*time.Second, 0); t.expire() }, func(*Tenure, *hands) {}, "the deadline passes"},
		{func(t *Tenure, h *hands) { h.turn(0, 11*time.Second); t.Renew(Instant{}) }, func(*Tenure, *hands) {}, "a renewal comes too late"},
		{func(t *Tenure, _ *hands) { t.leave(canceled()) }, func(t *Tenure, _ *hands) { t.End(errHandedOver); t.Restart() }, "it is given up"},
	}
	for _, test := range tests {
		tenure, clocks := testTenure(logr.Discard())
		tenure.Renew(clocks.now())
		for range 2 {
			acting, done, ok := tenure.Act(t.Context())
			if !ok || acting.Err() != nil {
				t.Fatalf("%s: it does not act", test.reason)
			}
			test.end(tenure, clocks)
			<-acting.Done()
			done()
			if _, _, ok := tenure.Act(canceled()); ok {
				t.Errorf("%s: it acts afterwards", test.reason)
			}
			test.again(tenure, clocks)
			tenure.Renew(clocks.now())
		}
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestGuardsNest: a client that is fenced by two tenures writes only during both, and a write under way ends with the
// first that ends.
func TestGuardsNest(t *testing.T) {
	t.Parallel()
	for first := range 2 {
		inner, outer := NewTenure("inner", time.Hour, logr.Discard()), NewTenure("outer", time.Hour, logr.Discard())
		both := []*Tenure{inner, outer}
		arrived, ended := make(chan struct{}, 8), make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			if r.URL.Path == "/hang" {
				<-ended
			}
		}))
		defer server.Close()
		defer close(ended)
		client := must.Get(rest.HTTPClientFor(outer.Fence(inner.Fence(&rest.Config{Host: server.URL})))).In(t)
		var refused *RefusedError
		if err := send(t, client, http.MethodPatch, server.URL); !errors.As(err, &refused) {
			t.Errorf("neither has begun: %v", err)
		}
		both[first].Renew(Now())
		if err := send(t, client, http.MethodPatch, server.URL); !errors.As(err, &refused) || len(arrived) > 0 {
			t.Errorf("%s alone has begun: %v", both[first].name, err)
		}
		both[1-first].Renew(Now())
		if err := send(t, client, http.MethodPatch, server.URL); err != nil {
			t.Errorf("both have begun: %v", err)
		}
		<-arrived
		answer := make(chan error)
		go func() { answer <- send(t, client, http.MethodPatch, server.URL+"/hang") }()
		<-arrived
		both[first].End(errReleased)
		if err := <-answer; !errors.As(err, &refused) || !refused.Sent {
			t.Errorf("%s has ended: a write under way: %v", both[first].name, err)
		}
	}
}
