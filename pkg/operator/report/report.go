package report

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// verdictIn is what the condition Ready says.
func verdictIn(list []metav1.Condition, ready string) (v status.Verdict) {
	for _, c := range list {
		if c.Type == ready {
			v = status.Verdict{Ready: c.Status, Reason: c.Reason}
		}
	}
	return v
}

func textOf(m map[string]any, key string) string {
	text, _ := m[key].(string)
	return text
}

// pausedFact is fact for a paused object. One that was created once and has finished stays so.
func pausedFact(f status.Fact, recorded *status.Recorded) status.Fact {
	switch {
	case recorded == nil || !recorded.Done():
		return f
	case recorded.State == status.StateFailed:
		return status.Fact{Name: f.Name, Failed: true, Reason: status.ReasonFailed}
	}
	return status.Fact{Name: f.Name, Ready: true, Reason: status.ReasonReady}
}

// finished reports whether an existing downstream that is made once only finished, well or badly.
func finished(d *operator.Downstream, r operator.Result, f status.Fact) bool {
	return r.Live != nil && (f.Failed || (f.Ready && len(d.Config.Ready.Rules) > 0)) &&
		r.Failure == nil && r.Outcome.State == operator.StateInSync
}

// Report is what the upstream's status shall say.
type Report struct {
	// Facts are about the downstreams, in the config's order; unwanted ones are left out.
	Facts []status.Fact
	// Invalid: a rule refuses the upstream.
	Invalid bool
	// Verdict is what Ready says, whether or not the config has it written.
	Verdict status.Verdict
	// Row is what source.writeBack writes; only where upstreams are rows.
	Row RowState
	// Conditions are ours only.
	Conditions []metav1.Condition
	// Status is the whole of our part of the status, cut down to what the kind can store; nil if status is off or
	// nothing can be stored.
	Status map[string]any
	// Dropped names the status fields that the kind's schema cannot store.
	Dropped []string
	// Misfits are values of ours that are in the upstream's status, from before its schema was changed, and that it cannot
	// hold any more: as long as they do, the API server takes no apply of the object.
	Misfits []fieldpath.Path
	// Changed reports whether Status says anything that the upstream's status does not say yet.
	Changed bool
	// TookTooLong is true if an expression was interrupted because it took too long. Its field keeps the previous value,
	// or an object counts as not ready. A retry may succeed.
	TookTooLong bool
	// Refused are the values of status.fields, and the items of status.downstreams, that Status is without.
	Refused RefusedFields
	draft   *draft
	// observed is the generation that the status is about, if it is not that of the upstream.
	observed int64
}

// draft is a status before it is known which values of status.fields can be stored.
type draft struct {
	summary          status.Summary
	more             []metav1.Condition // those that do not follow from the summary
	before, recorded []status.Recorded
	fields           []fieldValue // in the config's order
	now              metav1.Time
	frozen           []metav1.Condition // see pause
}

// fieldValue is what one of status.fields shall be; not set: there is nothing to write. fresh: this reconciliation made
// it.
type fieldValue struct {
	value      any
	set, fresh bool
}

// Programs evaluate what a status reads of live objects.
type Programs struct {
	// Health is about the live object of results[k].
	Health func(k int) status.Fact
	// Fields are the values of status.fields, in the config's order.
	Fields func() []FieldResult
	// TookTooLong reports whether an expression got no time to end.
	TookTooLong func() bool
}

// FieldResult is the value of one of status.fields, or why there is none.
type FieldResult struct {
	Value any
	Err   error
}

// Of computes the upstream's status from the results of its downstreams, and what is left over of those with several
// objects. unrecorded is Input.Unrecorded; now is the transition time of conditions that change.
func Of(s *operator.Settings,
	upstream *unstructured.Unstructured, w *operator.Desired, results []operator.Result, left []operator.Outcome,
	unrecorded []status.Recorded, now metav1.Time, programs Programs,
) Report {
	summary := summary(s, upstream)
	frozen := pause(s, &summary, upstream)
	before, recorded := s.Recorded(upstream), []status.Recorded(nil)
	report := Report{Invalid: len(w.Invalid) > 0}
	summary.Invalid = w.Invalid
	var facts []operator.ObjectFact
	for k := range w.Objects {
		o, r := &w.Objects[k], results[k]
		var fact status.Fact
		isPaused := r.Outcome.State == operator.StatePaused
		if !report.Invalid && r.Outcome.State != operator.StateUnwanted && (!isPaused || o.Wanted || o.Err != nil) {
			fact = s.Fact(s.Downstreams[o.Downstream], r, func() status.Fact { return programs.Health(k) })
			if isPaused && r.Live == nil {
				fact = pausedFact(fact, s.RecordedOf(before, o))
			}
			facts = append(facts, operator.ObjectFact{Fact: fact, Of: o})
		}
		if r, ok := record(s, o, r, fact, before); ok {
			recorded = append(recorded, r)
		}
	}
	report.Facts = operator.ByDownstream(facts)
	recorded = recordLeft(s, recorded, left, w, results, before)
	summary.Downstreams = report.Facts
	report.draft = &draft{summary: summary, before: before, recorded: keepForgotten(s, recorded, upstream, unrecorded,
		heldBy(s, upstream, w, results)),
		now: now, frozen: frozen}
	if report.Invalid || frozen != nil { // they would speak of what was refused
		report.draft.fields = currentValues(s.StatusFields, upstream)
	} else {
		report.draft.fields = evaluated(s.StatusFields, upstream, programs.Fields())
	}
	report.TookTooLong = programs.TookTooLong()
	fill(s, &report, upstream, RefusedFields{})
	return report
}

func summary(s *operator.Settings, upstream *unstructured.Unstructured) status.Summary {
	return status.Summary{Generation: observedGeneration(s, upstream), Types: status.Types(s.Config.Status.Conditions)}
}

// observedGeneration is the generation that the status is about; zero, which is left out, where a status write would
// itself be a new generation: that would be chased forever.
func observedGeneration(s *operator.Settings, upstream *unstructured.Unstructured) int64 {
	if !s.Upstream.HasStatus {
		return 0
	}
	return upstream.GetGeneration()
}

// losesValues reports whether the object of an outcome that does not exist had values that are lost, now, once its
// upstream is not left alone, or with the process, if it was recreated and its creation is refused.
func losesValues(d *operator.Downstream, o operator.Outcome) bool {
	return o.LostValues != "" || d.HasGenerated() && (o.State.IsLeftAlone() || o.Action == operator.ActionCreate)
}

// record is the identifiers of an existing downstream. What the status recorded before is kept while nothing is known
// of the object, so that a name once recorded is never lost before it is cleaned up. That it finished is kept while
// nothing new is made, also where what the upstream asks for is not known for a while: else it would be done twice.
func record(
	s *operator.Settings, w *operator.DesiredObject, r operator.Result, f status.Fact,
	before []status.Recorded,
) (status.Recorded, bool) {
	d, live := s.Downstreams[w.Downstream], r.Live
	switch {
	case r.Outcome.Finished:
		return s.RecordAt(d, w.Target, "", w.Hash, endOf(r.Outcome.Failed)), true
	case live == nil:
		old := s.RecordedOf(before, w)
		switch {
		case old == nil:
			return status.Recorded{}, false
		case old.Done() && r.Outcome.State != operator.StateUnwanted:
			return *old, true
		case !r.Unseen && !losesValues(d, r.Outcome): // a loss is reported until there is a new value
			return status.Recorded{}, false
		}
		kept := *old
		kept.State = string(r.Outcome.State)
		return kept, true
	}
	state := string(r.Outcome.State)
	if r.Unverified {
		state = string(operator.StateUpdate)
	}
	if d.Config.UpdatePolicy == config.UpdateCreateOnly && finished(d, r, f) {
		state = endOf(f.Failed)
	}
	rec := s.RecordAt(d, operator.RefOf(live), live.UID, live.Hash, state)
	rec.Guessed = r.Guessed
	if r.Baseline != nil && rec.Hash != "" && s.StoresBaseline {
		rec.Baseline = r.Baseline.Text()
	}
	return rec, true
}

// endOf is the recorded state of what finished.
func endOf(failed bool) string {
	if failed {
		return status.StateFailed
	}
	return status.StateFinished
}

// fill puts the draft together without what was refused, cuts it down to what can be stored, and compares it with what
// exists.
func fill(s *operator.Settings, report *Report, upstream *unstructured.Unstructured, refused RefusedFields) {
	d := report.draft
	summary := d.summary
	summary.Refused = refusalText(s, d, refused)
	report.observed = summary.Generation
	report.Refused, report.Verdict, report.Conditions = refused, summary.Verdict(),
		append(status.Summarize(summary), d.more...)
	if d.frozen != nil {
		report.Conditions, report.Verdict = d.frozen, verdictIn(d.frozen, summary.Types.Ready)
	}
	if s.HasRows() {
		report.Row = rowStateOf(summary)
	}
	if s.Storable == nil {
		return
	}
	content := statusOf(s, report, upstream, withoutRefusedItems(s,
		status.KeepBaselines(d.recorded, d.before), upstream, refused), d.now)
	setFields(s, content, upstream, d, refused)
	if store(s, report, upstream, content); report.Changed {
		SetRecorded(s, content, withoutRefusedItems(s, d.recorded, upstream, refused))
		store(s, report, upstream, content)
	}
}

// statusOf puts together what every status of ours has: conditions, generation and identifiers.
func statusOf(
	s *operator.Settings, report *Report, upstream *unstructured.Unstructured, recorded []status.Recorded, now metav1.Time,
) map[string]any {
	for i := range report.Conditions { // the author of an upstream may have a say in what they quote
		c := &report.Conditions[i]
		c.Message = status.Shorten(c.Message, s.Storable.MaxMessage)
	}
	haveConditions, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	merged := status.Merge(haveConditions, report.Conditions, s.OwnTypes(), now)
	content := map[string]any{"conditions": merged}
	if generation := cmp.Or(report.observed, observedGeneration(s, upstream)); generation != 0 {
		content["observedGeneration"] = generation
	}
	SetRecorded(s, content, recorded)
	return content
}

// SetRecorded puts identifiers into a status.
func SetRecorded(s *operator.Settings, content map[string]any, recorded []status.Recorded) {
	if s.DownstreamsPath != nil {
		// The loader allows only maps on the way.
		_ = fieldpath.Set(map[string]any{"status": content}, s.DownstreamsPath, status.RecordedList(recorded))
	}
}

// store cuts a status down to what can be stored, and compares it with what exists.
func store(s *operator.Settings, report *Report, upstream *unstructured.Unstructured, content map[string]any) {
	have, _ := upstream.Object["status"].(map[string]any)
	stored, dropped := s.Storable.Fit(content)
	report.Dropped, report.Misfits = dropped, misfits(s, upstream, dropped)
	if len(stored) == 0 {
		return
	}
	report.Status = stored
	report.Changed = !statusMatches(have, stored) || len(report.Misfits) > 0
}

// misfits finds, of the fields that our own values do not fit into, those whose live values do not either.
func misfits(s *operator.Settings, upstream *unstructured.Unstructured, dropped []string) (list []fieldpath.Path) {
	have, _ := upstream.Object["status"].(map[string]any)
	if len(dropped) == 0 || len(have) == 0 {
		return nil
	}
	_, unfit := s.Storable.Fit(have)
	for _, text := range dropped {
		path, err := fieldpath.Parse(text)
		if err != nil || !slices.Contains(unfit, text) {
			continue
		}
		if _, stands := fieldpath.Get(upstream.Object, path); stands {
			list = append(list, path)
		}
	}
	return list
}
