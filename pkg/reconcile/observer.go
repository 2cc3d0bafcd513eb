package reconcile

import "github.com/corollary-dev/corollary/pkg/pipeline"

// Observer hears what a reconciler comes to while it works, in its goroutine: what neither the cluster nor the requests show.
type Observer interface {
	// Decided hears each decision before it is carried out.
	Decided(in pipeline.Input, d pipeline.Decision)
	// Rendered hears the document that an apply of downstream i, or of pipeline.BeforeIndex, is made with.
	Rendered(i int, document map[string]any)
	// Failed hears of a failed request about downstream i, or about the object of deletion.before.
	Failed(i int, f pipeline.Failure)
	// Reported hears what the status is to say.
	Reported(report pipeline.Report)
}

// observed calls the observer, if there is one.
func (r *Reconciler) observed(call func(Observer)) {
	if r.Observer != nil {
		call(r.Observer)
	}
}
