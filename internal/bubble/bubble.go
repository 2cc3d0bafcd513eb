// Package bubble runs tests against an API server in memory, in virtual time: a delay of an hour takes no time, a test
// waits until every goroutine is blocked instead of for a while, and no other test disturbs it. The helpers of testkit
// work as with a control plane. Listen is for commands and processes: they reach it by a kubeconfig, in real time.
//
// A test belongs here if its result does not depend on what only a real API server does: admission, authorization,
// validation of built-in kinds, conversion by webhooks. The conformance table of memcluster holds the API server in
// memory to the real one.
package bubble

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/memcluster"
	"github.com/corollary-dev/corollary/pkg/memcluster/local"
)

// Run runs a test in parallel with others, as Test does.
func Run(t *testing.T, crds []string, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	Test(t, crds, test)
}

// Test runs a test on an API server of its own that has the CRDs in these files. The garbage collector and the
// namespace controller run. The test must not call t.Run or t.Parallel.
func Test(t *testing.T, crds []string, test func(t *testing.T)) {
	t.Helper()
	definitions := Definitions(t, crds...)
	synctest.Test(t, func(t *testing.T) {
		testkit.Serve(t, controlled(t, newCluster(t, definitions)))
		test(t)
	})
}

// Serve makes the helpers of testkit send the requests of this test to an API server of its own, without controllers,
// and returns the configuration of its clients. Time is not virtual: it is for tests that wait for nothing.
func Serve(t *testing.T, crds ...string) *rest.Config {
	t.Helper()
	testkit.Serve(t, newCluster(t, Definitions(t, crds...)).Config())
	return testkit.Config(t)
}

func newCluster(t *testing.T, definitions []*unstructured.Unstructured) *memcluster.Cluster {
	t.Helper()
	cluster, err := memcluster.New(definitions, memcluster.WithUIDs(scattered))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"default", "kube-system"} {
		_, err := cluster.Put(testkit.Parse(t,
			"{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}"))
		if err != nil {
			t.Fatal(err)
		}
	}
	return cluster
}

// scattered makes uids that fall into all shards, as those of an API server do.
func scattered(n int) types.UID {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// controlled runs the controllers, and returns a client configuration whose writes they see.
func controlled(t *testing.T, cluster *memcluster.Cluster) *rest.Config {
	config := local.Control(t.Context(), cluster)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return send(next, request) })
	})
	return config
}

// send sends a request. The client names an Event by the time: in virtual time several have the same name, so each but
// the first gets another one.
func send(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPost || !strings.HasSuffix(request.URL.Path, "/events") {
		return next.RoundTrip(request)
	}
	text, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		request.Body = io.NopCloser(bytes.NewReader(text))
		response, err := next.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusConflict {
			return response, err
		}
		event := &unstructured.Unstructured{}
		if err := event.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		event.SetName(fmt.Sprintf("%s-%d", event.GetName(), n))
		if text, err = event.MarshalJSON(); err != nil {
			return nil, err
		}
	}
}

// Definitions reads the CRDs in files.
func Definitions(t testing.TB, paths ...string) (definitions []*unstructured.Unstructured) {
	t.Helper()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := controlplane.Documents(string(text))
		if err != nil {
			t.Fatal(err)
		}
		definitions = append(definitions, documents...)
	}
	return definitions
}

// Quiet advances the virtual clock by an hour and fails the test if a request that counts was sent meanwhile.
func Quiet(t testing.TB, c *testkit.Counter) {
	t.Helper()
	synctest.Wait()
	before := c.Total()
	<-time.After(time.Hour)
	synctest.Wait()
	if after := c.Total(); after != before {
		t.Errorf("%d requests within an hour without a change: %v", after-before, c.Snapshot())
	}
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
