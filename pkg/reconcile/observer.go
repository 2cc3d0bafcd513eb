package reconcile

import "github.com/corollary-dev/corollary/pkg/reconcile/attempt"

// Listeners learn what is done.
type Listeners struct {
	// Observer is called during a reconciliation; nil: none.
	Observer attempt.Observer
	// Rows learns the states of rows; nil: nobody does.
	Rows RowStates
}
