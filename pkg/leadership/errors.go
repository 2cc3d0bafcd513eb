package leadership

import (
	"fmt"
	"time"
)

// RefusedError is about a write that was not sent.
type RefusedError struct {
	Lease string // NAMESPACE/NAME
	// After is how long before the refusal the last renewal of the Lease was sent; 0 if there was none.
	After time.Duration
}

func (e *RefusedError) Error() string {
	if e.After == 0 {
		return fmt.Sprintf("not sent: this process does not hold the Lease %s", e.Lease)
	}
	return fmt.Sprintf("not sent: the Lease %s was last renewed %s ago, so that another process may lead", e.Lease,
		e.After.Round(time.Millisecond))
}

// LostError says how a tenure ended that was not given up.
type LostError struct {
	Lease string // NAMESPACE/NAME
	// Holder holds the Lease now; empty if that is not known, since the Lease could not be renewed.
	Holder string
	// Deadline is the renew deadline, after which nothing was written.
	Deadline time.Duration
	// Err is why the API server refused to have it renewed; nil if it did not, or was not reached.
	Err error
}

// Unwrap gives errors.As the refusal.
func (e *LostError) Unwrap() error { return e.Err }

func (e *LostError) Error() string {
	why := fmt.Sprintf("it could not be renewed within %s, and nothing was written after that", e.Deadline)
	if e.Holder != "" {
		why = fmt.Sprintf("%s holds it now; nothing was written after the %s in which it was to be renewed", e.Holder, e.Deadline)
	}
	if e.Err != nil {
		why += fmt.Sprintf(" (%v)", e.Err)
	}
	return fmt.Sprintf("the Lease %s was lost: %s", e.Lease, why)
}

// DeniedError is about a Lease that this process may not have.
type DeniedError struct {
	Lease string // NAMESPACE/NAME
	Err   error  // what the API server answered
}

func (e *DeniedError) Error() string { return fmt.Sprintf("taking Lease %s: %v", e.Lease, e.Err) }

// Unwrap gives errors.As the answer.
func (e *DeniedError) Unwrap() error { return e.Err }
