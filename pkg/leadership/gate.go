package leadership

import (
	"context"
	"errors"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Fence returns a configuration whose clients write only during the tenure: outside of it a write fails with a
// *RefusedError, as if the API server could not be reached. Reads and dry runs always pass. When the renew deadline
// passes, writes that are under way end, and connections that they may be on are cut. A configuration may be fenced by
// several tenures: a write needs all of them.
func (t *Tenure) Fence(cfg *rest.Config) *rest.Config { return t.fence(cfg, false) }

// FenceEvents is Fence for what a process may write too that has not held the lock yet, but not one that has lost it.
func (t *Tenure) FenceEvents(cfg *rest.Config) *rest.Config { return t.fence(cfg, true) }

func (t *Tenure) fence(cfg *rest.Config, early bool) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Dial = t.dialing(cfg)
	above := cfg.WrapTransport
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		var fenced http.RoundTripper = &gate{tenure: t, next: next, early: early}
		if above != nil {
			fenced = above(fenced)
		}
		return fenced
	}
	return cfg
}

// gate refuses writes outside the tenure. It is right before the connection: client-go waits above it, for as long as
// the API server asks it to, before it sends a request again.
type gate struct {
	tenure *Tenure
	next   http.RoundTripper
	early  bool // whether writes pass before the tenure has begun
}

// write is a write under way; cancel ends it.
type write struct{ cancel context.CancelCauseFunc }

// RoundTrip implements http.RoundTripper. The context of a write ends with the tenure.
func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	if !writes(request) {
		return g.next.RoundTrip(request)
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	leave, err := g.tenure.enter(&write{cancel}, g.early)
	if err != nil {
		cancel(err)
		if request.Body != nil {
			_ = request.Body.Close() // a RoundTripper always closes it
		}
		return nil, err
	}
	defer leave()
	response, err := g.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel(err)
		if refused := (*RefusedError)(nil); errors.As(context.Cause(ctx), &refused) {
			return nil, refused
		}
		return nil, err
	}
	response.Body = &answer{ReadCloser: response.Body, cancel: cancel}
	return response, nil
}

// answer is the body of an answer to a write, after which its context ends.
type answer struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (a *answer) Close() error {
	defer a.cancel(nil)
	return a.ReadCloser.Close()
}

// WrappedRoundTripper lets client-go find the transport below.
func (g *gate) WrappedRoundTripper() http.RoundTripper { return g.next }

// enter is MayWrite for a write that is sent now, before the tenure has begun too where early is set. Where the error
// is nil, leave is to be called when the write has been answered or given up.
func (t *Tenure) enter(w *write, early bool) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refusal(early); err != nil {
		return nil, err
	}
	t.underWay[w] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.underWay, w)
	}, nil
}

// writes reports whether the API server would store something. What it cannot tell from a dry run counts.
func writes(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return request.URL.Query().Get("dryRun") != metav1.DryRunAll
}
