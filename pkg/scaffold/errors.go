package scaffold

import "fmt"

// RequestError is about what was asked for rather than about a file: a kind, a hole or a domain that cannot be meant.
// Its text is one line that says what to write instead.
type RequestError struct{ problem string }

// Error implements error.
func (e *RequestError) Error() string { return e.problem }

func requestf(format string, args ...any) error {
	return &RequestError{problem: fmt.Sprintf(format, args...)}
}
