package pipeline

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Report is what the upstream's status shall say.
type Report struct {
	// Facts are about the downstreams, in the config's order; unwanted ones are left out.
	Facts []status.Fact
	// Invalid tells that a rule refuses the upstream.
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
	// Misfits are values of ours that stand in the upstream's status, from before its schema was changed, and that it cannot
	// hold any more: as long as they do, the API server takes no apply of the object.
	Misfits []fieldpath.Path
	// Changed reports whether Status says anything that the upstream's status does not say yet.
	Changed bool
	// TookTooLong is true if an expression was interrupted because it took too long. Its field keeps the previous value, or an object
	// counts as not ready. A retry may succeed.
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
	frozen           []metav1.Condition // see Pipeline.pause
}

// fieldValue is what one of status.fields shall be; not set: there is nothing to write. fresh tells that this reconciliation made it.
type fieldValue struct {
	value      any
	set, fresh bool
}

// Report computes the upstream's status from the results of its downstreams, and what is left over of those with several objects. in are
// the inputs that w was made with; now is the transition time of conditions that change.
func (p *Pipeline) Report(
	ctx context.Context, upstream *unstructured.Unstructured, in Inputs, w *Desired, results []Result, left []Outcome, now metav1.Time,
) Report {
	budget := rules.NewBudget(ctx)
	vars := p.vars(upstream, in)
	summary := p.summary(upstream)
	frozen := p.pause(&summary, upstream)
	before, recorded := p.Recorded(upstream), []status.Recorded(nil)
	report := Report{Invalid: len(w.Invalid) > 0}
	for _, f := range w.Invalid {
		summary.Invalid = append(summary.Invalid, f.String())
	}
	var facts []objectFact
	for k := range w.Objects {
		o := &w.Objects[k]
		d := p.Downstreams[o.Downstream]
		var fact status.Fact
		isPaused := results[k].Outcome.State == StatePaused
		if !report.Invalid && results[k].Outcome.State != StateUnwanted && (!isPaused || o.Wanted || o.Err != nil) {
			if d.readsItem {
				vars.Item, _ = p.itemAt(w, k, vars, in, budget)
			}
			if fact = p.fact(d, results[k], vars, budget); isPaused && results[k].Live == nil {
				fact = pausedFact(fact, p.RecordedOf(before, o))
			}
			facts = append(facts, objectFact{fact, o})
		}
		if r, ok := p.record(o, results[k], fact, before); ok {
			recorded = append(recorded, r)
		}
	}
	report.Facts = byDownstream(facts)
	recorded = p.recordLeft(recorded, left, w, results, before)
	summary.Downstreams = report.Facts
	report.draft = &draft{summary: summary, before: before, recorded: p.keepForgotten(recorded, upstream), now: now,
		frozen: frozen, fields: p.fieldValues(upstream, results, report.Invalid || frozen != nil, vars, budget)}
	report.TookTooLong = budget.Expired()
	p.fill(&report, upstream, RefusedFields{})
	return report
}

func (p *Pipeline) summary(upstream *unstructured.Unstructured) status.Summary {
	return status.Summary{Generation: p.observedGeneration(upstream), Types: status.Types(p.Config.Status.Conditions)}
}

// observedGeneration is the generation that the status is about; zero, which is left out, where a status write would itself be
// a new generation: that would be chased forever.
func (p *Pipeline) observedGeneration(upstream *unstructured.Unstructured) int64 {
	if !p.Upstream.HasStatus {
		return 0
	}
	return upstream.GetGeneration()
}

// losesValues reports whether the object of an outcome that does not exist had values that are lost, now or once its upstream is not left alone.
func losesValues(d *Downstream, o Outcome) bool {
	return o.LostValues != "" || d.HasGenerated() && slices.Contains(leftAlone, o.State)
}

// record is the identifiers of a standing downstream. What the status recorded before is kept while nothing is known of
// the object, so that a name once recorded is never lost before it is cleaned up. That it finished is kept while
// nothing new is made, also where what the upstream asks for cannot be told for a while: else it would be done twice.
func (p *Pipeline) record(w *DesiredObject, r Result, f status.Fact, before []status.Recorded) (status.Recorded, bool) {
	d, live := p.Downstreams[w.Downstream], r.Live
	switch {
	case r.Outcome.Finished:
		return p.recordedOf(d, w.Target, "", w.Hash, endOf(r.Outcome.Failed)), true
	case live == nil:
		old := p.RecordedOf(before, w)
		switch {
		case old == nil:
			return status.Recorded{}, false
		case old.Done() && r.Outcome.State != StateUnwanted:
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
		state = string(StateUpdate)
	}
	if d.Config.UpdatePolicy == config.UpdateCreateOnly && p.finished(d, r, f) {
		state = endOf(f.Failed)
	}
	rec := p.recordedOf(d, refOf(live), live.UID, live.Hash, state)
	if r.Baseline != nil && rec.Hash != "" && p.storesBaseline {
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

func (p *Pipeline) recordedOf(d *Downstream, at Ref, uid types.UID, hash, state string) status.Recorded {
	r := status.Recorded{Name: d.Name, APIVersion: d.Config.APIVersion, Kind: d.Config.Kind, Namespace: at.Namespace, ObjectName: at.Name,
		UID: uid, Hash: hash, State: state}
	if d.Hidden() {
		// The digest of a Secret's values would let whoever may read the upstream test guesses against it.
		r.Hash = ""
	}
	return r
}

// fill puts the draft together without what was refused, cuts it down to what can be stored, and compares it with what stands.
func (p *Pipeline) fill(report *Report, upstream *unstructured.Unstructured, refused RefusedFields) {
	d := report.draft
	summary := d.summary
	summary.Refused = p.refusalText(d, refused)
	report.observed = summary.Generation
	report.Refused, report.Verdict, report.Conditions = refused, summary.Verdict(), append(status.Summarize(summary), d.more...)
	if d.frozen != nil {
		report.Conditions, report.Verdict = d.frozen, verdictIn(d.frozen, summary.Types.Ready)
	}
	if p.HasRows() {
		report.Row = rowStateOf(summary)
	}
	if p.Storable == nil {
		return
	}
	content := p.statusOf(report, upstream, p.withoutRefusedItems(status.KeepBaselines(d.recorded, d.before), upstream, refused), d.now)
	p.setFields(content, upstream, d, refused)
	if p.store(report, upstream, content); report.Changed {
		p.setRecorded(content, p.withoutRefusedItems(d.recorded, upstream, refused))
		p.store(report, upstream, content)
	}
}

// statusOf puts together what every status of ours has: conditions, generation and identifiers.
func (p *Pipeline) statusOf(report *Report, upstream *unstructured.Unstructured, recorded []status.Recorded, now metav1.Time) map[string]any {
	for i := range report.Conditions { // the author of an upstream may have a say in what they quote
		c := &report.Conditions[i]
		c.Message = status.Shorten(c.Message, p.Storable.MaxMessage)
	}
	haveConditions, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	merged := status.Merge(haveConditions, report.Conditions, p.ownTypes(), now)
	content := map[string]any{"conditions": merged}
	if generation := cmp.Or(report.observed, p.observedGeneration(upstream)); generation != 0 {
		content["observedGeneration"] = generation
	}
	p.setRecorded(content, recorded)
	return content
}

// setRecorded puts identifiers into a status.
func (p *Pipeline) setRecorded(content map[string]any, recorded []status.Recorded) {
	if p.downstreamsPath != nil {
		// The loader lets only maps stand on the way.
		_ = fieldpath.Set(map[string]any{"status": content}, p.downstreamsPath, status.RecordedList(recorded))
	}
}

// store cuts a status down to what can be stored, and compares it with what stands.
func (p *Pipeline) store(report *Report, upstream *unstructured.Unstructured, content map[string]any) {
	have, _ := upstream.Object["status"].(map[string]any)
	stored, dropped := p.Storable.Fit(content)
	report.Dropped, report.Misfits = dropped, p.misfits(upstream, dropped)
	if len(stored) == 0 {
		return
	}
	report.Status = stored
	report.Changed = !p.statusMatches(have, stored) || len(report.Misfits) > 0
}

// misfits finds, of the fields that our own values do not fit into, those whose live values do not either.
func (p *Pipeline) misfits(upstream *unstructured.Unstructured, dropped []string) (list []fieldpath.Path) {
	have, _ := upstream.Object["status"].(map[string]any)
	if len(dropped) == 0 || len(have) == 0 {
		return nil
	}
	_, unfit := p.Storable.Fit(have)
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

func (p *Pipeline) ownTypes() []string {
	t := p.Config.Status.Conditions
	var own []string
	for _, name := range []string{t.Ready, t.Valid, t.Reconciling, t.Stalled} {
		if name != "" {
			own = append(own, name)
		}
	}
	return own
}

// fieldValues evaluates status.fields. An expression that gives an error leaves its field as it is. Where there are no
// results all of them stay, and an invalid upstream leaves them too: they would speak of what was refused.
func (p *Pipeline) fieldValues(upstream *unstructured.Unstructured, results []Result, invalid bool, vars rules.Vars, budget *rules.Budget) []fieldValue {
	vars.Downstreams = p.liveByName(results)
	values := make([]fieldValue, len(p.fields))
	for i, f := range p.fields {
		keep := invalid || results == nil
		if !keep {
			value, err := f.program.Eval(vars, budget)
			values[i], keep = fieldValue{value, true, true}, err != nil
		}
		if keep {
			values[i] = currentValue(upstream, f.path)
		}
	}
	return values
}

// currentValue is what the upstream's status has at a path.
func currentValue(upstream *unstructured.Unstructured, path fieldpath.Path) fieldValue {
	value, ok := fieldpath.Get(upstream.Object, path)
	if !ok {
		return fieldValue{}
	}
	return fieldValue{value: runtime.DeepCopyJSONValue(value), set: true}
}

// setFields puts the values of status.fields into a status, but for refused ones.
func (p *Pipeline) setFields(content map[string]any, upstream *unstructured.Unstructured, d *draft, refused RefusedFields) {
	for i, f := range p.fields {
		v, stands := d.fields[i], currentValue(upstream, f.path)
		switch _, left := refused.by[i]; {
		case refused.stay:
			v = stands
		case left: // an apply removes what it leaves out, a merge what it says is null
			v = fieldValue{set: stands.set && p.Storable.Conditions != status.ConditionsKeyed}
		}
		if v.set {
			_ = fieldpath.Set(map[string]any{"status": content}, f.path, v.value)
		}
	}
}

// statusMatches reports whether have says all that want says: equal where want has a value, and none of our conditions beyond it.
func (p *Pipeline) statusMatches(have, want map[string]any) bool {
	for key, value := range want {
		if key == "conditions" {
			if !equality.Semantic.DeepEqual(have[key], value) {
				return false
			}
			continue
		}
		if !contains(have[key], value) {
			return false
		}
	}
	return true
}

// contains reports whether have equals want, maps key by key: other writers' keys beside ours do not matter.
func contains(have, want any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return equality.Semantic.DeepEqual(have, want)
	}
	h, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range w {
		if !contains(h[key], value) {
			return false
		}
	}
	return true
}
