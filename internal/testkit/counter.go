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
	"k8s.io/client-go/transport"
)

// Request is one request to the API server.
type Request struct {
	// Verb is the RBAC verb in upper case: GET, LIST, WATCH, CREATE, UPDATE, PATCH, DELETE or DELETECOLLECTION; for
	// requests without a resource, GET.
	Verb string
	// Resource is the plural name and, after a slash, the subresource: "widgets", "widgets/status". It is empty for
	// requests without a resource.
	Resource  string
	Group     string
	Namespace string
	Name      string
	// Path is the path in the URL, Query its query.
	Path, Query string
	UserAgent   string
	// User is the user, or the impersonated one; Sender is the user in both cases, and Received when the API server
	// received the request. Only Audit sets them; of an API server in memory it knows only impersonated users.
	User, Sender string
	Received     time.Time
	// Sent is when the client sent it. Only a Counter sets it.
	Sent time.Time
	// Apply means server-side apply, not another patch; DryRun a dry run. Only a Counter sets Apply.
	Apply, DryRun bool
	// Code is the status of the response; 0 if there was none. Err is why there was none: a transport below the Counter
	// may have refused to send the request. Only a Counter sets Err.
	Code int
	Err  error
}

// Key returns the key in counts: the verb and the resource ("PATCH widgets/status"), or the path if there is no
// resource ("GET /version").
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

// isStream reports whether an informer requests its first list as events. An API server before 1.32 refuses that, and
// the informer lists a page instead: a Counter skips both, so that all versions count the same.
func (r Request) isStream() bool {
	return r.Verb == "WATCH" && strings.Contains(r.Query, "sendInitialEvents=true")
}

func (r Request) isPage() bool { return r.Verb == "LIST" && strings.Contains(r.Query, "limit=500") }

// counts reports whether Total and Mutating count the request: one for a resource, but not a watch or for a lease.
func (r Request) counts() bool {
	return r.Resource != "" && r.Verb != "WATCH" && r.Resource != "leases"
}

// Counter records the requests that a client sends. It is in the transport, so it includes retries of client-go.
type Counter struct {
	mu       sync.Mutex
	requests []*Request
	refused  map[string]bool // paths for which the API server does not stream lists
}

// NewCounter returns an empty counter.
func NewCounter() *Counter { return &Counter{refused: map[string]bool{}} }

// Wrap returns a copy of the client configuration whose requests are counted. Several may share one counter. Around
// Faults, it sees their responses.
func (c *Counter) Wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			sent := describe(request)
			sent.Sent = time.Now()
			sent.Received = sent.Sent // if it counts for Audit
			c.add(&sent)
			response, err := next.RoundTrip(request)
			if err != nil {
				c.failed(&sent, err)
				return nil, err
			}
			c.answered(&sent, response.StatusCode)
			return response, nil
		})
	})
	return config
}

// add records a request when it is sent.
func (c *Counter) add(request *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if request.isPage() && c.refused[request.Path] {
		return
	}
	c.requests = append(c.requests, request)
}

// failed sets why a request has no response.
func (c *Counter) failed(request *Request, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	request.Err = err
}

// answered sets the response of a request.
func (c *Counter) answered(request *Request, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	request.Code = code
	if code >= http.StatusBadRequest && request.isStream() {
		c.refused[request.Path] = true
		c.requests = slices.DeleteFunc(c.requests, func(r *Request) bool { return r == request })
	}
}

// Requests returns the requests since the last Reset, in order; with conditions, only those that match all of them.
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

// Snapshot returns the number of requests by Key since the last Reset.
func (c *Counter) Snapshot() map[string]int {
	counts := map[string]int{}
	for _, request := range c.Requests() {
		counts[request.Key()]++
	}
	return counts
}

// Total returns the number of requests for resources since the last Reset, without watches and leases; with conditions,
// only of those that match all of them.
func (c *Counter) Total(conditions ...func(Request) bool) int {
	return len(c.Requests(append(conditions, Request.counts)...))
}

// Mutating returns the number of requests in Total that could change an object, without dry runs.
func (c *Counter) Mutating(conditions ...func(Request) bool) int {
	return c.Total(append(conditions, Request.Mutating)...)
}

// Before is a condition for requests that were sent before a time: load on the machine cannot add requests to such an
// interval.
func Before(moment time.Time) func(Request) bool {
	return func(r Request) bool { return r.Sent.Before(moment) }
}

// Reset removes all records.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = nil
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// infos parses requests as the API server does.
var infos = apirequest.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// describe returns the Request of an HTTP request.
func describe(request *http.Request) Request {
	described := Request{
		Verb:      request.Method,
		Path:      request.URL.Path,
		Query:     request.URL.RawQuery,
		UserAgent: request.UserAgent(),
		User:      request.Header.Get(transport.ImpersonateUserHeader),
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

// dryDelete reports whether a delete is a dry run, according to its body.
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
