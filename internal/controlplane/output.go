package controlplane

import (
	"io"
	"os"
	"sync"
)

// tailSize is the size of a component's output in an error.
const tailSize = 4 << 10

// tail passes output on and keeps its end.
type tail struct {
	next io.Writer

	mu   sync.Mutex
	last []byte
}

// newTail returns a tail that passes its input on to next, if there is one.
func newTail(next io.Writer) *tail {
	if next == nil && os.Getenv(attachEnv) == "true" {
		next = os.Stderr
	}
	return &tail{next: next}
}

// Write takes output of a component.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, data...)
	if excess := len(t.last) - tailSize; excess > 0 {
		t.last = append(t.last[:0], t.last[excess:]...)
	}
	if t.next == nil {
		return len(data), nil
	}
	return t.next.Write(data)
}

// String returns the end of the output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
