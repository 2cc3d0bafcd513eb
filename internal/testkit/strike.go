package testkit

import (
	"io"
	"net/http"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
)

// Mishap is what happens to one write of a client.
type Mishap string

// The mishaps. After the first two nothing of the client passes any more, as where its process has died.
const (
	DiesBefore Mishap = "dies before"
	DiesAfter  Mishap = "dies after"
	// Lost, Ended, Answered504 and Answered409 follow a write that was carried out; the last four one that was not.
	Lost        Mishap = "answer lost"
	Ended       Mishap = "answer ends"
	Answered504 Mishap = "done, 504"
	Answered409 Mishap = "done, 409"
	Dropped     Mishap = "not sent"
	Refused504  Mishap = "not done, 504"
	Refused409  Mishap = "not done, 409"
)

// Deaths are the mishaps that end a process, Answers those that it survives.
var (
	Deaths  = []Mishap{DiesBefore, DiesAfter}
	Answers = []Mishap{Lost, Ended, Answered504, Answered409, Dropped, Refused504, Refused409}
)

// Strike has one write of a client go wrong: the one of that number, from 1, among those that match. Dry runs, leases and
// events do not count.
type Strike struct {
	number int
	mishap Mishap
	match  func(Request) bool

	mu     sync.Mutex
	writes []Request
	struck chan struct{}
	dead   bool
}

// NewStrike prepares a mishap. match is nil for every write; with number 0 none goes wrong.
func NewStrike(number int, mishap Mishap, match func(Request) bool) *Strike {
	return &Strike{number: number, mishap: mishap, match: match, struck: make(chan struct{})}
}

// Struck is closed once it has happened.
func (s *Strike) Struck() <-chan struct{} { return s.struck }

// Writes are those that were counted.
func (s *Strike) Writes() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.writes...)
}

// Wrap returns a copy of the client configuration whose write goes wrong.
func (s *Strike) Wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return s.send(next, request) })
	})
	return config
}

// count tells whether the request is the one, and whether the client is dead.
func (s *Strike) count(request *http.Request) (hit, dead bool) {
	r := describe(request)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || !r.Mutating() || r.Resource == "leases" || r.Resource == "events" || s.match != nil && !s.match(r) {
		return false, s.dead
	}
	s.writes = append(s.writes, r)
	return len(s.writes) == s.number, false
}

func (s *Strike) send(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	hit, dead := s.count(request)
	if dead {
		return drop(request, syscall.ECONNREFUSED)
	}
	if !hit {
		return next.RoundTrip(request)
	}
	defer close(s.struck)
	switch s.mishap {
	case DiesBefore:
		s.die()
		return drop(request, syscall.ECONNREFUSED)
	case Dropped:
		return drop(request, syscall.ECONNRESET)
	case Refused504:
		return refusedUnsent(request, http.StatusGatewayTimeout)
	case Refused409:
		return refusedUnsent(request, http.StatusConflict)
	}
	response, err := next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	switch s.mishap {
	case DiesAfter:
		s.die()
	case Ended:
		return nil, io.ErrUnexpectedEOF
	case Answered504:
		return refusal(request, http.StatusGatewayTimeout)
	case Answered409:
		return refusal(request, http.StatusConflict)
	}
	return nil, syscall.ECONNRESET
}

func (s *Strike) die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
}

func drop(request *http.Request, err error) (*http.Response, error) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return nil, err
}

func refusedUnsent(request *http.Request, code int) (*http.Response, error) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return refusal(request, code)
}
