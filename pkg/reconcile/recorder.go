package reconcile

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// Reasons of events about what was done. An event about a state has the state's word as reason, one about a failure the
// failure's.
const (
	// EventCreated: a downstream was created.
	EventCreated = "Created"
	// EventUpdated: a downstream was changed because its desired state has changed.
	EventUpdated = "Updated"
	// EventRepaired: the drift of a downstream was corrected.
	EventRepaired = "Repaired"
	// EventDeleted: a downstream was deleted.
	EventDeleted = "Deleted"
	// EventReleased: a downstream was kept, without our marks.
	EventReleased = "Released"
	// EventFieldKept: a field was removed from the template, and stays because another manager owns it too.
	EventFieldKept = "FieldKept"
	// EventNewRandomValue: a generated value was made anew though the upstream had one, which is lost.
	EventNewRandomValue = "NewRandomValue"
	// EventInvalid: a rule refuses the upstream.
	EventInvalid = "Invalid"
)

// event sends an event about the upstream, if the config's policy allows it. The recorder counts equal ones in a row as one.
// Mode Observe sends none: an event is an object that somebody has to write.
func (r *reconciliation) event(warning bool, reason, action, format string, args ...any) {
	if r.Pipeline.Observing() {
		return
	}
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	switch r.Pipeline.Config.Events {
	case config.EventsNone:
		return
	case config.EventsWarnings:
		if !warning {
			return
		}
	}
	if r.Pipeline.HasRows() { // rows are not objects: the event regards the operator
		operator := &corev1.ObjectReference{APIVersion: config.APIVersion, Kind: config.Kind, Name: r.Name}
		r.Recorder.Eventf(operator, nil, kind, reason, action, "row %s: %s", r.ref.Name, fmt.Sprintf(format, args...))
		return
	}
	r.Recorder.Eventf(r.upstream, nil, kind, reason, action, format, args...)
}

// logWrite logs a write of an object. changed are the fields that it changed, as far as they are known: no request is made for the log.
func (r *reconciliation) logWrite(message string, o operator.Outcome, changed []drift.Difference) {
	line := []any{"upstream", r.ref.String(), "downstream", r.Pipeline.Downstreams[o.Downstream].Name,
		"kind", r.Pipeline.Downstreams[o.Downstream].GVK().Kind, "target", o.Target.String(), "why", o.Message}
	if len(changed) > 0 {
		line = append(line, "fields", drift.Explain(changed, r.Pipeline.Config.Conventions.FieldManager))
	}
	r.Log.Info(message, line...)
}

// logFailure logs a failed action. A person has to look at what the API server refuses whenever it is sent.
func (r *reconciliation) logFailure(downstream string, o operator.Outcome, f apply.Failure) {
	r.logAt(f)("action failed, will retry", "upstream", r.ref.String(), "downstream", downstream,
		"action", string(o.Action), "target", o.Target.String(), "reason", f.Reason, "message", f.Message)
}

// logAt returns what logs a failed request: at the level of a warning if a person has to do something.
func (r *Reconciler) logAt(f apply.Failure) func(message string, keysAndValues ...any) {
	if needsPerson(f) {
		return r.warn
	}
	return r.Log.Info
}

// needsPerson reports whether a request will fail until somebody changes the config, an object, a policy or a right.
func needsPerson(f apply.Failure) bool {
	switch f.Reason {
	case apply.ReasonForbidden, apply.ReasonUnauthorized, apply.ReasonNamespaceNotFound, apply.ReasonKindNotServed, apply.ReasonAlreadyExists:
		return true
	}
	return f.Persistent()
}

func (r *Reconciler) warn(message string, keysAndValues ...any) {
	logging.Warn(r.Log, message, keysAndValues...)
}

// report reports what a person must look at, by an event and in the log.
func (r *reconciliation) report(reason, action, part, text string) {
	r.event(true, reason, action, "%s: %s", part, text)
	r.warnOf(reason, part, text)
}

func (r *reconciliation) warnOf(reason, part, text string) {
	r.warn("the upstream needs attention", "upstream", r.ref.String(), "part", part, "reason", reason, "message", text)
}

func (r *reconciliation) eventCreated(o operator.Outcome) {
	r.logWrite("created", o, nil)
	r.event(false, EventCreated, "Create", "%s created", what(r.Pipeline.Settings, o))
}

// eventLostValues reports values of a Secret that are lost.
func (r *reconciliation) eventLostValues(o operator.Outcome) {
	if o.LostValues == "" {
		return
	}
	r.warn("values of a Secret are lost", "upstream", r.ref.String(), "target", o.Target.String(), "why", o.LostValues)
	r.event(true, EventNewRandomValue, "Create", "%s: %s", what(r.Pipeline.Settings, o), o.LostValues)
}

func (r *reconciliation) eventBeforeCreated(o operator.Outcome) {
	r.Log.Info("created", "upstream", r.ref.String(), "downstream", operator.BeforeName, "kind", r.Pipeline.Before.Config.Kind,
		"target", o.Target.String(), "why", "the upstream is being deleted, and deletion.before comes first")
	r.event(false, EventCreated, "Create", "%s %s created: deletion.before", r.Pipeline.Before.Config.Kind, o.Target)
}

// eventDeletion reports the progress of deletion.before and what holds a deletion, when that begins. What the status contained
// at the first reconciliation after a restart is not new.
func (r *reconciliation) eventDeletion(d operator.Decision) {
	for _, o := range d.Leftovers {
		f := r.failures[o.Object]
		if f == nil {
			continue
		}
		if text := r.Pipeline.Downstreams[o.Downstream].Name + ": " + f.Message; r.record.Steps.Reported != text {
			r.record.Steps.Reported = text
			r.event(true, f.Reason, "Delete", "%s", text)
		}
	}
	if d.Before == nil {
		return
	}
	m := r.record.Before.Edit()
	warning, reason, text := false, string(d.Before.State), d.Before.Message
	switch {
	case d.Before.State == operator.StateBeforeFinished:
	case d.Before.State == operator.StateBeforeFailed, d.Before.State == operator.StateBeforeTimedOut,
		d.Before.State == operator.StateConflict, d.Before.State == operator.StateRenderFailed:
		warning = true
	case d.Before.Earlier != nil:
		warning = true
	case m.FailureOf(d.Before) != nil:
		warning, reason, text = true, m.Failure.Reason, m.Failure.Message
	default:
		return
	}
	if now := reason + text; m.Reported != now {
		old := m.Reported == "" && r.reportedBefore == reason && d.Before.Earlier == nil
		switch m.Reported = now; {
		case old:
		case warning && m.FailureOf(d.Before) == nil:
			r.report(reason, "Reconcile", operator.BeforeName, text)
		default:
			r.event(warning, reason, "Reconcile", "%s: %s", operator.BeforeName, text)
		}
	}
}

func (r *reconciliation) eventUpdated(o operator.Outcome, changed []drift.Difference) {
	for i := range changed {
		if changed[i].Manager == r.Pipeline.Config.Conventions.FieldManager && changed[i].Want != nil {
			changed[i].Manager = "" // it goes without saying: this is our own change
		}
	}
	r.logWrite("updated", o, changed)
	r.event(false, EventUpdated, "Apply", "%s updated: %s", what(r.Pipeline.Settings, o), o.Message)
}

func (r *reconciliation) eventRepaired(o operator.Outcome, changed []drift.Difference) {
	r.logWrite("repaired", o, changed)
	text := o.Message
	if len(changed) > 0 {
		text = drift.Explain(changed, r.Pipeline.Config.Conventions.FieldManager)
	}
	r.event(true, EventRepaired, "Apply", "%s repaired: %s", what(r.Pipeline.Settings, o), text)
}

func (r *reconciliation) eventDrifted(o operator.Outcome, explained string) {
	r.event(true, string(operator.StateDrifted), "Report", "%s has drifted and is left as it is: %s", what(r.Pipeline.Settings, o), explained)
	r.warn("drifted, and left as it is", "upstream", r.ref.String(), "downstream", r.Pipeline.Downstreams[o.Downstream].Name,
		"kind", r.Pipeline.Downstreams[o.Downstream].GVK().Kind, "target", o.Target.String(), "fields", explained)
}

func (r *reconciliation) eventDeleted(o operator.Outcome) {
	r.logWrite("deleted", o, nil)
	r.event(false, EventDeleted, "Delete", "%s deleted: %s", what(r.Pipeline.Settings, o), o.Message)
}

func (r *reconciliation) eventReleased(o operator.Outcome) {
	r.logWrite("released", o, nil)
	r.event(false, EventReleased, "Release", "%s released: %s", what(r.Pipeline.Settings, o), o.Message)
}

func (r *reconciliation) reportLost(o operator.Outcome, lost []drift.CoOwnedField) {
	for _, f := range lost {
		path := r.Pipeline.Downstreams[o.Downstream].Words.Path(f.Path.String())
		r.event(true, EventFieldKept, "Apply", "%s: %s is no longer in the template but stays, because %s owns it too", what(r.Pipeline.Settings, o), path, f.Manager)
		r.warn("a field removed from the template stays", "upstream", r.ref.String(), "target", o.Target.String(), "field", path, "manager", f.Manager)
	}
}

func what(s *operator.Settings, o operator.Outcome) string {
	return s.Downstreams[o.Downstream].Kind.GVK.Kind + " " + o.Target.String()
}

// eventOutcomes reports states and failures that need a person, when they begin. What the status contained at the first
// reconciliation after a restart is not new.
func (r *reconciliation) eventOutcomes(d operator.Decision, said bool) {
	var now []string
	old := said && !r.record.Steps.WasReconciled
	r.record.Steps.WasReconciled = true
	for k, o := range d.Outcomes {
		downstream := r.Pipeline.Downstreams[o.Downstream]
		reason, text := string(o.State), o.Message
		if f := r.failures[k]; f != nil {
			reason, text = f.Reason, f.Message
		} else if o.State != operator.StateConflict && o.State != operator.StateContested && o.State != operator.StateRenderFailed &&
			(o.State != operator.StateDrifted || downstream.Config.UpdatePolicy != config.UpdateCreateOnly) {
			continue
		}
		name := downstream.Name
		now = append(now, name+reason+text)
		if !old && !strings.Contains(r.record.Steps.Reported, name+reason+text) {
			if r.failures[k] != nil { // it is logged already
				r.event(true, reason, "Reconcile", "%s: %s", name, text)
				continue
			}
			r.report(reason, "Reconcile", name, text)
		}
	}
	if text := r.contestedBy; text != "" {
		now = append(now, text)
		if !strings.Contains(r.record.Steps.Reported, text) {
			r.report(string(operator.StateContested), "Reconcile", "status", text)
		}
	}
	r.record.Steps.Reported = strings.Join(append(now, r.eventInvalid(old)...), "\n")
}

// eventInvalid reports the rules that the upstream begins to break, and returns the texts about all that it breaks.
func (r *reconciliation) eventInvalid(old bool) (now []string) {
	for _, f := range r.record.Desired().Invalid {
		now = append(now, f)
		if !old && !strings.Contains(r.record.Steps.Reported, f) {
			r.event(true, EventInvalid, "Validate", "%s", f)
			r.warnOf(EventInvalid, "spec", f)
		}
	}
	return now
}

// logDropped logs once which status fields the kind cannot store.
func (r *reconciliation) logDropped(report report.Report) {
	if len(report.Dropped) == 0 {
		return
	}
	r.droppedReported.Do(func() {
		r.warn("the upstream's schema cannot store all of its status; corollary check prints the lines to add",
			"kind", r.Pipeline.Upstream.GVK.String(), "fields", strings.Join(report.Dropped, ", "))
	})
}
