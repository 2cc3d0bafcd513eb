package testkit

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// Request is one request to the API server.
type Request struct {
	// Verb is that of RBAC in upper case: GET, LIST, WATCH, CREATE, UPDATE, PATCH,
	// DELETE or DELETECOLLECTION; for requests that are for no resource, GET.
	Verb string
	// Resource is the plural name and, after a slash, the subresource: "widgets",
	// "widgets/status". It is empty for requests that are for no resource.
	Resource  string
	Group     string
	Namespace string
	Name      string
	// Path is the URL's path, Query what follows it.
	Path, Query string
	UserAgent   string
	// User is who asked, where it is impersonation who is impersonated; Sender is who
	// asked in either case, and Received when the API server began with it. Seen by
	// Audit only.
	User, Sender string
	Received     time.Time
	// Sent is when the client sent it. Seen by a Counter only.
	Sent time.Time
	// Apply tells server-side apply from other patches; DryRun is what it says.
	// Seen by a Counter only, not by Audit: Apply.
	Apply, DryRun bool
	// Code is the answer's status; 0 if there was none.
	Code int
}

// Key is how the request is counted: the verb and the resource ("PATCH
// widgets/status"), or the path where there is no resource ("GET /version").
func (r Request) Key() string {
	if r.Resource == "" {
		return r.Verb + " " + r.Path
	}
	return r.Verb + " " + r.Resource
}

// Mutating reports whether the request can change an object.
func (r Request) Mutating() bool {
	switch r.Verb {
	case "CREATE", "UPDATE", "PATCH", "DELETE", "DELETECOLLECTION":
		return !r.DryRun && r.Resource != ""
	}
	return false
}

// isStream reports whether an informer asks for its first list as events. An API server before 1.32 refuses that, and the informer
// takes a page of a list instead: to a Counter neither has happened, as on a newer one.
func (r Request) isStream() bool {
	return r.Verb == "WATCH" && strings.Contains(r.Query, "sendInitialEvents=true")
}

func (r Request) isPage() bool { return r.Verb == "LIST" && strings.Contains(r.Query, "limit=500") }

// counts reports whether Total and Mutating count the request: one for a
// resource, neither a watch nor about a lease.
func (r Request) counts() bool {
	return r.Resource != "" && r.Verb != "WATCH" && r.Resource != "leases"
}

// Counter records the requests that a client sends. It sees them in the
// transport, so retries that client-go makes by itself are in it.
type Counter struct {
	mu       sync.Mutex
	requests []*Request
	refused  map[string]bool // paths of which the API server streams no lists
}

// NewCounter returns a counter that has counted nothing.
func NewCounter() *Counter { return &Counter{refused: map[string]bool{}} }

// Wrap returns a copy of the client configuration whose requests are counted.
// Several may share one counter. Wrapped around Faults, it sees what they answer.
func (c *Counter) Wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			sent := describe(request)
			sent.Sent = time.Now()
			c.add(&sent)
			response, err := next.RoundTrip(request)
			if err == nil {
				c.answered(&sent, response.StatusCode)
			}
			return response, err
		})
	})
	return config
}

// add records a request that is being sent.
func (c *Counter) add(request *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if request.isPage() && c.refused[request.Path] {
		return
	}
	c.requests = append(c.requests, request)
}

// answered completes a request that was added.
func (c *Counter) answered(request *Request, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	request.Code = code
	if code >= http.StatusBadRequest && request.isStream() {
		c.refused[request.Path] = true
		c.requests = slices.DeleteFunc(c.requests, func(r *Request) bool { return r == request })
	}
}

// Requests returns what was sent since the last Reset, in order; with conditions,
// only the requests for which all of them hold.
func (c *Counter) Requests(conditions ...func(Request) bool) []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var requests []Request
	for _, request := range c.requests {
		if all(conditions, *request) {
			requests = append(requests, *request)
		}
	}
	return requests
}

// all reports whether every condition holds for the request.
func all(conditions []func(Request) bool, request Request) bool {
	return !slices.ContainsFunc(conditions, func(holds func(Request) bool) bool { return !holds(request) })
}

// Snapshot returns how many requests of each Key were sent since the last Reset.
func (c *Counter) Snapshot() map[string]int {
	counts := map[string]int{}
	for _, request := range c.Requests() {
		counts[request.Key()]++
	}
	return counts
}

// Total returns how many requests for resources were sent since the last Reset,
// without watches, leases, and what is for no resource (discovery, OpenAPI); with
// conditions, only of those for which all of them hold.
func (c *Counter) Total(conditions ...func(Request) bool) int {
	return len(c.Requests(append(conditions, Request.counts)...))
}

// Mutating returns how many of Total could change an object; a dry run cannot.
func (c *Counter) Mutating(conditions ...func(Request) bool) int {
	return c.Total(append(conditions, Request.Mutating)...)
}

// Before is a condition for requests that were sent before a moment: a busy
// machine cannot make a stretch of time longer that ends there.
func Before(moment time.Time) func(Request) bool {
	return func(r Request) bool { return r.Sent.Before(moment) }
}

// Reset forgets everything.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = nil
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// infos reads requests as the API server does.
var infos = apirequest.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// describe tells what a request is for.
func describe(request *http.Request) Request {
	described := Request{
		Verb:      request.Method,
		Path:      request.URL.Path,
		Query:     request.URL.RawQuery,
		UserAgent: request.UserAgent(),
		Apply:     strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch+"),
		DryRun:    request.URL.Query().Get("dryRun") == "All" || dryDelete(request),
	}
	info, err := infos.NewRequestInfo(request)
	if err != nil || !info.IsResourceRequest {
		return described
	}
	described.Verb = strings.ToUpper(info.Verb)
	described.Resource = info.Resource
	if info.Subresource != "" {
		described.Resource += "/" + info.Subresource
	}
	described.Group, described.Namespace, described.Name = info.APIGroup, info.Namespace, info.Name
	return described
}

// dryDelete reports whether a delete is a dry run, which its body says.
func dryDelete(request *http.Request) bool {
	if request.Method != http.MethodDelete || request.GetBody == nil {
		return false
	}
	body, err := request.GetBody()
	if err != nil {
		return false
	}
	var options metav1.DeleteOptions
	err = json.NewDecoder(body).Decode(&options)
	return err == nil && slices.Contains(options.DryRun, metav1.DryRunAll)
}
