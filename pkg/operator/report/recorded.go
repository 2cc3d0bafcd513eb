package report

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/status"
)

// WithBeforeRecord is an upstream whose status has that record of deletion.before.
func WithBeforeRecord(
	s *operator.Settings, upstream *unstructured.Unstructured, r status.Recorded,
) *unstructured.Unstructured {
	upstream = upstream.DeepCopy()
	have, _ := fieldpath.Get(upstream.Object, s.DownstreamsPath)
	list := slices.DeleteFunc(status.RecordedFrom(have), func(old status.Recorded) bool {
		return old.Name == operator.BeforeName
	})
	// the loader allows only maps on the way
	_ = fieldpath.Set(upstream.Object, s.DownstreamsPath, status.RecordedList(append(list, r)))
	return upstream
}

// RecordedGoing is what the status records while the upstream is being deleted: what existed before, as long as the
// downstreams' turn has not come, then what is left, or may be where finding out failed.
func RecordedGoing(
	s *operator.Settings, upstream *unstructured.Unstructured, d operator.Decision, failed map[int]*operator.Failure,
) []status.Recorded {
	var list []status.Recorded
	for _, r := range s.Recorded(upstream) {
		i := slices.IndexFunc(d.Leftovers, func(o operator.Outcome) bool { return o.UID == r.UID })
		switch {
		case i >= 0:
			r.State, r.Guessed = string(d.Leftovers[i].State), d.Leftovers[i].Guessed
			list = append(list, r)
		case d.WaitsForBefore:
			r.State = cmp.Or(string(d.Cascade.State()), r.State)
			list = append(list, r)
		case failed[s.IndexOf(r.Name)] != nil:
			list = append(list, r)
		}
	}
	for _, o := range d.Leftovers {
		if !isRecorded(list, o.UID) {
			list = append(list, recordLeftover(s, list, o))
		}
	}
	return recordBefore(s, list, upstream, d)
}

// recordBefore adds what is recorded of deletion.before.
func recordBefore(
	s *operator.Settings, list []status.Recorded, upstream *unstructured.Unstructured, d operator.Decision,
) []status.Recorded {
	have := s.RecordedBefore(upstream)
	if d.Before != nil && decide.NeedsRecord(*d.Before) && !decide.BeforePassed(s, have) {
		r := decide.BeforeRecord(s, *d.Before)
		if have != nil && r.UID != "" && have.UID == r.UID {
			r.APIVersion, r.Kind = have.APIVersion, have.Kind // the config may have another by now
		}
		return append(list, r)
	}
	if have != nil {
		list = append(list, *have)
	}
	return list
}

func isRecorded(list []status.Recorded, uid types.UID) bool {
	return slices.ContainsFunc(list, func(r status.Recorded) bool { return r.UID == uid })
}

// recordLeft adds what downstreams have besides the objects that are desired: those that are to go and still exist,
// which no watch may show later, and all that was recorded of several objects while it is not known which are desired.
func recordLeft(
	s *operator.Settings, recorded []status.Recorded, left []operator.Outcome, w *operator.Desired,
	results []operator.Result, before []status.Recorded,
) []status.Recorded {
	for _, o := range left {
		d := s.Downstreams[o.Downstream]
		switch {
		case isRecorded(recorded, o.UID):
		case d.Several() && !operator.IsRecordedAt(recorded, d.Name, o.Target),
			!d.Several() && !o.Guessed,
			o.Guessed && (o.Live.Unselected || isAwaitedPlace(s, w, o)): // only the record finds it, or says whose it is
			recorded = append(recorded, recordLeftover(s, recorded, o))
		}
	}
	return recordUnknown(s, recorded, w, results, before)
}

func recordLeftover(s *operator.Settings, recorded []status.Recorded, o operator.Outcome) status.Recorded {
	d := s.Downstreams[o.Downstream]
	r := s.RecordAt(d, o.Target, o.UID, o.Live.Hash, string(o.State))
	r.Guessed = o.Guessed
	r.Replaced = !o.Guessed && !d.Several() && slices.ContainsFunc(recorded, func(have status.Recorded) bool {
		return have.Name == d.Name && !have.Guessed
	})
	return r
}

// recordUnknown adds what was recorded of downstreams with several objects while it is not known which objects are
// desired.
func recordUnknown(
	s *operator.Settings, recorded []status.Recorded, w *operator.Desired,
	results []operator.Result, before []status.Recorded,
) []status.Recorded {
	for _, d := range s.Downstreams {
		if !d.Several() || !w.Unknown(d.Index) {
			continue
		}
		objects := w.Of(d.Index)
		state := results[w.First(d.Index)+len(objects)-1].Outcome.State // those that are not known come last
		for _, r := range before {
			if r.Name == d.Name && !operator.IsRecordedAt(recorded, d.Name,
				operator.Ref{Namespace: r.Namespace, Name: r.ObjectName}) {
				if !r.Done() {
					r.State = string(state)
				}
				recorded = append(recorded, r)
			}
		}
	}
	return recorded
}

// isAwaitedPlace reports whether another downstream asks for the place of an object that is left over.
func isAwaitedPlace(s *operator.Settings, w *operator.Desired, left operator.Outcome) bool {
	gk := s.Downstreams[left.Downstream].GVK().GroupKind()
	return slices.ContainsFunc(w.Objects, func(o operator.DesiredObject) bool {
		return o.Wanted && o.Err == nil && o.Downstream != left.Downstream && o.Target == left.Target &&
			s.Downstreams[o.Downstream].GVK().GroupKind() == gk
	})
}

// keepForgotten adds what the config has forgotten to what is recorded of its downstreams, so that it is reported, and
// never taken for what one of them has left behind. Where the config has the name with another kind, which a list may
// have as its key, the name gets the kind; one that was not recorded yet gets its own name, too, where that is not
// enough. held is the state of what it still waits for; empty: it is left over.
func keepForgotten(s *operator.Settings, recorded []status.Recorded, upstream *unstructured.Unstructured,
	unrecorded []status.Recorded, held func(r status.Recorded) string,
) []status.Recorded {
	all := recorded
	known := s.Forgotten(upstream)
	for k, r := range slices.Concat(known, unrecorded) {
		if slices.ContainsFunc(all, func(have status.Recorded) bool { return have.UID == r.UID }) {
			continue
		}
		taken := func(list []status.Recorded) bool {
			return slices.ContainsFunc(list, func(have status.Recorded) bool { return have.Name == r.Name })
		}
		if taken(recorded) || k >= len(known) && taken(all) {
			r.Name = r.NameWithKind()
		}
		if k >= len(known) && taken(all) {
			r.Name += "." + r.ObjectName
		}
		r.State = cmp.Or(held(r), string(operator.StateLeftover))
		all = append(all, r)
	}
	return all
}

// heldBy returns the state of an object without generated values as yet that may be the successor of what the config
// has just forgotten: until it has its own, a loss of those of the other one can be reported.
func heldBy(s *operator.Settings, upstream *unstructured.Unstructured, w *operator.Desired, results []operator.Result,
) func(r status.Recorded) string {
	return func(r status.Recorded) string {
		for k := range w.Objects {
			d, res := s.Downstreams[w.Objects[k].Downstream], results[k]
			if d.HasGenerated() && res.Live == nil && !res.Outcome.Finished && res.Outcome.State != operator.StateUnwanted &&
				d.GVK().GroupKind() == r.GroupKind() && decide.IsJustForgotten(s, upstream, r) {
				return string(res.Outcome.State)
			}
		}
		return ""
	}
}

// noneHeld is for an upstream of which nothing is made.
func noneHeld(status.Recorded) string { return "" }

// WithoutGone returns a report that does not record what the config has forgotten and is gone.
func WithoutGone(s *operator.Settings, report Report, upstream *unstructured.Unstructured, gone []types.UID) Report {
	if len(gone) == 0 || report.draft == nil {
		return report
	}
	d := *report.draft
	d.recorded = slices.DeleteFunc(slices.Clone(d.recorded), func(r status.Recorded) bool {
		return r.State == string(operator.StateLeftover) && slices.Contains(gone, r.UID)
	})
	report.draft = &d
	fill(s, &report, upstream, report.Refused)
	return report
}
