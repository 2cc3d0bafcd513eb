package engine_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// stale serves, in the place of lists that may come from memory, an answer of before, and no lists in streams.
type stale struct {
	resource string
	next     http.RoundTripper
	answer   []byte
}

func (s *stale) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if query.Get("sendInitialEvents") == "true" {
		return reply(request, http.StatusUnprocessableEntity, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)), nil
	}
	if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/"+s.resource) && query.Get("resourceVersion") == "0" && s.answer != nil {
		return reply(request, http.StatusOK, s.answer), nil
	}
	return s.next.RoundTrip(request)
}

func reply(request *http.Request, code int, body []byte) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
}

// TestStartWithAnOldList: an API server without streaming lists may have an old state in memory. A start does not go by it:
// nothing goes back to an older desired state, and nothing is made for an upstream that is gone.
func TestStartWithAnOldList(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		r := start(t, testkit.Config(t), conf).ready()
		for _, object := range []string{"changed", "gone", "same"} {
			applyReady(t, ns, object, "{data: {key: old}}")
		}
		old := map[string][]byte{"widgets": rawList(t, widgets, ns), "configmaps": rawList(t, configMaps, ns)}
		testkit.Apply(t, ns, widget("changed", "{data: {key: new}, name: renamed}"))
		waitData(t, ns, "renamed", "key", "new")
		waitGone(t, configMaps, ns, "changed")
		waitCondition(t, widgets, ns, "changed", "Ready", "True")
		testkit.Delete(t, widgets, ns, "gone")
		waitGone(t, configMaps, ns, "gone")
		r.halt()
		counter := testkit.NewCounter()
		watches := &held{resource: "widgets"} // what happened since is not told
		release := watches.hold()
		defer release()
		cfg := watches.wrap(counter.Wrap(testkit.Config(t)))
		for resource, answer := range old {
			cfg = rest.CopyConfig(cfg)
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &stale{resource, next, answer} })
		}
		start(t, cfg, conf).ready()
		exactly(t, counter, 0, "a start with an old list", func(r testkit.Request) bool { return r.Verb != "LIST" })
		waitData(t, ns, "renamed", "key", "new")
	})
}

// rawList is a list as the API server sends it.
func rawList(t *testing.T, gvr schema.GroupVersionResource, ns string) []byte {
	t.Helper()
	list, err := testkit.Dynamic(t).Resource(gvr).Namespace(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := list.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return body
}
