package leadership

import (
	"fmt"
	"time"
)

// RefusedError is about a write that was not sent, or was cut off.
type RefusedError struct {
	Lock string // such as Lease NAMESPACE/NAME
	// After is how long before the refusal the last renewal of the lock was sent; 0 if there was none.
	After time.Duration
	// Sent is true if the write was cut off, so that it may have been carried out.
	Sent bool
}

func (e *RefusedError) Error() string {
	done := "not sent"
	if e.Sent {
		done = "cut off, and perhaps carried out"
	}
	if e.After == 0 {
		return fmt.Sprintf("%s: this process does not hold the %s", done, e.Lock)
	}
	return fmt.Sprintf("%s: the %s was last renewed %s ago, so that another process may hold it", done, e.Lock,
		e.After.Round(time.Millisecond))
}

// LostError says how a tenure ended that was not given up.
type LostError struct {
	Lock string // such as Lease NAMESPACE/NAME
	// Holder holds the lock now; empty if that is not known, since it could not be renewed.
	Holder string
	// Deadline is the renew deadline, after which nothing was written.
	Deadline time.Duration
	// Early is true if the lock was found to be lost before the deadline had passed.
	Early bool
	// Err is why the API server refused to have it renewed; nil if it did not, or was not reached.
	Err error
}

// Unwrap gives errors.As the refusal.
func (e *LostError) Unwrap() error { return e.Err }

func (e *LostError) Error() string {
	why := fmt.Sprintf("it could not be renewed within %s, and nothing was written after that", e.Deadline)
	switch {
	case e.Early && e.Holder != "":
		why = fmt.Sprintf("%s holds it now, before the renew deadline had passed; nothing was written after that was seen",
			e.Holder)
	case e.Early:
		why = "somebody released it, by hand or with corollary activation force, before the renew deadline had passed; " +
			"nothing was written " +
			"after that was seen"
	case e.Holder != "":
		why = fmt.Sprintf("%s holds it now; nothing was written after the %s in which it was to be renewed",
			e.Holder, e.Deadline)
	}
	if e.Err != nil {
		why += fmt.Sprintf(" (%v)", e.Err)
	}
	return fmt.Sprintf("the %s was lost: %s", e.Lock, why)
}

// ExhaustedError is about a lock whose next token would be greater than its record has room for.
type ExhaustedError struct {
	Lock string // such as Lease NAMESPACE/NAME
	Last Token  // the greatest that there is room for
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("the %s has the fencing token %s, the greatest possible one, so no process can take it: tokens "+
		"must not go back. If "+
		"it was written by hand, write the last token that a holder had (spec.leaseTransitions of a Lease, token in other "+
		"locks): the logs of "+
		"the processes have it. Otherwise use a new lock", e.Lock, e.Last)
}

// DeniedError is about a lock that this process may not have.
type DeniedError struct {
	Lock string // such as Lease NAMESPACE/NAME
	Err  error  // what the API server answered
}

func (e *DeniedError) Error() string { return fmt.Sprintf("taking %s: %v", e.Lock, e.Err) }

// Unwrap gives errors.As the answer.
func (e *DeniedError) Unwrap() error { return e.Err }
