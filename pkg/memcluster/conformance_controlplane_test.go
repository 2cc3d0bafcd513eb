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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/memcluster"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.WithCRDs("testdata/crds"), testkit.WithControllers(controlplane.GarbageCollector, controlplane.Namespaces))
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
	watches map[string]*bufio.Reader
	masks   *masks
}

func TestConformance(t *testing.T) {
	names := map[string]bool{}
	for _, r := range conformance(t) {
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
		if s.has(soon) {
			testkit.Eventually(t, testkit.Patience, func() (bool, string) {
				if diff := cmp.Diff(want, got); diff != "" {
					actual.answers, actual.masks = actual.answers[:i], before.clone()
					want = actual.do(s)
					return false, diff
				}
				return true, ""
			})
		}
		if s.has(otherMessage) {
			want, got = withoutMessages(want), withoutMessages(got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s\n(- API server, + memory):\n%s", at, r.reason, diff)
		}
	}
}

func connect(t *testing.T, server, ns string, config *rest.Config, cluster *memcluster.Cluster) *session {
	t.Helper()
	client := must.Get(rest.HTTPClientFor(config)).In(t)
	d := must.Get(dynamic.NewForConfig(config)).In(t)
	return &session{
		t:       t,
		server:  server,
		ns:      ns,
		client:  client,
		host:    strings.TrimSuffix(config.Host, "/"),
		apply:   apply.New(d, "operator"),
		cluster: cluster,
		watches: map[string]*bufio.Reader{},
		masks:   newMasks(),
	}
}

// do runs a step and returns what is compared.
func (s *session) do(st step) any {
	s.t.Helper()
	var answer, shown any
	switch run := operations[st.method]; {
	case run != nil:
		answer, shown = s.operate(st, run)
	case st.method == "EVENTS":
		shown = s.read(st)
	case st.method == "ENDS":
		for err := error(nil); err == nil; {
			_, err = s.line(s.watches[st.path])
			shown = fmt.Sprint(err)
		}
	default:
		if st.has(soon) && s.cluster != nil {
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
		must.Get(fmt.Sscan(parts[1], &n)).In(s.t)
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
	text := must.Get(json.Marshal(s.answers[n-1])).In(s.t)
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
	if strings.Contains(st.options, "/") {
		contentType = st.options[strings.LastIndex(st.options, " ")+1:]
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.host+s.fill(st.path), strings.NewReader(s.fill(st.body)))
	if err != nil {
		s.t.Fatal(err)
	}
	if st.body != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if st.has(metadata) {
		request.Header.Set("Accept", "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadata"+strings.TrimPrefix(st.options, metadata))
	}
	if st.has(table) {
		request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	}
	request.Header.Set("User-Agent", "conformance/1")
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(s.server, err)
	}
	if strings.Contains(st.path, "watch=true") && response.StatusCode == http.StatusOK {
		s.t.Cleanup(func() { _ = response.Body.Close() })
		s.watches[strconv.Itoa(len(s.answers)+1)] = bufio.NewReader(response.Body)
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
	var events []any
	for len(events) < int(st.body[0]-'0') {
		line, err := s.line(s.watches[st.path])
		if err != nil {
			s.t.Fatalf("%s: event %d of %s: %v", s.server, len(events)+1, st.body, err)
		}
		var event any
		must.Do(s.t, decode(line, &event))
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
	case <-time.After(testkit.Patient(testkit.Patience)):
		return nil, fmt.Errorf("none came")
	}
}

// decode parses JSON and keeps numbers as text.
func decode(text []byte, into *any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

func normalJSON(t *testing.T, v any) any {
	text := must.Get(json.Marshal(v)).In(t)
	var out any
	must.Do(t, decode(text, &out))
	return out
}
