package engine_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// held keeps back what watches of one resource bring, as long as a test wants it.
type held struct {
	resource string
	mu       sync.Mutex
	until    chan struct{} // nil while everything passes
}

// hold keeps back what comes from now on, until release is called.
func (h *held) hold() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := make(chan struct{})
	h.until = until
	return func() { close(until) }
}

func (h *held) wrap(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return heldTransport(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Query().Has("watch") && strings.HasSuffix(request.URL.Path, "/"+h.resource) {
				response.Body = &heldBody{ReadCloser: response.Body, held: h, ended: request.Context().Done()}
			}
			return response, err
		})
	})
	return cfg
}

type heldTransport func(*http.Request) (*http.Response, error)

func (f heldTransport) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

type heldBody struct {
	io.ReadCloser
	held  *held
	ended <-chan struct{}
}

func (b *heldBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.held.mu.Lock()
	until := b.held.until
	b.held.mu.Unlock()
	if until != nil {
		select {
		case <-until:
		case <-b.ended:
		}
	}
	return n, err
}

// TestUpstreamGoneAheadOfItsWatch: once the API server has said that an upstream is gone, nothing is made for it any more,
// though its watch is behind. The garbage collector would take it away each time.
func TestUpstreamGoneAheadOfItsWatch(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		watches, counter := &held{resource: "widgets"}, testkit.NewCounter()
		start(t, watches.wrap(counter.Wrap(testkit.Config(t))), fill(widgetConfig, ns, name)).ready()
		applyReady(t, ns, "a", "{data: {key: a}}")

		release := watches.hold()
		testkit.Delete(t, widgets, ns, "a")
		told := func() time.Time { // before the object is made again, the upstream is looked for
			for _, r := range counter.Requests() {
				if r.Key() == "LIST widgets" && strings.Contains(r.Query, "metadata.name") {
					return r.Sent
				}
			}
			return time.Time{}
		}
		// Time enough for what would be made again after a second.
		const enough = 5 * time.Second
		testkit.Eventually(t, patience, func() (bool, string) {
			at := told()
			return !at.IsZero() && time.Since(at) > enough, "nobody has been told that the upstream is gone"
		})
		at := told()
		again := counter.Requests(testkit.Before(at.Add(enough)), func(r testkit.Request) bool { return r.Mutating() && r.Sent.After(at) })
		if len(again) > 0 {
			t.Errorf("there were %d writes for an upstream that is gone, such as %s", len(again), again[0].Key())
		}
		release()
		waitGone(t, configMaps, ns, "a")

		// The next one of that name is another one.
		testkit.Apply(t, ns, widget("a", "{data: {key: b}}"))
		waitData(t, ns, "a", "key", "b")
	})
}
