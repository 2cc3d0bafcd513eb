package leadership

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gate refuses writes outside the tenure. It stands right before the connection: client-go waits above it, for as long as
// the API server asks it to, before it sends a request again.
type gate struct {
	tenure *tenure
	next   http.RoundTripper
	early  bool // whether writes pass before the tenure has begun
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	if writes(request) {
		leave, err := g.tenure.enter(g.early)
		if err != nil {
			if request.Body != nil {
				_ = request.Body.Close() // a RoundTripper always closes it
			}
			return nil, err
		}
		defer leave()
	}
	return g.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the transport below.
func (g *gate) WrappedRoundTripper() http.RoundTripper { return g.next }

// writes reports whether the API server would store something. What it cannot tell from a dry run counts.
func writes(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return request.URL.Query().Get("dryRun") != metav1.DryRunAll
}
