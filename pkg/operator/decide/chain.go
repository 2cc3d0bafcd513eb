package decide

import (
	"errors"
	"fmt"
	"slices"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// subject is one object under decision.
type subject struct {
	*operator.Settings
	*operator.Downstream
	in      *operator.Input
	facts   *operator.Facts
	desired *operator.DesiredObject
}

// chain is the order in which a downstream is looked at: the first step that has an answer decides.
var chain = []func(*subject) (operator.Outcome, bool){
	paused, invalid, lacksInput, unrendered, unwanted, absent, terminating, notOurs, refused, usesPreviousNames,
	createOnly, inSync, updated, unselected, lacksGenerated, drifted,
}

func decideOne(s *subject) operator.Outcome {
	for _, step := range chain {
		if o, ok := step(s); ok {
			if s.facts.Live != nil && o.Live == nil && o.Action != operator.ActionCreate {
				o.Live = s.facts.Live
			}
			if o.Live != nil {
				o.UID = o.Live.UID
			}
			o = spaced(s, o)
			o.Theirs = s.facts.Live != nil && !s.ours()
			if s.Observing() {
				o.Message = describeHeld(o, s.facts.Verdict.Differences)
			}
			if s.desired.Wanted {
				o.Target = s.desired.Target
			}
			return o
		}
	}
	// drifted answers always; a chain without an end would be a mistake in the table above.
	panic("the decision chain came to no end")
}

func paused(s *subject) (operator.Outcome, bool) {
	if !s.Paused(s.in.Upstream) {
		return operator.Outcome{}, false
	}
	return operator.Outcome{State: operator.StatePaused,
		Message: fmt.Sprintf("annotation %s is true", s.Settings.Config.Conventions.Pause.Annotation)}, true
}

func invalid(s *subject) (operator.Outcome, bool) {
	if len(s.in.Desired.Invalid) == 0 {
		return operator.Outcome{}, false
	}
	return operator.Outcome{State: operator.StateInvalid,
		Message: "the upstream is invalid; existing objects are left alone"}, true
}

// lacksInput is about what is not known before an input is there: what exists is left alone.
func lacksInput(s *subject) (operator.Outcome, bool) {
	var missing *operator.WaitingError
	if !errors.As(s.desired.Err, &missing) {
		return operator.Outcome{}, false
	}
	return operator.Outcome{State: operator.StateWaiting, Message: missing.Message}, true
}

func unrendered(s *subject) (operator.Outcome, bool) {
	if s.desired.Err == nil {
		return operator.Outcome{}, false
	}
	return operator.Outcome{State: operator.StateRenderFailed, Message: s.desired.Err.Error()}, true
}

func unwanted(s *subject) (operator.Outcome, bool) {
	if s.desired.Wanted {
		return operator.Outcome{}, false
	}
	if s.desired.Several {
		return operator.Outcome{State: operator.StateUnwanted, Message: "no item is wanted"}, true
	}
	return operator.Outcome{State: operator.StateUnwanted, Message: "when is false"}, true
}

func absent(s *subject) (operator.Outcome, bool) {
	if s.facts.Live != nil {
		return operator.Outcome{}, false
	}
	if s.facts.Finished && s.Downstream.Config.UpdatePolicy == config.UpdateCreateOnly &&
		s.facts.RecordedAt == s.desired.Target {
		return finishedBefore(s), true
	}
	if s.OwnsFields() {
		return operator.Outcome{State: operator.StateWaiting,
			Message: s.desired.Target.String() + " does not exist: somebody else has to create it (ownership: Fields)"}, true
	}
	if f := s.facts.Verdict.Foreign; f != "" {
		return operator.Outcome{State: operator.StateConflict, Message: f}, true
	}
	return operator.Outcome{State: operator.StateCreate, Action: operator.ActionCreate,
		Message: s.desired.Target.String() + " does not exist"}, true
}

// finishedBefore is about an object that is gone and whose work is done: how it ended stays true. As with one that
// still exists, it is the name that distinguishes one piece of work from another, not the hash: a changed template, or
// a new version of the canonical form, would do all work again that was ever done.
func finishedBefore(s *subject) operator.Outcome {
	o := operator.Outcome{State: operator.StateInSync, Finished: true, Failed: s.facts.Failed,
		Message: "completed; will not be recreated"}
	if o.Failed {
		o.Message = "failed; will not be recreated"
	}
	return o
}

// terminating is about an object that someone deletes and, with a finalizer, may keep for as long as they like: it is
// in force all that time, so its drift is repaired. A changed desired state waits for the new object.
func terminating(s *subject) (operator.Outcome, bool) {
	live := s.facts.Live
	if !live.Deleting {
		return operator.Outcome{}, false
	}
	text := "%s is being deleted and is recreated once it is gone"
	switch {
	case s.OwnsFields():
		text = "%s is being deleted, and is not ours: nothing is set on it"
	case s.ours() && s.Downstream.Repairs() && s.facts.LastHash(s.facts.Live) == s.desired.Hash:
		if _, same := inSync(s); !same {
			return drifted(s)
		}
	}
	o := operator.Outcome{State: operator.StateWaiting, Message: fmt.Sprintf(text, s.desired.Target)}
	if live.Status == kstatus.TerminatingStatus && live.StatusMessage != "" {
		o.Message += "; " + live.StatusMessage
	}
	return o, true
}

// notOurs is about an object that is not known to be ours: a conflict, unless adoption is allowed and nobody else owns
// it. Our mark alone says nothing: anyone who may create the kind can write it.
func notOurs(s *subject) (operator.Outcome, bool) {
	if s.OwnsFields() {
		return othersObject(s)
	}
	if s.ours() {
		return operator.Outcome{}, false
	}
	target, what, marked := s.desired.Target, "is not ours", marks.Marked(s.facts.Live, s.in.Upstream.GetUID())
	self := operator.Ref{Namespace: s.in.Upstream.GetNamespace(), Name: s.in.Upstream.GetName()}
	left := marks.LeftBy(s.facts.Live, self, s.in.Upstream.GetUID())
	owner, earlier := marks.OwnerIn(s.facts.Live, s.in.Upstream)
	switch {
	case earlier:
		return operator.Outcome{State: operator.StateWaiting,
			Message: fmt.Sprintf("%s belongs to %s: it is recreated once the garbage collector has deleted it",
				target, owner)}, true
	case owner != "" && !marked && !left:
		return operator.Outcome{State: operator.StateConflict,
			Message: fmt.Sprintf("%s exists and belongs to %s", target, owner)}, true
	}
	if s.Downstream.Config.AdoptionPolicy == config.AdoptIfUnowned {
		owned := "has no owner"
		if marked {
			owned = "names this upstream as its owner"
		}
		return operator.Outcome{State: operator.StateUpdate, Action: operator.ActionApply,
			Message: fmt.Sprintf("%s exists, %s, and is adopted", target, owned)}, true
	}
	advice := "delete it, give the downstream another name, or set adoptionPolicy: IfUnowned"
	switch live := s.facts.Live; {
	case left:
		what, advice = marks.EarlierMark(live, s.in.Upstream.GetKind()), "if no other operator has these conventions, "+advice
	case marked && marks.IsOfFields(live.Hash):
		what = "belongs to others: this operator only set fields of it (ownership: Fields)"
	case marked && live.Hash == "":
		what = "has our owner mark, but was not created by this operator"
	case marks.HasLostOwner(live):
		what, advice = marks.LostOwner(live),
			"if conventions.owner has changed, set conventions.previous.owner; if not, "+advice
	case live.Hash != "": // adopted, it would be deleted by that operator, or with it
		what = fmt.Sprintf("appears to belong to another operator: it has %s, which holds a hash, "+
			"and no owner mark that field manager %s applied",
			s.HashKey(), s.Settings.Config.Conventions.FieldManager)
		advice = "if conventions.fieldManager has changed, set conventions.previous.fieldManager; if not, give the " +
			"downstream another name, " +
			"or remove the object's labels and annotations of that operator once it no longer runs"
	}
	return operator.Outcome{State: operator.StateConflict, Message: fmt.Sprintf("%s exists and %s: %s",
		target, what, advice)}, true
}

// othersObject is notOurs for an object of others, which needs no mark of ours before the first apply. Its owner
// annotation names one upstream: what a second one would set under the same field manager, the first would remove.
func othersObject(s *subject) (operator.Outcome, bool) {
	live, up := s.facts.Live, s.in.Upstream
	at, uid, marked := marks.ParseOwnerMark(live.OwnerMark)
	self := operator.Ref{Namespace: up.GetNamespace(), Name: up.GetName()}
	switch {
	case marked && at != self && !live.MarkVoid:
		return operator.Outcome{State: operator.StateConflict, Message: fmt.Sprintf("%s of %s has the fields of %s, "+
			"and two upstreams of one operator cannot both set fields of one object: "+
			"give one of them another object, or an operator with another field manager and owner annotation",
			s.Settings.Config.Conventions.Owner.Annotation, s.desired.Target, at)}, true
	case marked && uid == string(up.GetUID()), s.facts.Trusted && s.facts.AppliedHash != "":
		return operator.Outcome{}, false
	}
	return operator.Outcome{State: operator.StateUpdate, Action: operator.ActionApply,
		Message: fmt.Sprintf("%s exists, and gets the rendered fields", s.desired.Target)}, true
}

// ours reports whether what exists is known to be ours. Nothing else may be reported, let alone recorded: what the
// status records is believed later.
func (s *subject) ours() bool {
	if s.OwnsFields() {
		return marks.Marked(s.facts.Live, s.in.Upstream.GetUID())
	}
	return marks.OwnsFor(s.Downstream, s.facts.Live, s.in.Upstream.GetUID(), s.facts.Trusted)
}

// unselected decides on an object of ours that lost the labels that its watch selects by, and that would not be
// repaired: without them it is read again and again, since no watch shows it. It gets its marks back, and nothing else.
func unselected(s *subject) (operator.Outcome, bool) {
	if !s.facts.Live.Unselected || s.Downstream.Repairs() {
		return operator.Outcome{}, false
	}
	return operator.Outcome{State: operator.StateRepair, Action: operator.ActionReplaceMarks,
		Message: fmt.Sprintf("%s has lost the labels that the watch selects by", s.desired.Target)}, true
}

func createOnly(s *subject) (operator.Outcome, bool) {
	if s.Downstream.Config.UpdatePolicy != config.UpdateCreateOnly {
		return operator.Outcome{}, false
	}
	if o, ok := unselected(s); ok {
		return o, true
	}
	live := s.facts.Live
	if !s.facts.Trusted && s.TrustsStatus() && (live.Hash != s.desired.Hash || live.P != s.desired.Sum) {
		return operator.Outcome{State: operator.StateDrifted,
			Message: fmt.Sprintf("%s exists, and updatePolicy is CreateOnly; "+
				"it differs from the rendered document, and the status does not record that this operator created it: "+
				"only its field manager says so", s.desired.Target)}, true
	}
	return operator.Outcome{State: operator.StateInSync, Message: "it exists, and updatePolicy is CreateOnly"}, true
}

// inSync finds without any request that the object is what was applied.
func inSync(s *subject) (operator.Outcome, bool) {
	live, b := s.facts.Live, s.facts.Baseline
	if s.View.LacksGenerated(live) {
		return operator.Outcome{}, false
	}
	asReturned := b != nil && live.P == *b // keys beyond ours included, which then are the API server's own
	if live.Hash != s.desired.Hash || (!asReturned && (live.P != s.desired.Sum || live.Extra)) {
		return operator.Outcome{}, false
	}
	if live.Unselected { // the label of its shard, which is not part of P, or one that admission changes
		return operator.Outcome{State: operator.StateUpdate, Action: operator.ActionApply,
			Message: fmt.Sprintf("%s has other labels than the watch selects by", s.desired.Target)}, true
	}
	switch stale := s.facts.Verdict.Stale; {
	case s.facts.Unverified:
		return operator.Outcome{State: operator.StateUpdate, Action: operator.ActionApply, Compares: true,
			Message: "it is compared with a new object again: it was not, or differed, after the last update"}, true
	case stale != "":
		return operator.Outcome{State: operator.StateStale,
			Message: fmt.Sprintf("%s has values that a new object would not have, "+
				"and an update cannot change them: %s; "+
				"set them in the template, or delete the object to have it created again", s.desired.Target, stale)}, true
	}
	return operator.Outcome{State: operator.StateInSync}, true
}

// refused is about an update that only a new object can bring. Between the two, generated values are in the memory of
// one process alone: where a finalizer can keep the object for as long as it likes, nothing is deleted.
func refused(s *subject) (operator.Outcome, bool) {
	if !s.facts.Verdict.Immutable || s.Downstream.Config.UpdatePolicy != config.UpdateRecreate {
		return operator.Outcome{}, false
	}
	if held := generated.HeldBy(s.Downstream, s.facts.Live); held != "" {
		return operator.Outcome{State: operator.StateWaiting,
			Message: fmt.Sprintf("the change is to an immutable field, so %s would have to be deleted and recreated, "+
				"but its generated values could be lost before it is gone (%s): remove the finalizers, or delete it "+
				"yourself if it may get new values", s.desired.Target, held)}, true
	}
	return operator.Outcome{State: operator.StateRecreate, Action: operator.ActionDelete,
		Message: "the change is to an immutable field: the object is deleted and recreated"}, true
}

// updated distinguishes a changed desired state from drift.
func updated(s *subject) (operator.Outcome, bool) {
	if s.facts.LastHash(s.facts.Live) == s.desired.Hash {
		return operator.Outcome{}, false
	}
	return operator.Outcome{State: operator.StateUpdate, Action: operator.ActionApply, Message: MessageChanged}, true
}

// MessageChanged is why an object is updated.
const MessageChanged = "the desired state has changed"

// differs says what is known of an object that is no longer what was applied. What makes it ours may lack because
// someone removed it, or because the config has another name for it: only reading the object shows it.
func differs(s *subject) string {
	target, conv := s.desired.Target, s.Settings.Config.Conventions
	switch live := s.facts.Live; {
	case !live.Managed:
		return fmt.Sprintf("%s was not applied by field manager %s: conventions.fieldManager has changed, "+
			"or somebody has cleared its managedFields",
			target, conv.FieldManager)
	case live.Hash == "":
		return fmt.Sprintf("%s lacks %s, which holds the hash: somebody has removed it, or conventions.hash has changed",
			target, s.HashKey())
	case !marks.Marked(live, s.in.Upstream.GetUID()):
		return fmt.Sprintf("%s lacks its owner mark: somebody has removed it, or conventions.owner has changed", target)
	}
	return fmt.Sprintf("%s has drifted", target)
}

func drifted(s *subject) (operator.Outcome, bool) {
	target := s.desired.Target
	switch s.Downstream.Config.Drift.Policy {
	case config.DriftIgnore:
		return operator.Outcome{State: operator.StateInSync, Message: "drift is ignored"}, true
	case config.DriftReport:
		switch v := s.facts.Verdict.SameByDryRun; {
		case v == nil && s.Observing():
			return operator.Outcome{State: operator.StateDrifted, Message: fmt.Sprintf("%s differs from the rendered document; "+
				"only a dry run can tell drift from the API server's normalization, and mode Observe makes none", target)}, true
		case v == nil:
			return operator.Outcome{State: operator.StateWaiting, Action: operator.ActionCompare,
				Message: fmt.Sprintf("checking by a dry run whether %s has drifted", target)}, true
		case *v:
			return operator.Outcome{State: operator.StateInSync}, true
		}
		return operator.Outcome{State: operator.StateDrifted,
			Message: withContenders(differs(s)+"; drift.policy is Report", s.facts)}, true
	}
	return operator.Outcome{State: operator.StateRepair, Action: operator.ActionApply,
		Message: withContenders(differs(s), s.facts)}, true
}

func withContenders(text string, f *operator.Facts) string {
	if f.Verdict.Contenders == "" {
		return text
	}
	return text + ": " + f.Verdict.Contenders
}

// lacksGenerated is about an object that is as it was applied, but for a generated value that someone removed.
func lacksGenerated(s *subject) (operator.Outcome, bool) {
	if !s.View.LacksGenerated(s.facts.Live) {
		return operator.Outcome{}, false
	}
	switch s.Downstream.Config.Drift.Policy {
	case config.DriftIgnore:
		return operator.Outcome{}, false
	case config.DriftReport:
		return operator.Outcome{State: operator.StateDrifted,
			Message: s.desired.Target.String() + " lacks a generated value; drift.policy is Report"}, true
	}
	text := s.desired.Target.String() + " lacks a generated value, which is generated again"
	return operator.Outcome{State: operator.StateRepair, Action: operator.ActionApply,
		Message: withContenders(text, s.facts)}, true
}

// usesPreviousNames decides on an object of ours that has names of conventions.previous, or the owner mark that the
// config no longer uses. It gets the current ones whatever drift.policy is, since conventions.previous will be removed
// one day. With updatePolicy CreateOnly it gets only the marks.
func usesPreviousNames(s *subject) (operator.Outcome, bool) {
	live := s.facts.Live
	once := s.Downstream.Config.UpdatePolicy == config.UpdateCreateOnly
	if !live.HasPreviousNames && !s.hasOtherOwnerMark(once) {
		return operator.Outcome{}, false
	}
	message := fmt.Sprintf("%s still uses names from conventions.previous", s.desired.Target)
	if !live.HasPreviousNames {
		message = fmt.Sprintf("%s has another owner mark than conventions.owner wants", s.desired.Target)
	}
	if once {
		return operator.Outcome{State: operator.StateUpdate, Action: operator.ActionReplaceMarks, Message: message,
			ReplacesPrevious: true}, true
	}
	return operator.Outcome{State: operator.StateUpdate, Action: operator.ActionApply, Message: message,
		ReplacesPrevious: true}, true
}

// hasOtherOwnerMark reports whether the object has an owner reference where the config wants the annotation, or the
// other way round. An apply that left it so is not repeated: then another manager owns that mark too.
func (s *subject) hasOtherOwnerMark(once bool) bool {
	live, uid := s.facts.Live, s.in.Upstream.GetUID()
	if _, ok := inSync(s); ok && !once {
		return false
	}
	if !s.desired.Reference {
		return slices.ContainsFunc(live.Owners, func(o drift.OwnerRef) bool { return o.UID == uid && o.Controller })
	}
	_, marked, ok := marks.ParseOwnerMark(live.OwnerMark)
	return ok && marked == string(uid)
}

// describeHeld says of what an outcome asks for that it is not done.
func describeHeld(o operator.Outcome, differences string) string {
	text := o.Message
	switch {
	case o.Action == operator.ActionNone:
		return text
	case o.State == operator.StateRecreate:
		text = "would be deleted and recreated: " + text
	case o.State == operator.StateRepair:
		text = "would be repaired: " + text
	case o.Action == operator.ActionCreate:
		text = "would be created: " + text
	case o.Action == operator.ActionDelete:
		text = "would be deleted: " + text
	case o.Action == operator.ActionRelease:
		text = "would be released: " + text
	default:
		text = "would be updated: " + text
	}
	if differences != "" {
		text += " (" + differences + ")"
	}
	return text
}
