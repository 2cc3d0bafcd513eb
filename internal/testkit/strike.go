package testkit

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Mishap is a failure of one write of a client.
type Mishap string

// The mishaps. After the first two no request of the client passes, as if its process had died.
const (
	DiesBefore Mishap = "dies before"
	DiesAfter  Mishap = "dies after"
	// Lost, Ended, Answered504 and Answered409 happen after the write was done; the last four without it.
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

// Write is the Nth write of a client with this key (see Request.Key), counted from 1.
type Write struct {
	Key    string
	Number int
}

// Strike makes one write of a client fail. Dry runs, leases and events do not count.
type Strike struct {
	write  Write
	mishap Mishap

	mu     sync.Mutex
	writes []Write
	struck chan struct{}
	dead   bool
}

// NewStrike prepares a mishap; with the zero Write there is none.
func NewStrike(write Write, mishap Mishap) *Strike {
	return &Strike{write: write, mishap: mishap, struck: make(chan struct{})}
}

// EachWrite runs a scenario without mishaps, and then again for each of its writes and mishaps, in parallel. A repeated
// scenario may have fewer writes; most mishaps must happen.
func EachWrite(t *testing.T, mishaps []Mishap, tell func(t *testing.T, s *Strike)) {
	t.Helper()
	calm := NewStrike(Write{}, "")
	tell(t, calm)
	var strikes []*Strike
	for _, write := range calm.Writes() {
		for _, mishap := range mishaps {
			strike := NewStrike(write, mishap)
			strikes = append(strikes, strike)
			t.Run(fmt.Sprintf("%s %d %s", write.Key, write.Number, mishap), func(t *testing.T) {
				t.Parallel()
				tell(t, strike)
			})
		}
	}
	t.Cleanup(func() {
		missed := 0
		for _, strike := range strikes {
			if !strike.happened() {
				missed++
			}
		}
		if t.Logf("%d strikes, %d without their write", len(strikes), missed); missed > len(strikes)/2 {
			t.Error("too many strikes had no write")
		}
	})
}

func (s *Strike) happened() bool {
	select {
	case <-s.struck:
		return true
	default:
		return false
	}
}

// Writes returns the counted writes, in order.
func (s *Strike) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// Life is a program that a Strike may kill, and that is then restarted.
type Life struct {
	t       testing.TB
	strike  *Strike
	config  *rest.Config
	start   func(*rest.Config) (stop func())
	stop    func()
	revived bool
}

// Run starts a program with the failing client.
func (s *Strike) Run(t testing.TB, config *rest.Config, start func(*rest.Config) (stop func())) *Life {
	t.Helper()
	return &Life{t: t, strike: s, config: config, start: start, stop: start(s.Wrap(config))}
}

// Eventually waits for a condition, and restarts the program if it dies meanwhile.
func (l *Life) Eventually(timeout time.Duration, condition func() (ok bool, why string)) {
	l.t.Helper()
	Eventually(l.t, timeout, func() (bool, string) { l.revive(); return condition() })
}

// Stop stops the program.
func (l *Life) Stop() { l.stop() }

func (l *Life) revive() {
	if !l.revived && slices.Contains(Deaths, l.strike.mishap) && l.strike.happened() {
		l.revived = true
		l.stop()
		l.stop = l.start(l.config)
	}
}

// Wrap returns a copy of the client configuration whose write fails.
func (s *Strike) Wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return s.send(next, request) })
	})
	return config
}

// count reports whether the request is the failing write, and whether the client is dead.
func (s *Strike) count(request *http.Request) (hit, dead bool) {
	r := describe(request)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || !r.Mutating() || r.Resource == "leases" || r.Resource == "events" {
		return false, s.dead
	}
	write := Write{Key: r.Key(), Number: 1}
	for _, earlier := range s.writes {
		if earlier.Key == write.Key {
			write.Number++
		}
	}
	s.writes = append(s.writes, write)
	return write == s.write, false
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
