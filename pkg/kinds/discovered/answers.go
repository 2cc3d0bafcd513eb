package discovered

import (
	"sync"
	"time"
)

// shareFor is how long the response to a request for discovery or OpenAPI is used for other kinds, too: many operators
// look up their kinds at once when a process starts.
const shareFor = 5 * time.Second

// answers shares responses among callers that need the same one at about the same time.
type answers struct {
	mu   sync.Mutex
	live map[string]*answer
}

// answer is a response, or an error, once done is closed.
type answer struct {
	done  chan struct{}
	value any
	err   error
}

// get returns the response for a key. It joins a request that was sent within shareFor, other than stale; joined is
// false if this call has sent it. The next call after an error sends the request again.
func (a *answers) get(key string, stale *answer, request func() (any, error)) (_ *answer, joined bool) {
	a.mu.Lock()
	found := a.live[key]
	if joined = found != nil && found != stale; !joined {
		found = &answer{done: make(chan struct{})}
		if a.live == nil {
			a.live = map[string]*answer{}
		}
		a.live[key] = found
	}
	a.mu.Unlock()
	if joined {
		<-found.done
		return found, true
	}
	found.value, found.err = request()
	if close(found.done); found.err != nil {
		a.forget(key, found)
	} else {
		time.AfterFunc(shareFor, func() { a.forget(key, found) })
	}
	return found, false
}

// forget makes later calls send a request of their own, unless another one was sent since.
func (a *answers) forget(key string, old *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.live[key] == old {
		delete(a.live, key)
	}
}

// drop is forget for whatever is known for the keys, or for all without any.
func (a *answers) drop(keys ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(keys) == 0 {
		clear(a.live)
	}
	for _, key := range keys {
		delete(a.live, key)
	}
}
