package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// retryAfter is the Retry-After of a throttled request, in seconds.
const retryAfter = 1

// Faults makes requests of a client fail. Wrap a client configuration once; switch faults on and off while the client
// runs.
type Faults struct {
	mu     sync.Mutex
	faults []*Fault
	open   map[*body]struct{}
}

// NewFaults returns Faults without a fault.
func NewFaults() *Faults { return &Faults{open: map[*body]struct{}{}} }

// Fault is one active fault.
type Fault struct {
	owner  *Faults
	match  func(*http.Request) bool
	answer func(*http.Request) (*http.Response, error)
	hits   []time.Time
}

// Answer makes matching requests fail with an HTTP status (403, 404, 409, 422, 429, 500, 503 …) and the API server's
// body for it. They do not reach the API server. Later faults take precedence.
func (f *Faults) Answer(code int, match func(*http.Request) bool) *Fault {
	return f.add(match, func(request *http.Request) (*http.Response, error) { return refusal(request, code) })
}

// Drop makes matching requests fail like a reset connection. They do not reach the API server.
func (f *Faults) Drop(match func(*http.Request) bool) *Fault {
	return f.add(match, func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET })
}

// Lose lets matching requests reach the API server, but loses the responses like a reset connection: the client does
// not know the results.
func (f *Faults) Lose(match func(*http.Request) bool) *Fault {
	return f.add(match, nil)
}

// Cut breaks every open watch whose request matches, and returns how many there were.
func (f *Faults) Cut(match func(*http.Request) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	broken := 0
	for open := range f.open {
		if match(open.request) {
			open.cut()
			delete(f.open, open)
			broken++
		}
	}
	return broken
}

// Off switches the fault off.
func (f *Fault) Off() {
	f.owner.mu.Lock()
	defer f.owner.mu.Unlock()
	f.owner.faults = slices.DeleteFunc(f.owner.faults, func(other *Fault) bool { return other == f })
}

// Hits returns the number of requests that failed because of it.
func (f *Fault) Hits() int { return len(f.Times()) }

// Times returns when requests failed because of it, in order.
func (f *Fault) Times() []time.Time {
	f.owner.mu.Lock()
	defer f.owner.mu.Unlock()
	return slices.Clone(f.hits)
}

// Wrap returns a copy of the client configuration whose requests may fail.
func (f *Faults) Wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return f.send(next, request) })
	})
	return config
}

// add switches a fault on.
func (f *Faults) add(match func(*http.Request) bool, answer func(*http.Request) (*http.Response, error)) *Fault {
	fault := &Fault{owner: f, match: match, answer: answer}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fault)
	return fault
}

// find returns the fault for a request, or nil.
func (f *Faults) find(request *http.Request) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range slices.Backward(f.faults) {
		if fault.match(request) {
			fault.hits = append(fault.hits, time.Now())
			return fault
		}
	}
	return nil
}

// send sends a request or makes it fail.
func (f *Faults) send(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	fault := f.find(request)
	if fault != nil && fault.answer != nil {
		if request.Body != nil {
			_ = request.Body.Close() // a RoundTripper always closes it
		}
		return fault.answer(request)
	}
	response, err := next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if fault != nil {
		_ = response.Body.Close() // the response is lost
		return nil, syscall.ECONNRESET
	}
	if describe(request).Verb == "WATCH" {
		response.Body = f.watch(request, response.Body)
	}
	return response, nil
}

// refusal returns the API server's response with an error code.
func refusal(request *http.Request, code int) (*http.Response, error) {
	info := describe(request)
	resource, _, _ := strings.Cut(info.Resource, "/")
	status := apierrors.NewGenericServerResponse(code, strings.ToLower(info.Verb),
		schema.GroupResource{Group: info.Group, Resource: resource}, info.Name,
		"made to fail by a test", retryAfter, true).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	text, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("writing a status: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if code == http.StatusTooManyRequests {
		header.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: request,
	}, nil
}

// body is the response to a watch, which Cut can break.
type body struct {
	io.ReadCloser
	faults  *Faults
	request *http.Request

	mu     sync.Mutex
	broken bool
}

// watch tracks the response to a watch while it is open.
func (f *Faults) watch(request *http.Request, stream io.ReadCloser) io.ReadCloser {
	open := &body{ReadCloser: stream, faults: f, request: request}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[open] = struct{}{}
	return open
}

// cut breaks the stream: reads fail from now on.
func (b *body) cut() {
	b.mu.Lock()
	b.broken = true
	b.mu.Unlock()
	_ = b.ReadCloser.Close() // wakes a waiting reader
}

// Read implements io.Reader.
func (b *body) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.faults.mu.Lock()
	delete(b.faults.open, b)
	b.faults.mu.Unlock()
	return b.ReadCloser.Close()
}

// On returns a match for Faults: requests with the verb ("PATCH", "" for any) for the resource ("widgets/status", ""
// for any).
func On(verb, resource string) func(*http.Request) bool {
	return func(request *http.Request) bool {
		info := describe(request)
		return (verb == "" || verb == info.Verb) && (resource == "" || resource == info.Resource)
	}
}
