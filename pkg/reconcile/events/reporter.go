package events

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
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
	// EventNewRandomValue: a generated value was made again though the upstream had one, which is lost.
	EventNewRandomValue = "NewRandomValue"
	// EventInvalid: a rule refuses the upstream.
	EventInvalid = "Invalid"
)

// Operator is in whose name is reported.
type Operator struct {
	Name     string
	Log      logr.Logger
	Recorder events.EventRecorder
}

// Reporter reports about one upstream.
type Reporter struct {
	Operator
	Settings *operator.Settings
	Ref      operator.Ref
	Upstream *unstructured.Unstructured
}

// Event sends an event about the upstream, if the config's policy allows it. The recorder counts equal ones in a row as
// one. Mode Observe sends none: an event is an object that someone has to write.
func (p Reporter) Event(warning bool, reason, action, format string, args ...any) {
	if p.Settings.Observing() {
		return
	}
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	switch p.Settings.Config.Events {
	case config.EventsNone:
		return
	case config.EventsWarnings:
		if !warning {
			return
		}
	}
	if p.Settings.HasRows() { // rows are not objects: the event regards the operator
		operator := &corev1.ObjectReference{APIVersion: config.APIVersion, Kind: config.Kind, Name: p.Name}
		p.Recorder.Eventf(operator, nil, kind, reason, action, "row %s: %s", p.Ref.Name, fmt.Sprintf(format, args...))
		return
	}
	p.Recorder.Eventf(p.Upstream, nil, kind, reason, action, format, args...)
}

// Wrote reports a write of an object; did is the reason of the event. changed are the fields that it changed, as far as
// they are known: no request is made for the log.
func (p Reporter) Wrote(did string, o operator.Outcome, changed []drift.Difference) {
	manager, word, text := p.Settings.Config.Conventions.FieldManager, strings.ToLower(did), ": "+o.Message
	for i := range changed {
		if did == EventUpdated && changed[i].Manager == manager && changed[i].Want != nil {
			changed[i].Manager = "" // it goes without saying: this is our own change
		}
	}
	line := []any{"upstream", p.Ref.String(), "downstream", p.Settings.Downstreams[o.Downstream].Name,
		"kind", p.Settings.Downstreams[o.Downstream].GVK().Kind, "target", o.Target.String(), "why", o.Message}
	if len(changed) > 0 {
		line = append(line, "fields", drift.Explain(changed, manager))
	}
	p.Log.Info(word, line...)
	action := map[string]string{EventCreated: "Create", EventUpdated: "Apply", EventRepaired: "Apply",
		EventDeleted: "Delete", EventReleased: "Release"}[did]
	switch {
	case did == EventCreated:
		text = ""
	case did == EventRepaired && len(changed) > 0:
		text = ": " + drift.Explain(changed, manager)
	}
	p.Event(did == EventRepaired, did, action, "%s %s%s", what(p.Settings, o), word, text)
}

// Failed logs a failed action. A person has to look at what the API server refuses whenever it is sent.
func (p Reporter) Failed(downstream string, o operator.Outcome, f apply.Failure) {
	LogAt(p.Log, f)("action failed, will retry", "upstream", p.Ref.String(), "downstream", downstream,
		"action", string(o.Action), "target", o.Target.String(), "reason", f.Reason, "message", f.Message)
}

// LogAt returns what logs a failed request: at the level of a warning if a person has to do something.
func LogAt(log logr.Logger, f apply.Failure) func(message string, keysAndValues ...any) {
	if needsPerson(f) {
		return func(message string, keysAndValues ...any) { logging.Warn(log, message, keysAndValues...) }
	}
	return log.Info
}

// needsPerson reports whether a request will fail until someone changes the config, an object, a policy or a right.
func needsPerson(f apply.Failure) bool {
	switch f.Reason {
	case apply.ReasonForbidden, apply.ReasonUnauthorized, apply.ReasonNamespaceNotFound,
		apply.ReasonKindNotServed, apply.ReasonAlreadyExists:
		return true
	}
	return f.Persistent()
}

// report reports what a person must look at, by an event and in the log.
func (p Reporter) report(reason, action, part, text string) {
	p.Event(true, reason, action, "%s: %s", part, text)
	p.warnOf(reason, part, text)
}

func (p Reporter) warnOf(reason, part, text string) {
	logging.Warn(p.Log, "the upstream needs attention", "upstream", p.Ref.String(), "part", part,
		"reason", reason, "message", text)
}

// LostValues reports values of a Secret that are lost.
func (p Reporter) LostValues(o operator.Outcome) {
	if o.LostValues == "" {
		return
	}
	logging.Warn(p.Log, "values of a Secret are lost", "upstream", p.Ref.String(), "target",
		o.Target.String(), "why", o.LostValues)
	p.Event(true, EventNewRandomValue, "Create", "%s: %s", what(p.Settings, o), o.LostValues)
}

// BeforeCreated reports that the object of deletion.before was created.
func (p Reporter) BeforeCreated(o operator.Outcome) {
	p.Log.Info("created", "upstream", p.Ref.String(), "downstream", operator.BeforeName, "kind",
		p.Settings.Config.Deletion.Before.Kind,
		"target", o.Target.String(), "why", "the upstream is being deleted, and deletion.before comes first")
	p.Event(false, EventCreated, "Create", "%s %s created: deletion.before",
		p.Settings.Config.Deletion.Before.Kind, o.Target)
}

// Deletion reports the progress of deletion.before and what holds a deletion, when that begins. What the status
// contained before at the first reconciliation after a restart is not new.
func (p Reporter) Deletion(u *memory.Upstream, d operator.Decision, failures map[int]*operator.Failure, before string) {
	for _, o := range d.Leftovers {
		f := failures[o.Object]
		if f == nil {
			continue
		}
		if text := p.Settings.Downstreams[o.Downstream].Name + ": " + f.Message; u.Steps.Reported != text {
			u.Steps.Reported = text
			p.Event(true, f.Reason, "Delete", "%s", text)
		}
	}
	if d.Before == nil {
		return
	}
	m := u.Before.Edit()
	warning, reason, text := false, string(d.Before.State), d.Before.Message
	switch {
	case d.Before.State == operator.StateBeforeFinished:
	case d.Before.State.NeedsPerson(), d.Before.Earlier != nil:
		warning = true
	case m.FailureOf(d.Before) != nil:
		warning, reason, text = true, m.Failure.Reason, m.Failure.Message
	default:
		return
	}
	if now := reason + text; m.Reported != now {
		old := m.Reported == "" && before == reason && d.Before.Earlier == nil
		switch m.Reported = now; {
		case old:
		case warning && m.FailureOf(d.Before) == nil:
			p.report(reason, "Reconcile", operator.BeforeName, text)
		default:
			p.Event(warning, reason, "Reconcile", "%s: %s", operator.BeforeName, text)
		}
	}
}

// Drifted reports drift that is left as it is.
func (p Reporter) Drifted(o operator.Outcome, explained string) {
	p.Event(true, string(operator.StateDrifted), "Report", "%s has drifted and is left as it is: %s",
		what(p.Settings, o), explained)
	logging.Warn(p.Log, "drifted, and left as it is", "upstream", p.Ref.String(), "downstream",
		p.Settings.Downstreams[o.Downstream].Name,
		"kind", p.Settings.Downstreams[o.Downstream].GVK().Kind, "target", o.Target.String(), "fields", explained)
}

// LostFields reports fields that should have gone with the template and stay.
func (p Reporter) LostFields(o operator.Outcome, lost []drift.CoOwnedField) {
	for _, f := range lost {
		path := p.Settings.Downstreams[o.Downstream].Words.Path(f.Path.String())
		p.Event(true, EventFieldKept, "Apply", "%s: %s is no longer in the template but stays, because %s owns it too",
			what(p.Settings, o), path, f.Manager)
		logging.Warn(p.Log, "a field removed from the template stays", "upstream", p.Ref.String(), "target",
			o.Target.String(), "field", path, "manager", f.Manager)
	}
}

func what(s *operator.Settings, o operator.Outcome) string {
	return s.Downstreams[o.Downstream].Kind.GVK.Kind + " " + o.Target.String()
}

// Outcomes reports states and failures that need a person, when they begin. What the status contained at the first
// reconciliation after a restart is not new.
func (p Reporter) Outcomes(
	u *memory.Upstream, d operator.Decision, failures map[int]*operator.Failure, contestedBy string, said bool,
) {
	var now []string
	old := said && !u.Steps.WasReconciled
	u.Steps.WasReconciled = true
	for k, o := range d.Outcomes {
		downstream := p.Settings.Downstreams[o.Downstream]
		reason, text := string(o.State), o.Message
		if f := failures[k]; f != nil {
			reason, text = f.Reason, f.Message
		} else if !o.State.NeedsPerson() &&
			(o.State != operator.StateDrifted || downstream.Config.UpdatePolicy != config.UpdateCreateOnly) {
			continue
		}
		name := downstream.Name
		now = append(now, name+reason+text)
		if !old && !strings.Contains(u.Steps.Reported, name+reason+text) {
			if failures[k] != nil { // it is logged already
				p.Event(true, reason, "Reconcile", "%s: %s", name, text)
				continue
			}
			p.report(reason, "Reconcile", name, text)
		}
	}
	if contestedBy != "" {
		now = append(now, contestedBy)
		if !strings.Contains(u.Steps.Reported, contestedBy) {
			p.report(string(operator.StateContested), "Reconcile", "status", contestedBy)
		}
	}
	u.Steps.Reported = strings.Join(append(now, p.invalid(u, old)...), "\n")
}

// invalid reports the rules that the upstream begins to break, and returns the texts about all that it breaks.
func (p Reporter) invalid(u *memory.Upstream, old bool) (now []string) {
	for _, f := range u.Desired().Invalid {
		now = append(now, f)
		if !old && !strings.Contains(u.Steps.Reported, f) {
			p.Event(true, EventInvalid, "Validate", "%s", f)
			p.warnOf(EventInvalid, "spec", f)
		}
	}
	return now
}
