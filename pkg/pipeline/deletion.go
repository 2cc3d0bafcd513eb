package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// DecideDeletion says what is to be done about an upstream that is being deleted. What is done about the downstreams needs
// neither rules nor templates, so a broken one holds nothing; deletion.before needs its own.
//
// First deletion.before: made, watched, its outcome recorded, our finalizer taken off it, one step a decision. Until then
// the downstreams are left alone. Then those go: the ones with an owner reference are left to the garbage collector, the
// others are deleted or released. Where the config or the deletion waits for them (deletion.wait, --cascade=foreground), all
// are deleted: the collector would not begin before the upstream is gone. With --cascade=orphan all are released. At last the finalizer goes; where it asks for that beside other actions, these
// come first.
func (p *Pipeline) DecideDeletion(in Input) Decision {
	out := Decision{Waits: p.waits(in), Cascade: in.Cascade}
	if r := p.UnfinishedBefore(in.Upstream); r != nil {
		o := p.decideEarlier(r, in.Before)
		out.Before, out.WaitsForBefore = &o, true
		return out
	}
	if p.Before != nil && !p.SkipsBefore(in.Upstream, in.Cascade) {
		o, passed := p.decideBefore(in)
		out.Before = &o
		if !passed || o.Action != ActionNone {
			out.WaitsForBefore = true
			return out
		}
	}
	for _, own := range in.Leftovers {
		out.Leftovers = append(out.Leftovers, p.decideRemoval(own, in))
	}
	out.Kept = p.keptHolders(in, out.Leftovers)
	if p.holdRemovals(in, out.Leftovers, out.Waits) || out.Waits && len(out.Leftovers) > 0 {
		return out
	}
	if h := out.Before; h != nil && h.Live != nil && !h.Live.Deleting && !referenced(h.Live, in) && !OwnedByOther(h.Live, in.Upstream.GetUID()) {
		h.Action = ActionDelete // with an owner reference, the collector takes it after the upstream
	}
	out.Finalizer = FinalizerRemove
	return out
}

// holdRemovals lets what is used by another one wait for it, and reports whether something waits.
func (p *Pipeline) holdRemovals(in Input, left []Outcome, ordered bool) (waits bool) {
	p.holdUsed(in, nil, left, ordered)
	for i := range left {
		o := &left[i]
		waits = waits || o.GoesLater
		if o.GoesLater && o.State != StateRelease {
			o.State = StateWaiting
		}
		p.spaceRemoval(o, in.Leftovers[i])
	}
	return waits
}

// decideRemoval is about one downstream of an upstream that is being deleted.
func (p *Pipeline) decideRemoval(own Owned, in Input) Outcome {
	wait, orphaned := p.waits(in), p.orphans(own, in)
	keeps := orphaned || p.keeps(own)
	o := leftover(in, own)
	o.State, o.Message = StateDelete, "the upstream is being deleted"
	if wait && !p.Config.Deletion.Wait { // recorded, since the garbage collector takes the finalizer off that says so
		o.State, o.Message = StateDeleteFirst, "the upstream is being deleted with --cascade=foreground"
	}
	switch {
	case orphaned:
		o.State, o.Message = StateRelease, "the upstream is being deleted with --cascade=orphan"
	case p.Downstreams[own.Downstream].OwnsFields():
		o.State, o.Message = StateRelease, "the upstream is being deleted: its fields are removed from the object"
	case keeps:
		o.State, o.Message = StateRelease, "the upstream is being deleted and deletionPolicy is Orphan"
	}
	switch {
	case own.Live.Deleting:
	case keeps:
		o.Action = ActionRelease
	case wait || !referenced(own.Live, in):
		o.Action = ActionDelete
	}
	return o
}

func referenced(live *drift.Live, in Input) bool {
	return slices.ContainsFunc(live.Owners, func(ref drift.OwnerRef) bool { return ref.UID == in.Upstream.GetUID() })
}

// ReportDeletion computes the status of an upstream that is being deleted and is not gone yet. failed has what could not
// be carried out, by downstream, BeforeIndex for deletion.before. What the status had beside our conditions and identifiers
// stays as it is.
func (p *Pipeline) ReportDeletion(upstream *unstructured.Unstructured, d Decision, failed map[int]*Failure, now metav1.Time) Report {
	var report Report
	report.Facts = p.deletionFacts(d, failed)
	if len(report.Facts) == 0 {
		return report
	}
	summary := p.summary(upstream)
	summary.Downstreams = report.Facts
	summary.Types.Valid = "" // it stays as it is: rules are not asked any more
	report.draft = &draft{summary: summary, more: p.currentValidCondition(upstream), recorded: p.keepForgotten(p.recordedGoing(upstream, d, failed), upstream), now: now,
		fields: p.fieldValues(upstream, nil, false, rules.Vars{}, rules.NewBudget(context.Background()))}
	p.fill(&report, upstream, RefusedFields{})
	return report
}

// currentValidCondition is our condition about validity as the status has it.
func (p *Pipeline) currentValidCondition(upstream *unstructured.Unstructured) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		text := func(key string) string { s, _ := c[key].(string); return s }
		if t := text("type"); t != "" && t == p.Config.Status.Conditions.Valid {
			generation, _ := c["observedGeneration"].(int64)
			return []metav1.Condition{{Type: t, Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"), ObservedGeneration: generation}}
		}
	}
	return nil
}

func (p *Pipeline) deletionFacts(d Decision, failed map[int]*Failure) []status.Fact {
	var facts []status.Fact
	if d.Before != nil && (d.WaitsForBefore || failed[BeforeIndex] != nil) {
		return []status.Fact{p.beforeFact(*d.Before, failed[BeforeIndex])}
	}
	for _, o := range d.Leftovers {
		f := status.Fact{Name: p.Downstreams[o.Downstream].Name, Progressing: true, Reason: status.ReasonDeleting}
		kind := p.Downstreams[o.Downstream].Config.Kind
		switch fail := failed[o.Downstream]; {
		case fail != nil:
			f.Reason, f.Message = fail.Reason, fail.Message
		case o.GoesLater:
			f.Message = fmt.Sprintf("%s %s: %s", kind, o.Target, o.Message)
		case d.Waits && o.Live.Deleting:
			f.Message = fmt.Sprintf("%s %s is terminating: finalizers, or objects that it owns, hold it", kind, o.Target)
		case d.Waits:
			f.Message = fmt.Sprintf("waiting for %s %s to be deleted", kind, o.Target)
		default:
			continue
		}
		facts = append(facts, f)
	}
	for i, down := range p.Downstreams {
		of := func(f status.Fact) bool { return f.Name == down.Name }
		if fail := failed[i]; fail != nil && !slices.ContainsFunc(facts, of) { // what is left of it could not be found out
			facts = append(facts, status.Fact{Name: down.Name, Progressing: true, Reason: fail.Reason, Message: fail.Message})
		}
	}
	if h := d.Before; h != nil && h.State != StateBeforeFinished && len(facts) > 0 {
		facts = append(facts, status.Fact{Name: BeforeName, Progressing: true, Reason: status.ReasonDeleting, Message: h.Message})
	}
	return facts
}

// beforeFact is what deletion.before contributes to the conditions.
func (p *Pipeline) beforeFact(o Outcome, fail *Failure) status.Fact {
	f := status.Fact{Name: BeforeName, Reason: string(o.State), Message: o.Message}
	if o.Earlier != nil {
		f.Failed, f.Progressing = o.Failed, !o.Failed
		return f
	}
	b := p.Before.Config
	switch {
	case o.State == StateBeforeTimedOut && fail != nil:
		f.Failed, f.Message = b.OnTimeout != config.BeforeProceed, o.Message+" ("+fail.Message+")"
	case o.State == StateBeforeTimedOut:
		f.Failed = b.OnTimeout != config.BeforeProceed
	case o.State == StateBeforeFailed:
		f.Failed = b.OnFailure != config.BeforeProceed
	case fail != nil:
		f.Reason, f.Message = fail.Reason, fail.Message
	case o.State == StateConflict, o.State == StateRenderFailed:
		f.Failed = true
	}
	f.Progressing = !f.Failed
	return f
}

// recordedGoing is what the status records while the upstream is being deleted: what stood before, as long as the
// downstreams' turn has not come, then what is left, or may be where finding out failed.
func (p *Pipeline) recordedGoing(upstream *unstructured.Unstructured, d Decision, failed map[int]*Failure) []status.Recorded {
	var list []status.Recorded
	for _, r := range p.Recorded(upstream) {
		i := slices.IndexFunc(d.Leftovers, func(o Outcome) bool { return o.UID == r.UID })
		switch {
		case i >= 0:
			r.State = string(d.Leftovers[i].State)
			list = append(list, r)
		case d.WaitsForBefore:
			r.State = cmp.Or(string(d.Cascade.state()), r.State)
			list = append(list, r)
		case failed[p.indexOf(r.Name)] != nil:
			list = append(list, r)
		}
	}
	for _, o := range d.Leftovers {
		name := p.Downstreams[o.Downstream].Name
		several := p.Downstreams[o.Downstream].Several()
		if !slices.ContainsFunc(list, func(r status.Recorded) bool { return r.Name == name && (!several || r.UID == o.UID) }) {
			list = append(list, p.recordedOf(p.Downstreams[o.Downstream], o.Target, o.UID, o.Live.Hash, string(o.State)))
		}
	}
	have := p.RecordedBefore(upstream)
	if d.Before != nil && needsRecord(*d.Before) && !p.BeforePassed(have) {
		r := p.BeforeRecord(*d.Before)
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

// indexOf finds a downstream by its name; NoIndex if there is none.
func (p *Pipeline) indexOf(name string) int {
	i := slices.IndexFunc(p.Downstreams, func(d *Downstream) bool { return d.Name == name })
	if i < 0 {
		return NoIndex
	}
	return i
}

// NoIndex is no downstream's, and not BeforeIndex.
const NoIndex = -2
