package bubble

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Listen is Serve for commands and processes: the API server listens on a port, which testkit.Kubeconfig names.
func Listen(t *testing.T, crds ...string) *rest.Config {
	t.Helper()
	audit := testkit.NewCounter()
	config := audit.Wrap(Serve(t, crds...))
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(request *httputil.ProxyRequest) { request.SetURL(target) },
		Transport: roundTripper(func(request *http.Request) (*http.Response, error) { return sendJSON(transport, request) }),
		ErrorLog:  log.New(io.Discard, "", 0),
	})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	testkit.ServeAudited(t, &rest.Config{Host: server.URL, QPS: -1}, audit)
	return testkit.Config(t)
}

// sendJSON sends a request, its body as JSON: typed clients send protobuf, which memcluster does not read.
func sendJSON(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	if request.Header.Get("Content-Type") != runtime.ContentTypeProtobuf {
		return next.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding protobuf: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	if body, err = json.Marshal(object); err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", runtime.ContentTypeJSON)
	request.Body = io.NopCloser(bytes.NewReader(body))
	return next.RoundTrip(request)
}
