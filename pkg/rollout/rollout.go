package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/config/staged"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Rollout is how far a changed config has come. It begins with a survey of all upstreams. A nil one holds nothing.
type Rollout struct {
	config *staged.Rollout
	name   string // of the config, as in marks
	now    func() time.Time
	// changed has room for one: something has changed that may let the rollout go on.
	changed chan struct{}

	mu sync.Mutex
	// mark is that of this rollout; members are the upstreams that it concerns, nil if there is none under way.
	mark    Mark
	members map[operator.Ref]*member
	// order are the members in the order in which they are moved.
	order []operator.Ref
	// fresh are those that were found moved, and are to be looked at once.
	fresh []operator.Ref
	// survey is under way; nil after it.
	survey *survey
	// limit is how many upstreams may be moved by the steps that have begun.
	limit int
	// readySince is since when all that was moved is Ready; zero while any is not.
	readySince time.Time
	control    Control
	// unread says why a decision cannot be read, so that nothing is moved; empty if it can. unwatched says why none is
	// watched, as an addition to what the rollout waits for.
	unread, unwatched string
	// before are the upstreams that the config before goes on with while they wait.
	before served
	// returned are those that have joined, which the config before goes on with if it still works.
	returned []operator.Ref
	// byPerson: a person has reverted it.
	byPerson bool
	// reverted says why what was moved was given back to the config before; empty if it was not.
	reverted string
}

// served are upstreams that a config serves: none unless it works, and else those of only, or all if that is nil.
type served struct {
	works bool
	only  map[operator.Ref]bool
}

func (s served) has(ref operator.Ref) bool { return s.works && (s.only == nil || s.only[ref]) }

// member is one upstream of a rollout.
type member struct {
	phase phase
	// own: it was moved by an edit of its own, and counts for no step.
	own bool
	// paused: nothing is done for it, so that it takes no turn.
	paused bool
	// busy: the config before reconciles it now.
	busy bool
	// key is its place in the order; refuses and said are those of Surveyed.
	key, refuses, said string
	// found is what its status said when it was found moved.
	found Outcome
	// since is when it was moved, or found moved.
	since time.Time
	// why says what has failed.
	why string
}

type phase int

const (
	waiting phase = iota
	moving
	ready
	failed
)

// New returns the rollout of a config with that digest; nil if the config has none. now is the clock.
func New(c *staged.Rollout, digest string, now func() time.Time) *Rollout {
	if c == nil {
		return nil
	}
	return &Rollout{config: c, name: ConfigName(digest), now: now, changed: make(chan struct{}, 1)}
}

// Begin begins the survey. Until Open, nothing is admitted.
func (r *Rollout) Begin() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members, r.order, r.fresh, r.returned, r.limit = nil, nil, nil, nil, 0
	r.survey = &survey{config: r.name, found: map[operator.Ref]Surveyed{}, keys: map[operator.Ref]string{}}
	r.readySince, r.control, r.before, r.reverted, r.byPerson = time.Time{}, Control{}, served{}, "", false
}

// Note records what the survey has found of an upstream; order is the text that it is sorted by.
func (r *Rollout) Note(ref operator.Ref, s Surveyed, order string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.survey != nil {
		r.survey.note(ref, s, order)
	}
}

// Open ends the survey: the rollout goes on where the marks of the objects say that it is, or begins. fresh: the config
// before has worked in this process until now, so that no step can have begun; else the first pause comes before any.
func (r *Rollout) Open(fresh bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	v := r.survey
	if r.survey = nil; v == nil {
		return
	}
	r.mark = v.mark(now)
	r.members = map[operator.Ref]*member{}
	waits, inSteps := false, 0
	for ref, s := range v.found {
		m := &member{key: v.keys[ref], refuses: s.Refuses, said: s.Said, since: now, paused: s.Paused}
		switch moved, own := v.movedIn(s); {
		case moved:
			m.phase, m.own, m.said = moving, own, ""
			r.fresh = append(r.fresh, ref)
			if !own {
				inSteps++
			}
			m.found = Outcome{Applied: !s.Changes, Ready: s.Ready, Reason: s.Said}
		case s.Edited && !s.Paused:
			m.phase, m.own = moving, true
		case s.Changes || s.Refuses != "" && s.Refuses != s.Said:
			waits = true
		default: // one that fails as before, or was moved in an earlier rollout
			continue
		}
		r.members[ref] = m
	}
	if !waits {
		r.members, r.fresh = nil, nil
	}
	for ref := range r.members {
		r.order = append(r.order, ref)
	}
	// whether a step was done is not known: what is moved must be Ready before the next one
	if r.limit = inSteps; inSteps == 0 && waits && fresh {
		r.limit = Limits(r.config, len(r.members))[0]
	}
	slices.SortFunc(r.order, func(a, b operator.Ref) int {
		return cmp.Or(cmp.Compare(r.members[a].key, r.members[b].key), a.Compare(b))
	})
	r.wake()
}

func (r *Rollout) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Mark is what an object of an upstream is marked with when it is applied now; "" without a rollout.
func (r *Rollout) Mark(ref operator.Ref) string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mark := r.mark
	if mark == (Mark{}) {
		return ""
	}
	m := r.members[ref]
	mark.Own = m == nil || m.own // what no step has moved counts for none
	return mark.String()
}

// Admit reports whether the changed config may act on an upstream now. One that waits does not wait any more once it is
// edited.
func (r *Rollout) Admit(ref operator.Ref, s Surveyed) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memberFor(ref, s)
	if m == nil || m.phase != waiting {
		return true
	}
	m.paused = false
	switch {
	case m.busy:
		return false
	case s.Edited && (r.reverted == "" || !r.before.has(ref)):
		m.phase, m.own, m.since = moving, true, r.now()
		r.wake()
		return true
	case !s.Changes && s.Refuses == "" && !r.before.has(ref):
		return true // nothing of it would be changed
	case m.refuses != s.Refuses:
		m.refuses = s.Refuses
		r.wake()
	}
	return false
}

// memberFor is the member that an upstream is, or becomes: one that the survey has not found, since it was not
// selected, or is new in a rollout that was reverted. It is nil for any other.
func (r *Rollout) memberFor(ref operator.Ref, s Surveyed) *member {
	m := r.members[ref]
	if m == nil && r.members != nil && (s.Changes && !s.Edited || r.reverted != "") {
		m = &member{said: s.Said}
		r.members[ref], r.order = m, append(r.order, ref)
		r.returned = append(r.returned, ref)
		r.wake()
	}
	return m
}

// Keeps reports whether the config before keeps what is edited, too: the rollout was reverted.
func (r *Rollout) Keeps() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reverted != ""
}

// SetAside is called for an upstream that is paused: it waits, and takes no turn until it is resumed.
func (r *Rollout) SetAside(ref operator.Ref) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[ref]; m != nil && (m.phase == waiting || m.phase == moving) && !m.paused {
		m.phase, m.paused = waiting, true
		r.wake()
	}
}

// MayHold reports whether Admit may hold an upstream: a rollout is under way, and has not moved it.
func (r *Rollout) MayHold(ref operator.Ref) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[ref]
	return r.members != nil && (m == nil || m.phase == waiting)
}

// ServeBefore has the config before go on with the upstreams that wait, or with those of them that are in only; nil for
// all. works false ends that.
func (r *Rollout) ServeBefore(works bool, only map[operator.Ref]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = served{works, only}
	r.wake()
}

// IsServed reports whether the config before goes on with an upstream that waits, and whether it does so right now.
func (r *Rollout) IsServed(ref operator.Ref) (served, busy bool) {
	if r == nil {
		return false, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[ref]
	return m != nil && m.phase == waiting && r.before.has(ref), m != nil && m.busy
}

// Enter reports whether the config before may reconcile an upstream now. Then the changed one does not, until Leave is
// called.
func (r *Rollout) Enter(ref operator.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[ref]
	if m == nil || m.phase != waiting || m.busy || !r.before.has(ref) {
		return false
	}
	m.busy = true
	return true
}

// Leave ends what Enter has begun.
func (r *Rollout) Leave(ref operator.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[ref]; m != nil {
		m.busy = false
		r.wake()
	}
}

// Unmoved are the upstreams with which the config before still goes on; nil if it does with none.
func (r *Rollout) Unmoved() map[operator.Ref]bool {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.before.works {
		return nil
	}
	set := map[operator.Ref]bool{}
	for ref, m := range r.members {
		if m.phase == waiting && r.before.has(ref) {
			set[ref] = true
		}
	}
	return set
}

// revert gives back what was moved by the steps, the last first, and returns it. Nothing more is moved.
func (r *Rollout) revert(why string, byPerson bool) (refs []operator.Ref) {
	for _, ref := range slices.Backward(r.order) {
		m := r.members[ref]
		if m == nil || m.phase == waiting || m.own || !r.before.has(ref) {
			continue
		}
		m.phase, m.why = waiting, ""
		refs = append(refs, ref)
	}
	r.reverted, r.byPerson = why, byPerson
	return refs
}

// Outcome is what has become of an upstream that was moved.
type Outcome struct {
	// Applied: every object of it has the document of the changed config.
	Applied bool
	// Ready and Reason are what its status says.
	Ready  bool
	Reason string
	// Halts is which rule of haltWhen is true; empty for none.
	Halts string
}

// Observe records what has become of an upstream.
func (r *Rollout) Observe(ref operator.Ref, o Outcome) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[ref]
	if m == nil || m.phase == waiting {
		return
	}
	before := m.phase
	m.observe(o, m.phase == failed && !r.now().Before(m.since.Add(r.deadline())))
	if m.phase != before {
		r.wake()
	}
	if m.phase == moving && before != moving { // it was Ready: its time begins again
		m.since = r.now()
	}
}

// observe notes what has become of an upstream that was moved. One that is late has failed until it is Ready; one that
// has failed as before the rollout is as good as it was.
func (m *member) observe(o Outcome, late bool) {
	switch {
	case o.Halts != "":
		m.phase, m.why = failed, o.Halts
	case !o.Ready && hasFailed(o.Reason, m.said):
		m.phase, m.why = failed, o.Reason
	case o.Applied && o.Ready, !o.Ready && o.Reason != "" && o.Reason == m.said && hasFailed(o.Reason, ""):
		m.phase, m.why = ready, ""
	case !late:
		m.phase, m.why = moving, ""
	}
}

// Forget is called once an upstream is gone, or not selected any more, or is being deleted.
func (r *Rollout) Forget(ref operator.Ref) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.members[ref] != nil {
		delete(r.members, ref)
		r.wake()
	}
}

// IsOpen reports whether a rollout is under way.
func (r *Rollout) IsOpen() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members != nil
}

func (r *Rollout) deadline() time.Duration { return time.Duration(r.config.ProgressDeadline) }

// Limits are how many upstreams each step of a config moves, of all that a rollout concerns.
func Limits(c *staged.Rollout, all int) []int {
	limits, before := make([]int, len(c.Steps)), 0
	for i, step := range c.Steps {
		text, isShare := strings.CutSuffix(string(step), "%")
		n, _ := strconv.Atoi(text) // held to its form when it was loaded
		if isShare {
			n = (all*n + 99) / 100
		}
		before = min(max(n, before), all)
		limits[i] = before
	}
	return limits
}

// in are the members in a phase, in their order.
func (r *Rollout) in(p phase) (refs []operator.Ref) {
	for _, ref := range r.order {
		if m := r.members[ref]; m != nil && m.phase == p {
			refs = append(refs, ref)
		}
	}
	return refs
}

// whyFailed names the first upstreams that have failed, and says why.
func (r *Rollout) whyFailed(refs []operator.Ref) string {
	return names(refs, func(ref operator.Ref) string { return fmt.Sprintf("%s (%s)", ref, r.members[ref].why) })
}
