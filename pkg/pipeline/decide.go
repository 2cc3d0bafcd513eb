package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// Input is everything that a decision depends on.
type Input struct {
	Upstream *unstructured.Unstructured
	// Wish is what the upstream asks for; ignored where the upstream is deleted or no longer selected.
	Wish *Wish
	// Selected is false where the upstream exists but the config's selectors no longer match it.
	Selected bool
	// Facts are about the downstreams of the config, in order.
	Facts []Facts
	// Leftovers are objects that bear this upstream's mark and stand at no target, by downstream index.
	Leftovers []Owned
	// HasFinalizer tells whether the upstream bears the config's finalizer, or the one that it named before.
	HasFinalizer bool
	// FormerFinalizer tells whether it bears the one that the config named before.
	FormerFinalizer bool
	// Hook is about deletion.before; only where the config has one and the upstream is being deleted.
	Hook HookFacts
	// Now and the retry delays space out repairs of a contested object.
	Now time.Time
}

// Owned is a live object and the downstream that it belongs to.
type Owned struct {
	Downstream int
	Live       *drift.Live
	// Certain is false where several downstreams are of its kind and nothing records which one it belongs to.
	Certain bool
	// Asked is true where its deletion or release was asked for and accepted, and the watch does not show it yet.
	Asked bool
}

// Facts are what is known of one downstream's target.
type Facts struct {
	// Live is what stands at the target; nil where nothing is known to.
	Live *drift.Live
	// Trusted is true where Live's uid is recorded in the upstream's status, or Known is.
	Trusted bool
	// Known is true where this process made Live, or saw it bear our mark while its uid was recorded.
	Known bool
	// RecordedHash is the hash that the upstream's status records; empty where none is.
	RecordedHash string
	// RecordedAt is where the upstream's status records that the object stands or stood.
	RecordedAt Ref
	// Finished is true where the status records that the object at RecordedAt had done its work, Failed where it had done it
	// badly.
	Finished, Failed bool
	// Baseline is the projection's digest that our own last apply of Live returned; nil where none is remembered.
	Baseline *drift.Sum
	// Verdict is what probes answered about Live and this wish.
	Verdict Verdict
	// Repairs counts the repairs of Live that another writer undid in a row; LastRepair is when the last one was.
	Repairs    int
	LastRepair time.Time
}

// Verdict is what the API server answered to probes, each nil or empty where it was not asked.
type Verdict struct {
	// Immutable: an apply of this wish was refused, and a dry-run create of it under another name was accepted.
	Immutable bool
	// Settled: a dry-run apply of this wish would change nothing of the live object.
	Settled *bool
	// Inspected: the live object was compared with a dry-run create; Beyond lists what it has more.
	Inspected bool
	Beyond    []string
	// Foreign describes an object at the target that is not ours and that the watch cannot see.
	Foreign string
	// Contenders describes who undoes our repairs, and where.
	Contenders string
	// Differences describes what the action would change, where mode is Observe.
	Differences string
}

// contestedAfter is how many repairs in a row another writer may undo before they are spaced out.
const contestedAfter = 3

// Decide says what is to be done about an upstream that is not being deleted. It is a pure function of its input.
func (p *Pipeline) Decide(in Input) Decision {
	if !in.Selected {
		return p.decideUnselected(in)
	}
	var out Decision
	for i, d := range p.Downstreams {
		o := p.decideOne(&subject{Pipeline: p, Downstream: d, in: &in, facts: &in.Facts[i], wish: wishOf(in.Wish, i)})
		o.Downstream = i
		out.Outcomes = append(out.Outcomes, o)
	}
	p.decideLeftovers(in, &out)
	out.Finalizer = p.finalizerWish(in, &out)
	if out.Finalizer == FinalizerLeave && in.FormerFinalizer && p.Config.Conventions.Finalizer != "" && !p.Paused(in.Upstream) {
		out.Finalizer = FinalizerSwap
	}
	return out
}

func wishOf(w *Wish, i int) *DownstreamWish {
	if w == nil || i >= len(w.Downstreams) {
		return nil
	}
	return &w.Downstreams[i]
}

// subject is one downstream under decision.
type subject struct {
	*Pipeline
	*Downstream
	in    *Input
	facts *Facts
	wish  *DownstreamWish
}

// chain is the order in which a downstream is looked at: the first step that has an answer decides.
var chain = []func(*subject) (Outcome, bool){
	paused, invalid, lacksInput, unrendered, unwanted, absent, terminating, notOurs, forged, carried, createOnly, settled, refused, updated, drifted,
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
			o.Theirs = s.facts.Live != nil && !s.ours()
			if p.Observing() {
				o.Message = would(o, s.facts.Verdict.Differences)
			}
			if s.wish != nil && s.wish.Wanted {
				o.Target = s.wish.Target
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
	if s.in.Wish == nil || len(s.in.Wish.Invalid) == 0 {
		return Outcome{}, false
	}
	return Outcome{State: StateInvalid, Message: "the upstream is invalid; what stands is left alone"}, true
}

// lacksInput is about what cannot be told before an input is there: what stands is left alone.
func lacksInput(s *subject) (Outcome, bool) {
	var missing *waiting
	if !errors.As(s.wish.Err, &missing) {
		return Outcome{}, false
	}
	return Outcome{State: StateWaiting, Message: missing.message}, true
}

func unrendered(s *subject) (Outcome, bool) {
	if s.wish.Err == nil {
		return Outcome{}, false
	}
	return Outcome{State: StateRenderFailed, Message: s.wish.Err.Error()}, true
}

func unwanted(s *subject) (Outcome, bool) {
	if s.wish.Wanted {
		return Outcome{}, false
	}
	return Outcome{State: StateUnwanted, Message: "when is false"}, true
}

func absent(s *subject) (Outcome, bool) {
	if s.facts.Live != nil {
		return Outcome{}, false
	}
	if s.facts.Finished && s.Downstream.Config.UpdatePolicy == config.UpdateCreateOnly && s.facts.RecordedAt == s.wish.Target {
		return finishedBefore(s), true
	}
	if f := s.facts.Verdict.Foreign; f != "" {
		return Outcome{State: StateConflict, Message: f}, true
	}
	if wait := s.contestedFor(); wait > 0 {
		return Outcome{State: StateContested, RequeueAfter: wait,
			Message: fmt.Sprintf("somebody keeps deleting or changing %s; it is made again with growing delay", s.wish.Target)}, true
	}
	return Outcome{State: StateCreate, Action: ActionCreate, Message: "nothing stands at " + s.wish.Target.String()}, true
}

// finishedBefore is about an object that is gone and whose work is done: how it ended stays true. As with one that still
// stands, it is the name that tells one piece of work from another, not the hash: a changed template, or a new version of
// the canonical form, would do all work again that was ever done.
func finishedBefore(s *subject) Outcome {
	o := Outcome{State: StateInSync, Finished: true, Failed: s.facts.Failed, Message: "it had finished and is not made again"}
	if o.Failed {
		o.Message = "it had failed and is not made again"
	}
	return o
}

func terminating(s *subject) (Outcome, bool) {
	if !s.facts.Live.Deleting {
		return Outcome{}, false
	}
	return Outcome{State: StateWaiting, Message: fmt.Sprintf("%s is being deleted and is made again once it is gone", s.wish.Target)}, true
}

// notOurs is about an object without our mark: a conflict, unless adoption is allowed and nobody else owns it. An
// object that lost its marks but whose uid we know is ours still.
func notOurs(s *subject) (Outcome, bool) {
	live := s.facts.Live
	if Marked(live, s.in.Upstream.GetUID()) || s.lostMarks() {
		return Outcome{}, false
	}
	if owner := controllerOf(live); owner != "" {
		return Outcome{State: StateConflict, Message: fmt.Sprintf("%s exists and belongs to %s", s.wish.Target, owner)}, true
	}
	if s.Downstream.Config.AdoptionPolicy == config.AdoptIfUnowned {
		return Outcome{State: StateUpdate, Action: ActionApply, Message: fmt.Sprintf("%s exists, is owned by nobody, and is adopted", s.wish.Target)}, true
	}
	return Outcome{State: StateConflict, Message: fmt.Sprintf(
		"%s exists and is not ours: delete it, give the downstream another name, or set adoptionPolicy: IfUnowned", s.wish.Target)}, true
}

// lostMarks tells whether an object without our mark is ours all the same, by its uid. A status that is written like any
// other field of the upstream is no witness: whoever may create the upstream could claim any object by it.
func (s *subject) lostMarks() bool {
	recorded := s.facts.Trusted && s.Pipeline.Upstream.HasStatus
	return (s.facts.Known || recorded) && !OwnedByOther(s.facts.Live, s.in.Upstream.GetUID())
}

// ours tells whether what stands is known to be ours. Nothing else may be reported, let alone recorded: what the status
// records is believed later.
func (s *subject) ours() bool {
	if !Marked(s.facts.Live, s.in.Upstream.GetUID()) {
		return s.lostMarks()
	}
	return s.facts.Trusted || s.harmless()
}

// harmless tells of an object that bears our mark unrecorded that there is nothing to ask: no status can record it and
// nobody else has written to it.
func (s *subject) harmless() bool { return !s.Records() && !s.facts.Live.Foreign }

// forged is about an object that bears our mark while nothing records that we made it. Whoever may create the kind can
// write the mark, so it is ours only if it has nothing that we would not have given it. Where even an object without the
// mark may be adopted, one with it may be too: it may be one that was adopted just before the process died.
func forged(s *subject) (Outcome, bool) {
	if !Marked(s.facts.Live, s.in.Upstream.GetUID()) || s.ours() || s.Downstream.Config.AdoptionPolicy == config.AdoptIfUnowned {
		return Outcome{}, false
	}
	v := s.facts.Verdict
	switch {
	case !v.Inspected && s.Observing():
		return Outcome{State: StateWaiting, Message: fmt.Sprintf("%s bears our mark, but nothing records that it was made here: what would become of it takes a dry run to tell, "+
			"which mode Observe does not make; with adoptionPolicy: IfUnowned it would be adopted", s.wish.Target)}, true
	case !v.Inspected:
		return Outcome{State: StateWaiting, Action: ActionInspect, Message: fmt.Sprintf("%s bears our mark, but nothing records that it was made here: inspecting it", s.wish.Target)}, true
	case len(v.Beyond) > 0:
		return Outcome{State: StateConflict, Message: fmt.Sprintf("%s bears our owner mark, but was not made here and has more than we would give it (%s): delete it",
			s.wish.Target, strings.Join(firstN(v.Beyond, 5), ", "))}, true
	}
	return Outcome{}, false
}

func createOnly(s *subject) (Outcome, bool) {
	if s.Downstream.Config.UpdatePolicy != config.UpdateCreateOnly {
		return Outcome{}, false
	}
	return Outcome{State: StateInSync, Message: "it exists, and updatePolicy is CreateOnly"}, true
}

// settled is the promise: in sync without a request.
func settled(s *subject) (Outcome, bool) {
	live, b := s.facts.Live, s.facts.Baseline
	asReturned := b != nil && live.P == *b // keys beyond ours included, which then are the API server's own
	if live.Hash != s.wish.Hash || (!asReturned && (live.P != s.wish.Sum || live.Extra)) {
		return Outcome{}, false
	}
	return Outcome{State: StateInSync}, true
}

func refused(s *subject) (Outcome, bool) {
	if !s.facts.Verdict.Immutable || s.Downstream.Config.UpdatePolicy != config.UpdateRecreate {
		return Outcome{}, false
	}
	return Outcome{State: StateRecreate, Action: ActionDelete, Message: "the change is to an immutable field: the object is deleted and made again"}, true
}

// updated tells a changed wish from drift by the hash that the upstream's status records, or, where it records none,
// by the one on the live object.
func updated(s *subject) (Outcome, bool) {
	known := s.facts.RecordedHash
	if known == "" {
		known = s.facts.Live.Hash
	}
	if known == s.wish.Hash {
		return Outcome{}, false
	}
	return Outcome{State: StateUpdate, Action: ActionApply, Message: "what the upstream asks for has changed"}, true
}

func drifted(s *subject) (Outcome, bool) {
	target := s.wish.Target
	switch s.Downstream.Config.Drift.Policy {
	case config.DriftIgnore:
		return Outcome{State: StateInSync, Message: "drift is ignored"}, true
	case config.DriftReport:
		switch v := s.facts.Verdict.Settled; {
		case v == nil && s.Observing():
			return Outcome{State: StateDrifted, Message: fmt.Sprintf("%s is not literally what would be applied; whether more than the API server's own spelling takes a dry run to tell, "+
				"which mode Observe does not make", target)}, true
		case v == nil:
			return Outcome{State: StateWaiting, Action: ActionSettle, Message: fmt.Sprintf("asking whether %s has drifted", target)}, true
		case *v:
			return Outcome{State: StateInSync}, true
		}
		return Outcome{State: StateDrifted, Message: withContenders(fmt.Sprintf("%s is no longer what was applied; drift.policy is Report", target), s.facts)}, true
	}
	if wait := s.contestedFor(); wait > 0 {
		return Outcome{State: StateContested, RequeueAfter: wait,
			Message: withContenders(fmt.Sprintf("another writer keeps undoing what is applied to %s; repairs are spaced out", target), s.facts)}, true
	}
	return Outcome{State: StateRepair, Action: ActionApply, Message: withContenders(fmt.Sprintf("%s is no longer what was applied", target), s.facts)}, true
}

func withContenders(text string, f *Facts) string {
	if f.Verdict.Contenders == "" {
		return text
	}
	return text + ": " + f.Verdict.Contenders
}

// contestedFor is how long the next repair of a contested object waits: the retry delays, doubled for each repair that
// was undone.
func (s *subject) contestedFor() time.Duration {
	n := s.facts.Repairs - contestedAfter
	if n < 0 {
		return 0
	}
	retry := s.Pipeline.Config.Retry
	next := s.facts.LastRepair.Add(Backoff(time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay), n))
	return next.Sub(s.in.Now)
}

// Backoff is minimum, doubled n times, at most maximum.
func Backoff(minimum, maximum time.Duration, n int) time.Duration {
	d := minimum
	for ; n > 0 && d < maximum; n-- {
		d *= 2
	}
	return min(d, maximum)
}

// Marked tells whether live bears the mark of the upstream with this uid. A plain owner reference, of which an object may
// have many, is none on what another one controls.
func Marked(live *drift.Live, uid types.UID) bool {
	plain := false
	for _, ref := range live.Owners {
		if ref.UID == uid && ref.Controller {
			return true
		}
		plain = plain || ref.UID == uid
	}
	_, marked, ok := ParseOwnerMark(live.OwnerMark)
	return ok && marked == string(uid) || plain && !OwnedByOther(live, uid)
}

// OwnedByOther tells whether live has a controller or an owner mark that is not this upstream.
func OwnedByOther(live *drift.Live, uid types.UID) bool {
	for _, ref := range live.Owners {
		if ref.Controller && ref.UID != uid {
			return true
		}
	}
	_, marked, ok := ParseOwnerMark(live.OwnerMark)
	return ok && marked != string(uid)
}

func controllerOf(live *drift.Live) string {
	for _, ref := range live.Owners {
		if ref.Controller {
			return ref.Kind + " " + ref.Name
		}
	}
	if ref, _, ok := ParseOwnerMark(live.OwnerMark); ok {
		return ref.String()
	}
	return ""
}

func firstN(list []string, n int) []string {
	if len(list) > n {
		return append(list[:n:n], fmt.Sprintf("and %d more", len(list)-n))
	}
	return list
}
