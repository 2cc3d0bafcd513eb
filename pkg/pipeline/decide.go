package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// Input is everything that a decision depends on.
type Input struct {
	Upstream *unstructured.Unstructured
	// Desired is what the upstream asks for; ignored where the upstream is deleted or no longer selected.
	Desired *Desired
	// Selected is false if the upstream exists but the config's selectors no longer match it.
	Selected bool
	// Inputs gives the inputs that Desired was made with; nil: the order of the downstreams does not matter.
	Inputs func() Inputs
	// Facts are about the objects of Desired, in order.
	Facts []Facts
	// Leftovers are objects that have this upstream's mark and stand at no target, by downstream index.
	Leftovers []Owned
	// Unread are objects that may exist, at a place, and could not be read; without a name, any object of the downstream.
	Unread []Owned
	// Forgotten are what the config has forgotten, where one of Leftovers contains others, or one of them and the upstream is deleted.
	Forgotten []ForgottenObject
	// Others are what would be deleted with Leftovers, and belongs to other upstreams.
	Others []OtherObject
	// HasFinalizer is true if the upstream has the config's finalizer, current or previous.
	HasFinalizer bool
	// HasPreviousFinalizer reports whether it has the finalizer in conventions.previous.
	HasPreviousFinalizer bool
	// FinalizerSpaced is how long the next change of the finalizer must wait, since those before did not settle; zero: not
	// at all.
	FinalizerSpaced time.Duration
	// Before is about deletion.before; only where the config has one and the upstream is being deleted.
	Before BeforeFacts
	// Cascade is what the deletion of the upstream asks for.
	Cascade Cascade
	// Now is what the timeout of deletion.before is held to.
	Now time.Time
}

// Owned is a live object and the downstream that it belongs to.
type Owned struct {
	Downstream int
	Live       *drift.Live
	// Certain is false if several downstreams are of its kind and nothing records which one it belongs to.
	Certain bool
	// Recorded is true if the status or this process knows it as an object of the downstream.
	Recorded bool
	// Spaced is how long its deletion or release must wait: somebody keeps making it anew.
	Spaced time.Duration
	// UnwantedSince numbers the change of the desired state since which it is at no target; 0 if that is not known. See Facts.WantedSince.
	UnwantedSince int
}

// Facts are what is known of one downstream's target.
type Facts struct {
	// Live is what stands at the target; nil if nothing is known to.
	Live *drift.Live
	// Trusted is true if this process made Live or found it to be ours before, or where its uid is recorded in a status
	// that Pipeline.TrustsStatus. The API server's own record of who made it is in Live: see Owns.
	Trusted bool
	// RecordedHash is the hash that the upstream's status records of Live; empty if none is.
	RecordedHash string
	// RecordedAt is where the upstream's status records that the object stands or stood, RecordedUID its uid; empty for none.
	RecordedAt  Ref
	RecordedUID types.UID
	// HasKeptValues is true if the generated values of an object that was deleted here are remembered for the next one.
	HasKeptValues bool
	// Finished is true if the status records that the object at RecordedAt had done its work, Failed where it had done it
	// badly.
	Finished, Failed bool
	// Baseline is the projection's digest that our own last apply of Live returned; nil if none is remembered or recorded.
	Baseline *drift.Sum
	// Verdict is what probes answered about Live and this desired state.
	Verdict Verdict
	// AppliedHash is the hash of what this process last applied to Live; empty if it has not.
	AppliedHash string
	// Unverified is true if Live may still have values from before its last update that nobody owns: it is not known whether it was
	// compared with a new object since.
	Unverified bool
	// Spaced is how long the next write must wait, since those before did not settle; zero: not at all. Feedback is why the
	// desired follows from what was written; empty if it does not.
	Spaced   time.Duration
	Feedback string
	// WantedSince numbers the change of the desired state since which one of several objects is wanted: an object that was wanted
	// before another one ceased to be has not replaced it.
	WantedSince int
}

// Verdict is what the API server answered to probes, each nil or empty where it was not asked.
type Verdict struct {
	// Immutable: an apply of this desired state was refused, and a dry-run create of it under another name was accepted.
	Immutable bool
	// SameByDryRun: a dry-run apply of this desired state would change nothing of the live object.
	SameByDryRun *bool
	// Foreign describes an object at the target that is not ours and that the watch cannot see.
	Foreign string
	// Sibling is the downstream that has the object at the target, which it may leave; empty for none.
	Sibling string
	// Contenders describes who undoes our repairs, and where.
	Contenders string
	// Stale describes in which fields the object stays different from a new one of the same document.
	Stale string
	// Differences describes what the action would change, where mode is Observe.
	Differences string
}

// Decide says what is to be done about an upstream that is not being deleted. It is a pure function of its input.
func (p *Pipeline) Decide(in Input) Decision {
	if !in.Selected {
		return p.decideUnselected(in)
	}
	var out Decision
	for k := range in.Desired.Objects {
		desired := &in.Desired.Objects[k]
		o := p.decideOne(&subject{Pipeline: p, Downstream: p.Downstreams[desired.Downstream], in: &in, facts: &in.Facts[k], desired: desired})
		o.Downstream, o.Object = desired.Downstream, k
		out.Outcomes = append(out.Outcomes, o)
	}
	p.carryGenerated(in, &out)
	if in.Inputs != nil {
		p.holdForOrder(in, &out)
	}
	p.decideLeftovers(in, &out)
	p.saveFromCollector(in, &out)
	out.Finalizer = p.finalizerAction(in, &out)
	p.spaceFinalizer(in, &out)
	if out.Finalizer == FinalizerLeave && in.HasPreviousFinalizer && p.Config.Conventions.Finalizer != "" && !p.Paused(in.Upstream) {
		out.Finalizer = FinalizerSwap
	}
	return out
}

// subject is one object under decision.
type subject struct {
	*Pipeline
	*Downstream
	in      *Input
	facts   *Facts
	desired *DesiredObject
}

// chain is the order in which a downstream is looked at: the first step that has an answer decides.
var chain = []func(*subject) (Outcome, bool){
	paused, invalid, lacksInput, unrendered, unwanted, absent, terminating, notOurs, refused, usesPreviousNames, createOnly, inSync, updated, unselected, lacksGenerated, drifted,
}

func (p *Pipeline) decideOne(s *subject) Outcome {
	for _, step := range chain {
		if o, ok := step(s); ok {
			if s.facts.Live != nil && o.Live == nil && o.Action != ActionCreate {
				o.Live = s.facts.Live
			}
			if o.Live != nil {
				o.UID = o.Live.UID
			}
			o = s.spaced(o)
			o.Theirs = s.facts.Live != nil && !s.ours()
			if p.Observing() {
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

func paused(s *subject) (Outcome, bool) {
	if !s.Paused(s.in.Upstream) {
		return Outcome{}, false
	}
	return Outcome{State: StatePaused, Message: fmt.Sprintf("annotation %s is true", s.Pipeline.Config.Conventions.Pause.Annotation)}, true
}

func invalid(s *subject) (Outcome, bool) {
	if len(s.in.Desired.Invalid) == 0 {
		return Outcome{}, false
	}
	return Outcome{State: StateInvalid, Message: "the upstream is invalid; existing objects are left alone"}, true
}

// lacksInput is about what cannot be told before an input is there: what stands is left alone.
func lacksInput(s *subject) (Outcome, bool) {
	var missing *waiting
	if !errors.As(s.desired.Err, &missing) {
		return Outcome{}, false
	}
	return Outcome{State: StateWaiting, Message: missing.message}, true
}

func unrendered(s *subject) (Outcome, bool) {
	if s.desired.Err == nil {
		return Outcome{}, false
	}
	return Outcome{State: StateRenderFailed, Message: s.desired.Err.Error()}, true
}

func unwanted(s *subject) (Outcome, bool) {
	if s.desired.Wanted {
		return Outcome{}, false
	}
	if s.desired.Several {
		return Outcome{State: StateUnwanted, Message: "no item is wanted"}, true
	}
	return Outcome{State: StateUnwanted, Message: "when is false"}, true
}

func absent(s *subject) (Outcome, bool) {
	if s.facts.Live != nil {
		return Outcome{}, false
	}
	if s.facts.Finished && s.Downstream.Config.UpdatePolicy == config.UpdateCreateOnly && s.facts.RecordedAt == s.desired.Target {
		return finishedBefore(s), true
	}
	if s.OwnsFields() {
		return Outcome{State: StateWaiting, Message: s.desired.Target.String() + " does not exist: somebody else has to create it (ownership: Fields)"}, true
	}
	if f := s.facts.Verdict.Foreign; f != "" {
		return Outcome{State: StateConflict, Message: f}, true
	}
	return Outcome{State: StateCreate, Action: ActionCreate, Message: s.desired.Target.String() + " does not exist"}, true
}

// finishedBefore is about an object that is gone and whose work is done: how it ended stays true. As with one that still
// exists, it is the name that tells one piece of work from another, not the hash: a changed template, or a new version of
// the canonical form, would do all work again that was ever done.
func finishedBefore(s *subject) Outcome {
	o := Outcome{State: StateInSync, Finished: true, Failed: s.facts.Failed, Message: "completed; will not be recreated"}
	if o.Failed {
		o.Message = "failed; will not be recreated"
	}
	return o
}

// terminating is about an object that somebody deletes and, with a finalizer, may keep for as long as they like: it is in force all that
// time, so its drift is repaired. A changed desired state waits for the new object.
func terminating(s *subject) (Outcome, bool) {
	live := s.facts.Live
	if !live.Deleting {
		return Outcome{}, false
	}
	text := "%s is being deleted and is recreated once it is gone"
	switch {
	case s.OwnsFields():
		text = "%s is being deleted, and is not ours: nothing is set on it"
	case s.ours() && s.Downstream.Repairs() && s.facts.LastHash() == s.desired.Hash:
		if _, same := inSync(s); !same {
			return drifted(s)
		}
	}
	o := Outcome{State: StateWaiting, Message: fmt.Sprintf(text, s.desired.Target)}
	if live.Status == kstatus.TerminatingStatus && live.StatusMessage != "" {
		o.Message += "; " + live.StatusMessage
	}
	return o, true
}

// notOurs is about an object that is not known to be ours: a conflict, unless adoption is allowed and nobody else owns it.
// Our mark alone says nothing: whoever may create the kind can write it.
func notOurs(s *subject) (Outcome, bool) {
	if s.OwnsFields() {
		return othersObject(s)
	}
	if s.ours() {
		return Outcome{}, false
	}
	target, what, marked := s.desired.Target, "is not ours", Marked(s.facts.Live, s.in.Upstream.GetUID())
	self := Ref{Namespace: s.in.Upstream.GetNamespace(), Name: s.in.Upstream.GetName()}
	left := LeftBy(s.facts.Live, self, s.in.Upstream.GetUID())
	owner, earlier := ownerIn(s.facts.Live, s.in.Upstream)
	switch {
	case earlier:
		return Outcome{State: StateWaiting, Message: fmt.Sprintf("%s belongs to %s: it is recreated once the garbage collector has deleted it", target, owner)}, true
	case owner != "" && !marked && !left:
		return Outcome{State: StateConflict, Message: fmt.Sprintf("%s exists and belongs to %s", target, owner)}, true
	}
	if s.Downstream.Config.AdoptionPolicy == config.AdoptIfUnowned {
		owned := "has no owner"
		if marked {
			owned = "names this upstream as its owner"
		}
		return Outcome{State: StateUpdate, Action: ActionApply, Message: fmt.Sprintf("%s exists, %s, and is adopted", target, owned)}, true
	}
	advice := "delete it, give the downstream another name, or set adoptionPolicy: IfUnowned"
	switch live := s.facts.Live; {
	case left:
		what, advice = EarlierMark(live, s.in.Upstream.GetKind()), "if no other operator has these conventions, "+advice
	case marked && IsOfFields(live.Hash):
		what = "belongs to others: this operator only set fields of it (ownership: Fields)"
	case marked && live.Hash == "":
		what = "has our owner mark, but was not created by this operator"
	case HasLostOwner(live):
		what, advice = LostOwner(live), "if conventions.owner has changed, set conventions.previous.owner; if not, "+advice
	case live.Hash != "": // adopted, it would be deleted by that operator, or with it
		what = fmt.Sprintf("appears to belong to another operator: it has %s, which holds a hash, and no owner mark that field manager %s applied",
			s.HashKey(), s.Pipeline.Config.Conventions.FieldManager)
		advice = "if conventions.fieldManager has changed, set conventions.previous.fieldManager; if not, give the downstream another name, " +
			"or remove the object's labels and annotations of that operator once it no longer runs"
	}
	return Outcome{State: StateConflict, Message: fmt.Sprintf("%s exists and %s: %s", target, what, advice)}, true
}

// othersObject is notOurs for an object of others, which needs no mark of ours before the first apply. Its owner annotation names one
// upstream: what a second one would set under the same field manager, the first would remove.
func othersObject(s *subject) (Outcome, bool) {
	live, up := s.facts.Live, s.in.Upstream
	at, uid, marked := ParseOwnerMark(live.OwnerMark)
	self := Ref{Namespace: up.GetNamespace(), Name: up.GetName()}
	switch {
	case marked && at != self && !live.MarkVoid:
		return Outcome{State: StateConflict, Message: fmt.Sprintf("%s of %s has the fields of %s, and two upstreams of one operator cannot both set fields of one object: "+
			"give one of them another object, or an operator with another field manager and owner annotation",
			s.Pipeline.Config.Conventions.Owner.Annotation, s.desired.Target, at)}, true
	case marked && uid == string(up.GetUID()), s.facts.Trusted && s.facts.AppliedHash != "":
		return Outcome{}, false
	}
	return Outcome{State: StateUpdate, Action: ActionApply, Message: fmt.Sprintf("%s exists, and gets the rendered fields", s.desired.Target)}, true
}

// ours reports whether what stands is known to be ours. Nothing else may be reported, let alone recorded: what the status
// records is believed later.
func (s *subject) ours() bool {
	if s.OwnsFields() {
		return Marked(s.facts.Live, s.in.Upstream.GetUID())
	}
	return s.Downstream.Owns(s.facts.Live, s.in.Upstream.GetUID(), s.facts.Trusted)
}

// Repairs reports whether drift is undone: by the policies it may also be reported, or left alone.
func (d *Downstream) Repairs() bool {
	return d.Config.UpdatePolicy != config.UpdateCreateOnly && d.Config.Drift.Policy != config.DriftReport && d.Config.Drift.Policy != config.DriftIgnore
}

// unselected decides on an object of ours that lost the labels that its watch selects by, and that would not be repaired: without
// them it is read again and again, since no watch shows it. It gets its marks back, and nothing else.
func unselected(s *subject) (Outcome, bool) {
	if !s.facts.Live.Unselected || s.Downstream.Repairs() {
		return Outcome{}, false
	}
	return Outcome{State: StateRepair, Action: ActionReplaceMarks,
		Message: fmt.Sprintf("%s has lost the labels that the watch selects by", s.desired.Target)}, true
}

func createOnly(s *subject) (Outcome, bool) {
	if s.Downstream.Config.UpdatePolicy != config.UpdateCreateOnly {
		return Outcome{}, false
	}
	if o, ok := unselected(s); ok {
		return o, true
	}
	live := s.facts.Live
	if !s.facts.Trusted && s.TrustsStatus() && (live.Hash != s.desired.Hash || live.P != s.desired.Sum) {
		return Outcome{State: StateDrifted, Message: fmt.Sprintf("%s exists, and updatePolicy is CreateOnly; it differs from the rendered document, "+
			"and the status does not record that this operator created it: only its field manager says so", s.desired.Target)}, true
	}
	return Outcome{State: StateInSync, Message: "it exists, and updatePolicy is CreateOnly"}, true
}

// inSync finds without any request that the object is what was applied.
func inSync(s *subject) (Outcome, bool) {
	live, b := s.facts.Live, s.facts.Baseline
	if s.View.LacksGenerated(live) {
		return Outcome{}, false
	}
	asReturned := b != nil && live.P == *b // keys beyond ours included, which then are the API server's own
	if live.Hash != s.desired.Hash || (!asReturned && (live.P != s.desired.Sum || live.Extra)) {
		return Outcome{}, false
	}
	if live.Unselected { // the label of its shard is the only one that is not part of P
		return Outcome{State: StateUpdate, Action: ActionApply, Message: fmt.Sprintf("%s has the label of another shard", s.desired.Target)}, true
	}
	switch stale := s.facts.Verdict.Stale; {
	case s.facts.Unverified:
		return Outcome{State: StateUpdate, Action: ActionApply, Compares: true,
			Message: "it is compared with a new object again: it was not, or differed, after the last update"}, true
	case stale != "":
		return Outcome{State: StateStale, Message: fmt.Sprintf("%s has values that a new object would not have, and an update cannot change them: %s; "+
			"set them in the template, or delete the object to have it created again", s.desired.Target, stale)}, true
	}
	return Outcome{State: StateInSync}, true
}

func refused(s *subject) (Outcome, bool) {
	if !s.facts.Verdict.Immutable || s.Downstream.Config.UpdatePolicy != config.UpdateRecreate {
		return Outcome{}, false
	}
	return Outcome{State: StateRecreate, Action: ActionDelete, Message: "the change is to an immutable field: the object is deleted and recreated"}, true
}

// LastHash is the hash of the document that was applied to Live last: of what this process applied or the upstream's status
// records; where there is neither, what Live has, which anybody may have changed.
func (f *Facts) LastHash() string { return cmp.Or(f.AppliedHash, f.RecordedHash, f.Live.Hash) }

// updated tells a changed desired state from drift.
func updated(s *subject) (Outcome, bool) {
	if s.facts.LastHash() == s.desired.Hash {
		return Outcome{}, false
	}
	return Outcome{State: StateUpdate, Action: ActionApply, Message: MessageChanged}, true
}

// MessageChanged is why an object is updated.
const MessageChanged = "the desired state has changed"

// differs says what is known of an object that is no longer what was applied. What makes it ours may lack because somebody removed it,
// or because the config has another name for it: only reading the object tells.
func differs(s *subject) string {
	target, conv := s.desired.Target, s.Pipeline.Config.Conventions
	switch live := s.facts.Live; {
	case !live.Managed:
		return fmt.Sprintf("%s was not applied by field manager %s: conventions.fieldManager has changed, or somebody has cleared its managedFields",
			target, conv.FieldManager)
	case live.Hash == "":
		return fmt.Sprintf("%s lacks %s, which holds the hash: somebody has removed it, or conventions.hash has changed", target, s.HashKey())
	case !Marked(live, s.in.Upstream.GetUID()):
		return fmt.Sprintf("%s lacks its owner mark: somebody has removed it, or conventions.owner has changed", target)
	}
	return fmt.Sprintf("%s has drifted", target)
}

func drifted(s *subject) (Outcome, bool) {
	target := s.desired.Target
	switch s.Downstream.Config.Drift.Policy {
	case config.DriftIgnore:
		return Outcome{State: StateInSync, Message: "drift is ignored"}, true
	case config.DriftReport:
		switch v := s.facts.Verdict.SameByDryRun; {
		case v == nil && s.Observing():
			return Outcome{State: StateDrifted, Message: fmt.Sprintf("%s differs from the rendered document; only a dry run can tell drift from the API server's normalization, "+
				"and mode Observe makes none", target)}, true
		case v == nil:
			return Outcome{State: StateWaiting, Action: ActionCompare, Message: fmt.Sprintf("checking by a dry run whether %s has drifted", target)}, true
		case *v:
			return Outcome{State: StateInSync}, true
		}
		return Outcome{State: StateDrifted, Message: withContenders(differs(s)+"; drift.policy is Report", s.facts)}, true
	}
	return Outcome{State: StateRepair, Action: ActionApply, Message: withContenders(differs(s), s.facts)}, true
}

func withContenders(text string, f *Facts) string {
	if f.Verdict.Contenders == "" {
		return text
	}
	return text + ": " + f.Verdict.Contenders
}

// Backoff is minimum, doubled n times, at most maximum.
func Backoff(minimum, maximum time.Duration, n int) time.Duration {
	d := minimum
	for ; n > 0 && d < maximum; n-- {
		d *= 2
	}
	return min(d, maximum)
}
