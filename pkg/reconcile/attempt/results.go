package attempt

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Results pairs every outcome with the object of ours that belongs to it: the target, or the object that it is to
// replace.
func (r *Attempt) Results(d operator.Decision) []operator.Result {
	results, recorded := make([]operator.Result, len(d.Outcomes)), r.Recorded()
	for k, o := range d.Outcomes {
		results[k] = operator.Result{Outcome: o, Live: o.Live, Failure: r.Failures[k]}
		if o.Theirs || o.State == operator.StateConflict {
			results[k].Live = nil
		}
		rec := r.RecordedAs(recorded, k)
		if results[k].Live != nil {
			results[k].Baseline = r.BaselineOf(k, results[k].Live, rec)
			results[k].Unverified, _ = r.VerifiedAs(k, results[k].Live, rec)
		}
		if rec != nil && rec.UID != "" {
			replaced := o.Live != nil && o.Live.UID != rec.UID && o.Live.Namespace == rec.Namespace &&
				o.Live.Name == rec.ObjectName
			results[k].Unseen = !replaced && !r.Memory.IsNotOurs(rec.UID, r.Began)
		}
	}
	for _, o := range d.Leftovers {
		if result := &results[o.Object]; !r.DownstreamOf(o.Object).Several() && result.Live == nil &&
			o.Action == operator.ActionNone && !o.Live.Deleting {
			result.Live, result.Guessed = o.Live, o.Guessed
		}
	}
	return results
}

// LeftToReport are the objects at no target that the status records: those of the decision, and those that could not be
// read.
func (r *Attempt) LeftToReport(d operator.Decision) []operator.Outcome {
	left := slices.Clone(d.Leftovers)
	for _, own := range r.Unread {
		if own.Live.UID != "" {
			o := r.OutcomeOf(own.Downstream, operator.Ref{Namespace: own.Live.Namespace, Name: own.Live.Name})
			o.State, o.UID, o.Live = operator.StateWaiting, own.Live.UID, own.Live
			left = append(left, o)
		}
	}
	return left
}
