package reconcile

import (
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// Observer is called by a reconciler while it works, in its goroutine, with what neither the cluster nor the requests show.
type Observer interface {
	// Decided is called with each decision before it is carried out.
	Decided(in operator.Input, d operator.Decision)
	// Rendered is called with the document of an apply of object k of the desired state, or of pipeline.BeforeIndex.
	Rendered(k int, document map[string]any)
	// Failed is called for a failed request for object k of the desired state, or for the deletion.before object.
	Failed(k int, f operator.Failure)
	// Reported is called with the report that the status is to contain.
	Reported(report report.Report)
}

// notifyObserver calls the observer, if there is one.
func (r *Reconciler) notifyObserver(call func(Observer)) {
	if r.Observer != nil {
		call(r.Observer)
	}
}

// Listeners learn what is done.
type Listeners struct {
	// Observer is called during a reconciliation; nil: none.
	Observer Observer
	// Rows learns the states of rows; nil: nobody does.
	Rows RowStates
}
