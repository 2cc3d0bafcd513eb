package discovered

import (
	"crypto/sha512"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

var thing = schema.GroupVersionKind{Group: "tools.example.com", Version: "v1", Kind: "Thing"}

const (
	discoveryPath = "/apis/tools.example.com/v1"
	indexPath     = "/openapi/v3"
	schemaPath    = "/openapi/v3/apis/tools.example.com/v1"

	thingList = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"tools.example.com/v1","resources":[
		{"name":"things/status","kind":"Thing","namespaced":true},
		{"name":"things","kind":"Thing","namespaced":true}]}`
	thingSchema = `{"components":{"schemas":{
		"com.example.Thing":{"type":"object","description":"A thing.","x-kubernetes-group-version-kind":[{"group":"tools.example.com","version":"v1","kind":"Thing"}],
			"properties":{"self":{"allOf":[{"$ref":"#/components/schemas/com.example.Thing"}]},
				"part":{"$ref":"#/components/schemas/com.example.Part"}}},
		"com.example.Part":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object"}}}}}`
)

// indexOfThing returns an index with the URL of the schema document, with its hash, as the API server does.
func indexOfThing(text string) string {
	return fmt.Sprintf(`{"paths":{"apis/tools.example.com/v1":{"serverRelativeURL":"%s?hash=%X"}}}`, schemaPath, sha512.Sum512([]byte(text)))
}

// documents is a counter: each server has other schemas, so that none is in the cache of this process.
var documents atomic.Int64

// server responds by path; a path without a response is a 404. It counts the requests.
type server struct {
	mu      sync.Mutex
	answers map[string]string
	codes   map[string]int
	count   map[string]int
}

func newServer() *server {
	text := strings.Replace(thingSchema, "A thing", fmt.Sprint("Thing ", documents.Add(1)), 1)
	return &server{
		answers: map[string]string{discoveryPath: thingList, indexPath: indexOfThing(text), schemaPath: text},
		codes:   map[string]int{}, count: map[string]int{},
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[r.URL.Path]++
	text, ok := s.answers[r.URL.Path]
	code := s.codes[r.URL.Path]
	if code == 0 && !ok {
		code = http.StatusNotFound
	}
	if code != 0 {
		http.Error(w, http.StatusText(code), code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(text))
}

func (s *server) set(path string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[path] = code
}

func (s *server) answer(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = text
}

func (s *server) requests() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.count {
		n += c
	}
	return n
}

func (s *server) cluster(t *testing.T) *Cluster {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	c := must.Get(New(&rest.Config{Host: web.URL})).In(t)
	return c
}

func TestLiveKind(t *testing.T) {
	k := must.Get(newServer().cluster(t).Kind(thing)).In(t)
	if k.GVR.Resource != "things" || !k.Namespaced || !k.HasStatus {
		t.Errorf("got %+v, want the namespaced resource things with a status", k)
	}
	if k.Schema.Description != "" {
		t.Error("descriptions are still there")
	}
	part := k.Schema.Properties["part"]
	if kind, _ := part.Extensions.GetString("x-kubernetes-list-type"); kind != "map" {
		t.Errorf("list type %q behind a reference, want map", kind)
	}
	if again := k.Schema.Properties["self"].Properties["self"]; !again.Type.Contains("object") || again.Properties != nil {
		t.Errorf("a circular reference became %v, want an object without properties", again)
	}
}

// TestLiveFailures: what makes a kind unknown, what is only a failing request, and what leaves the kind without a
// schema, which is then requested again.
func TestLiveFailures(t *testing.T) {
	thin, empty := thing.GroupVersion().WithKind("Thin"), thing.GroupVersion().WithKind("Completely")
	for _, tc := range []struct {
		reason  string
		gvk     schema.GroupVersionKind
		path    string
		code    int
		unknown bool
		text    string // of the error; the kind is found if it is empty
	}{
		{"404 for the group and version: it is not there", thing, discoveryPath, 404, true, "install its CustomResourceDefinition"},
		{"the group is there, the kind is not", thin, "", 0, true, "did you mean Thing?"},
		{"an empty list of resources", empty, "", 0, true, "has no kind Completely"},
		{"500 says nothing about the kind", thing, discoveryPath, 500, false, "asking the API server for the kinds"},
		{"503 is what an aggregated API server that is down gets", thing, discoveryPath, 503, false, "asking the API server"},
		{"403 says nothing about the kind", thing, discoveryPath, 403, false, "asking the API server"},
		{"401 is about us", thing, schemaPath, 401, false, "asking the API server for the schema"},
		{"500 at OpenAPI is a failing request", thing, indexPath, 500, false, "asking the API server for the schema"},
		{"an API server that publishes no OpenAPI", thing, indexPath, 404, false, ""},
		{"OpenAPI is published a moment after the kind is served", thing, schemaPath, 404, false, ""},
		{"a cluster that took system:discovery away", thing, indexPath, 403, false, ""},
	} {
		s := newServer()
		s.set(tc.path, tc.code)
		c := s.cluster(t)
		k, err := c.Kind(tc.gvk)
		if (err == nil) != (tc.text == "") || errors.Is(err, kinds.ErrUnknown) != tc.unknown || err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.text)
		}
		if err != nil {
			continue
		}
		if k.Schema != nil || k.SchemaErr == nil {
			t.Errorf("%s: schema %v, reason %v", tc.reason, k.Schema, k.SchemaErr)
		}
		s.set(tc.path, 0)
		if k, err = c.Kind(thing); err != nil || k.Schema == nil {
			t.Errorf("%s: asked again: schema %v, %v", tc.reason, k.Schema, err)
		}
	}
}

func TestLiveCache(t *testing.T) {
	s := newServer()
	c := s.cluster(t)
	ask := func(want int) {
		t.Helper()
		before := s.requests()
		must.Get(c.Kind(thing)).In(t)
		if got := s.requests() - before; got != want {
			t.Errorf("%d requests, want %d", got, want)
		}
	}
	if s.requests() != 0 {
		t.Error("Live made a request")
	}
	ask(3)
	ask(0)
	c.Invalidate(schema.GroupVersionKind{Version: "v1", Kind: "Other"})
	ask(0)
	c.Invalidate(thing)
	ask(2)
	c.Invalidate()
	ask(2)
	s.set(discoveryPath, 404)
	c.Invalidate()
	if _, err := c.Kind(thing); !errors.Is(err, kinds.ErrUnknown) {
		t.Errorf("got %v after the definition went, want ErrUnknown", err)
	}
	s.set(discoveryPath, 0)
	ask(2)
	changed := strings.Replace(s.answers[schemaPath], `"com.example.Part":{"type":"array"`, `"com.example.Part":{"type":"object"`, 1)
	s.answer(indexPath, indexOfThing(changed)) // another API server has it already, this one does not
	c.Invalidate()
	ask(3)
	s.answer(schemaPath, changed)
	c.Invalidate()
	ask(3)
	if k, err := c.Kind(thing); err != nil || !k.Schema.Properties["part"].Type.Contains("object") {
		t.Errorf("the changed schema is not read: %v, %v", k, err)
	}
	c.Invalidate()
	ask(2)
}

func TestLiveConcurrently(t *testing.T) {
	c := newServer().cluster(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := c.Kind(thing); err != nil {
				t.Error(err)
			}
			c.Invalidate(thing)
		})
	}
	group.Wait()
}

// TestGone: a kind has no objects only if the API server responds, serves it in no version and has no definition.
func TestGone(t *testing.T) {
	const group, other = "/apis/tools.example.com", "/apis/tools.example.com/v2"
	definitions := func(kinds ...string) string {
		items := make([]string, len(kinds))
		for i, kind := range kinds {
			items[i] = fmt.Sprintf(`{"metadata":{"name":"%ses.tools.example.com"},"spec":{"group":"tools.example.com","names":{"kind":%q}}}`, kind, kind)
		}
		return `{"items":[{"metadata":{"name":"things.other.example.com"}}` + strings.Join(append([]string{""}, items...), ",") + "]}"
	}
	s := newServer()
	s.set(discoveryPath, 404)
	s.answers[group] = `{"kind":"APIGroup","apiVersion":"v1","name":"tools.example.com","versions":[{"groupVersion":"tools.example.com/v2","version":"v2"}]}`
	s.answers[other] = strings.ReplaceAll(thingList, "tools.example.com/v1", "tools.example.com/v2")
	s.answers[definitionsPath] = definitions("Thing")
	c := s.cluster(t)
	for _, tc := range []struct {
		reason        string
		path          string
		code          int
		unknown, gone bool
		text          string
	}{
		{"another version is served", "", 0, true, false, "it serves the kind in tools.example.com/v2"},
		{"whether it is cannot be told", other, 503, false, false, "asking the API server for the kinds of tools.example.com/v2"},
		{"the group cannot be asked", group, 500, false, false, "asking the API server for the versions of tools.example.com"},
		{"no version is served, but there is a definition", group, 404, true, false, "its CustomResourceDefinition Thinges.tools.example.com serves it in no version"},
		{"definitions must not be read", definitionsPath, 403, true, false, "grant list on customresourcedefinitions.apiextensions.k8s.io"},
		{"definitions cannot be read", definitionsPath, 503, false, false, "asking the API server for the CustomResourceDefinition of Thing.tools.example.com"},
		{"there are no definitions", definitionsPath, 404, true, true, "install its CustomResourceDefinition"},
		{"the version is served", discoveryPath, 0, false, false, ""},
	} {
		s.set(tc.path, tc.code)
		_, err := c.Served(t.Context(), thing)
		if errors.Is(err, kinds.ErrUnknown) != tc.unknown || kinds.IsNotDefined(err) != tc.gone || (err == nil) != (tc.text == "") ||
			err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: got %v", tc.reason, err)
		}
	}
	s.set(discoveryPath, 404)
	s.set(definitionsPath, 0)
	s.answer(definitionsPath, definitions("Other"))
	if _, err := c.Served(t.Context(), thing); !kinds.IsNotDefined(err) {
		t.Errorf("the definition is of another kind: %v", err)
	}
	asked := s.count[definitionsPath]
	if _, err := c.Served(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}); !kinds.IsNotDefined(err) || s.count[definitionsPath] != asked {
		t.Errorf("a built-in kind has no definition to ask for: %v", err)
	}
}

// thingsAndParts makes the server serve a second kind of the group and version, Part.
func (s *server) thingsAndParts() {
	s.answer(discoveryPath, strings.Replace(thingList, `"resources":[`, `"resources":[{"name":"parts","kind":"Part","namespaced":true},`, 1))
	text := strings.Replace(s.answers[schemaPath], `"com.example.Part":{`,
		`"com.example.Part":{"x-kubernetes-group-version-kind":[{"group":"tools.example.com","version":"v1","kind":"Part"}],`, 1)
	s.answer(schemaPath, text)
	s.answer(indexPath, indexOfThing(text))
}

// TestLiveShared: many operators look up the kinds of one group and version at once, with one request for each
// document.
func TestLiveShared(t *testing.T) {
	s := newServer()
	s.thingsAndParts()
	c := s.cluster(t)
	part := thing.GroupVersion().WithKind("Part")
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			gvk := thing
			if i%2 == 0 {
				gvk = part
			}
			if k, err := c.Kind(gvk); err != nil || k.Schema == nil {
				t.Errorf("%s: %+v, %v", gvk.Kind, k, err)
			}
		})
	}
	group.Wait()
	if n := s.requests(); n != 3 {
		t.Errorf("%d requests, want 3: %v", n, s.count)
	}
	c.Invalidate(thing)
	if _, err := c.Kind(part); err != nil || s.requests() != 3 {
		t.Errorf("%d requests: a kind was forgotten with another one: %v", s.requests(), err)
	}
}

// TestLiveSharedTooOld: a kind that is not in a response which others have requested may be newer.
func TestLiveSharedTooOld(t *testing.T) {
	s := newServer()
	c := s.cluster(t)
	must.Get(c.Kind(thing)).In(t)
	s.thingsAndParts()
	k, err := c.Kind(thing.GroupVersion().WithKind("Part"))
	if err != nil || k.GVR.Resource != "parts" {
		t.Fatalf("a kind that was installed a moment after the first request: %+v, %v", k, err)
	}
	if k.Schema == nil {
		t.Errorf("its schema is %v", k.SchemaErr)
	}
}

func TestLiveVersionShared(t *testing.T) {
	s := newServer()
	s.answer("/version", `{"gitVersion":"v1.34.1"}`)
	c := s.cluster(t)
	for range 3 {
		if v, err := c.Version(); err != nil || v.String() != "1.34.1" {
			t.Errorf("got %v, %v", v, err)
		}
	}
	c.Invalidate()
	_, err := c.Version()
	if s.count["/version"] != 2 || err != nil {
		t.Errorf("%d requests, want one, and one after Invalidate: %v", s.count["/version"], err)
	}
}

// TestLiveGone: an unreachable API server is not an unknown kind.
func TestLiveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // requests are tried again for a while
		faults := testkit.NewFaults()
		faults.Drop(testkit.On("GET", ""))
		cluster := must.Get(New(faults.Wrap(&rest.Config{Host: "http://gone.example.com"}))).In(t)
		if _, err := cluster.Kind(thing); err == nil || errors.Is(err, kinds.ErrUnknown) {
			t.Errorf("got %v, want an error that is not ErrUnknown", err)
		}
	})
}
