//go:build controlplane

package memcluster_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/memcluster"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.WithCRDs("testdata/crds"), testkit.WithControllers(controlplane.GarbageCollector, controlplane.Namespaces))
}

// row is a sequence of requests to which both servers must respond in the same way.
type row struct {
	name, reason string
	steps        []step
}

// step is a request, or another operation on both servers. In path and body NS is the row's namespace, and ${2.metadata.uid} a
// field of the response to the second step.
type step struct {
	method, path, body string
	contentType        string // if not the usual one of the method
	accept             string
	// message means that the messages of the responses differ; only the other fields are compared.
	message bool
	// apply is an operation of pkg/apply, instead of a request.
	apply func(*session) (any, error)
	// watch opens a watch on path; events reads that many events from the watch of the step with that number.
	watch  bool
	events int
	of     int
	// ends reads events from the watch until the server ends it, which the real one may do late, and compares only that it does.
	ends bool
	// collect runs the garbage collector: the real server is polled until it responds like the one in memory.
	collect bool
}

// session is a server for one row.
type session struct {
	t       *testing.T
	server  string
	ns      string
	client  *http.Client
	host    string
	apply   *apply.Client
	cluster *memcluster.Cluster // nil for the real one
	answers []any
	watches map[int]*bufio.Reader
	masks   *masks
}

func TestConformance(t *testing.T) {
	names := map[string]bool{}
	for _, r := range conformance() {
		if names[r.name] || r.reason == "" {
			t.Errorf("row %q is there twice, or has no reason", r.name)
		}
		names[r.name] = true
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			runRow(t, r)
		})
	}
}

func runRow(t *testing.T, r row) {
	ns := testkit.Namespace(t)
	actual := connect(t, "real", ns, testkit.Config(t), nil)
	cluster := newCluster(t, ns)
	played := connect(t, "memory", ns, cluster.Config(), cluster)
	for i, s := range r.steps {
		at := fmt.Sprintf("step %d (%s %s)", i+1, s.method, s.path)
		got := played.do(s)
		before := actual.masks.clone()
		want := actual.do(s)
		if s.collect {
			testkit.Eventually(t, testkit.Patience, func() (bool, string) {
				if diff := cmp.Diff(want, got); diff != "" {
					actual.answers, actual.masks = actual.answers[:i], before.clone()
					want = actual.do(s)
					return false, diff
				}
				return true, ""
			})
		}
		if s.message {
			want, got = withoutMessages(want), withoutMessages(got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s\n(- API server, + memory):\n%s", at, r.reason, diff)
		}
	}
}

// newCluster returns a cluster in memory with the kinds of the tests, and a namespace.
func newCluster(t testing.TB, ns string, options ...memcluster.Option) *memcluster.Cluster {
	t.Helper()
	definitions, err := kinds.Definitions("testdata/crds")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := memcluster.New(definitions, options...)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns},
			"spec": map[string]any{"finalizers": []any{"kubernetes"}}, "status": map[string]any{"phase": "Active"}},
	}
	if _, err := cluster.Put(namespace); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func connect(t *testing.T, server, ns string, config *rest.Config, cluster *memcluster.Cluster) *session {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &session{
		t:       t,
		server:  server,
		ns:      ns,
		client:  client,
		host:    strings.TrimSuffix(config.Host, "/"),
		apply:   apply.New(d, "operator"),
		cluster: cluster,
		watches: map[int]*bufio.Reader{},
		masks:   newMasks(),
	}
}

// do runs a step and returns what is compared.
func (s *session) do(st step) any {
	s.t.Helper()
	var answer, shown any
	switch {
	case st.apply != nil:
		answer, shown = s.operate(st)
	case st.events > 0:
		shown = s.read(st)
	case st.ends:
		for err := error(nil); err == nil; {
			_, err = s.line(s.watches[st.of])
			shown = fmt.Sprint(err)
		}
	default:
		if st.collect && s.cluster != nil {
			s.cluster.CollectGarbage()
		}
		answer, shown = s.send(st)
	}
	s.answers = append(s.answers, answer)
	return shown
}

var reference = regexp.MustCompile(`\$\{(\d+)\.([^}]*)\}`)

// fill replaces the namespace and references to earlier responses in a text.
func (s *session) fill(text string) string {
	text = strings.ReplaceAll(text, "NS", s.ns)
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		parts := reference.FindStringSubmatch(found)
		var n int
		if _, err := fmt.Sscan(parts[1], &n); err != nil {
			s.t.Fatal(err)
		}
		value := s.answers[n-1]
		for _, key := range strings.Split(parts[2], ".") {
			m, _ := value.(map[string]any)
			value = m[key]
		}
		if value == nil {
			s.t.Fatalf("%s: %s is not in the answer %v", s.server, found, s.answers[n-1])
		}
		return fmt.Sprint(value)
	})
}

// object returns an earlier response.
func (s *session) object(n int) *unstructured.Unstructured {
	text, err := json.Marshal(s.answers[n-1])
	if err != nil {
		s.t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		s.t.Fatalf("%s: the answer to step %d is no object: %v", s.server, n, err)
	}
	return u
}

var contentTypes = map[string]string{"POST": "application/json", "PUT": "application/json", "DELETE": "application/json",
	"APPLY": "application/apply-patch+yaml", "MERGE": "application/merge-patch+json", "JSON": "application/json-patch+json"}

func (s *session) send(st step) (answer, shown any) {
	s.t.Helper()
	method := st.method
	contentType := contentTypes[method]
	switch method {
	case "APPLY", "MERGE", "JSON":
		method = http.MethodPatch
	}
	if st.contentType != "" {
		contentType = st.contentType
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.host+s.fill(st.path), strings.NewReader(s.fill(st.body)))
	if err != nil {
		s.t.Fatal(err)
	}
	if st.body != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if st.accept != "" {
		request.Header.Set("Accept", st.accept)
	}
	request.Header.Set("User-Agent", "conformance/1")
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatalf("%s: %v", s.server, err)
	}
	if st.watch && response.StatusCode == http.StatusOK {
		s.t.Cleanup(func() { _ = response.Body.Close() })
		s.watches[len(s.answers)+1] = bufio.NewReader(response.Body)
		return nil, response.StatusCode
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		s.t.Fatal(err)
	}
	var body any
	if decode(text, &body) != nil {
		body = string(text)
	}
	return body, map[string]any{"code": response.StatusCode, "body": s.masks.mask(body)}
}

// read returns the next events of a watch.
func (s *session) read(st step) any {
	s.t.Helper()
	of := st.of
	if of == 0 {
		of = 1
	}
	var events []any
	for range st.events {
		line, err := s.line(s.watches[of])
		if err != nil {
			s.t.Fatalf("%s: event %d of %d: %v", s.server, len(events)+1, st.events, err)
		}
		var event any
		if err := decode(line, &event); err != nil {
			s.t.Fatal(err)
		}
		events = append(events, s.masks.mask(event))
	}
	return events
}

func (s *session) line(from *bufio.Reader) ([]byte, error) {
	type result struct {
		line []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := from.ReadBytes('\n')
		done <- result{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-time.After(testkit.Patience):
		return nil, fmt.Errorf("none came")
	}
}

// operate runs an operation of pkg/apply.
func (s *session) operate(st step) (answer, shown any) {
	out, err := st.apply(s)
	if u, ok := out.(*unstructured.Unstructured); ok && u != nil {
		answer = u.Object
	}
	failure := apply.Classify(err)
	return answer, map[string]any{
		"body":    s.masks.mask(normalJSON(s.t, answer)),
		"reason":  failure.Reason,
		"message": s.masks.text(failure.Message),
		"fields":  apply.InvalidFields(err),
	}
}

// decode parses JSON and keeps numbers as text.
func decode(text []byte, into *any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

func normalJSON(t *testing.T, v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := decode(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
