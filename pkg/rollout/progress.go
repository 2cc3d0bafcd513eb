package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/config/staged"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Progress is how far a rollout has come. The zero value is none.
type Progress struct {
	// State is one of the states below; empty if no rollout is under way.
	State State `json:"state"`
	// Config names the changed config, as commands do.
	Config string `json:"config"`
	// Step is the number of the step that is under way, of Steps, which ends when Limit upstreams are moved.
	Step  int `json:"step"`
	Steps int `json:"steps"`
	Limit int `json:"limit"`
	// All are the upstreams that the rollout concerns; of them Moved are moved, and the others wait. Of those that are
	// moved, or were edited meanwhile, Ready are Ready and Failed have failed.
	All    int `json:"all"`
	Moved  int `json:"moved"`
	Edited int `json:"edited"`
	Ready  int `json:"ready"`
	Failed int `json:"failed"`
	// Began is when it began.
	Began time.Time `json:"began"`
	// Why says what it waits for.
	Why string `json:"why"`
}

// State is what a rollout does.
type State string

// The states of a rollout.
const (
	// Moving: upstreams are moved, or are not Ready yet.
	Moving State = "Moving"
	// Pausing: all that was moved is Ready, and the pause of the config is not over.
	Pausing State = "Pausing"
	// Paused: a person has paused it.
	Paused State = "Paused"
	// Waiting: the last step is gone, and the rest waits for a person.
	Waiting State = "Waiting"
	// Reverted: what was moved has the config before again. Nothing more is moved.
	Reverted State = "Reverted"
	// Halted: too many upstreams have failed. Nothing more is moved.
	Halted State = "Halted"
)

// Stopped reports whether nothing more is moved before a person acts, or what has failed is repaired.
func (p Progress) Stopped() bool { return p.State == Halted || p.State == Reverted }

// String says it in one line, the same as long as nothing changes.
func (p Progress) String() string {
	text := fmt.Sprintf("step %d of %d: %d of %d upstreams moved, %d Ready, %d failed", p.Step, p.Steps, p.Moved, p.All,
		p.Ready, p.Failed)
	if p.Edited > 0 {
		text += fmt.Sprintf(", %d of them by an edit of their own", p.Edited)
	}
	if p.Why != "" {
		text += "; " + p.Why
	}
	return text
}

// Serve moves upstreams until ctx is done: move is called with those that may be moved now, and back with those that
// the config before gets again. show is called with the progress whenever it changes, and with the zero value once all
// upstreams are moved. control is what a person has decided, as text, and why that is not known, empty if it is; it is
// looked at now and then while a rollout is under way.
func (r *Rollout) Serve(
	ctx context.Context, control func() (decision, problem string), show func(Progress), move, back func([]operator.Ref),
) {
	var shown Progress
	for first := true; ctx.Err() == nil; first = false {
		refs, now, next := r.step(control())
		if len(refs) > 0 {
			move(refs)
		}
		given := append(r.revertIfHalted(now), r.takeReturned()...)
		if len(given) > 0 {
			back(given)
			continue
		}
		if now != shown || first {
			shown = now
			show(now)
		}
		timer := time.NewTimer(max(next, settle))
		select {
		case <-ctx.Done():
		case <-r.changed:
		case <-timer.C:
		}
		if timer.Stop(); ctx.Err() == nil { // many upstreams report at once
			<-time.After(settle)
		}
	}
}

// settle is how long changes are collected before they are looked at.
const settle = 100 * time.Millisecond

// idle is after how long is looked again if nothing happens, and poll while a person may decide something.
const (
	idle = time.Hour
	poll = time.Second
)

// Look is how far the rollout is, for anyone who does not carry it out, and the upstreams that wait, in the order in
// which they are moved. What the API server has refused is on no object: those that are next and say so have failed.
func (r *Rollout) Look() (p Progress, waits []operator.Ref) {
	if r == nil {
		return Progress{}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		if m.phase == moving {
			m.observe(m.found, false)
		}
	}
	if inSteps := r.inSteps(); r.members != nil && inSteps > 0 {
		limits := Limits(r.config, len(r.members))
		r.limit = max(inSteps, limits[reached(limits, inSteps)])
	}
	r.takeRefused()
	p, _ = r.look()
	return p, r.in(waiting)
}

// turns are the upstreams that wait for their turn.
func (r *Rollout) turns() []operator.Ref {
	return slices.DeleteFunc(r.in(waiting), func(ref operator.Ref) bool { return r.members[ref].paused })
}

// inSteps counts the upstreams that were moved by steps.
func (r *Rollout) inSteps() (n int) {
	for _, m := range r.members {
		if m.phase != waiting && !m.own {
			n++
		}
	}
	return n
}

// whyHalted says why nothing more may be moved; empty if it may.
func (r *Rollout) whyHalted(waits, failures []operator.Ref) string {
	if len(failures) > r.config.MaxFailures {
		return "failed: " + r.whyFailed(failures)
	}
	return r.refusesNext(waits, len(failures))
}

// takeRefused has those fail that are next, and say that the API server has refused them.
func (r *Rollout) takeRefused() {
	next := r.turns()
	for _, ref := range next[:max(min(r.limit-r.inSteps(), len(next)), 0)] {
		if m := r.members[ref]; hasFailed(m.said, "") {
			m.phase, m.why = failed, m.said
		}
	}
}

// step moves what may be moved now, and returns it, how far the rollout is then, and after how long to look again.
func (r *Rollout) step(decision, problem string) (move []operator.Ref, p Progress, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decide(decision)
	r.unwatched = problem
	move, r.fresh = r.fresh, nil
	if p, next = r.look(); p.State == "" {
		r.members, r.order = nil, nil
		return move, p, next
	}
	r.limit = p.Limit
	free := p.Limit - (p.Moved - p.Edited)
	if p.State != Moving || free <= 0 {
		return move, p, next
	}
	failures := p.Failed
	for _, ref := range r.turns() {
		m := r.members[ref]
		if m.refuses != "" && hasFailed(m.refuses, m.said) {
			failures++
		}
		if free == 0 || failures > r.config.MaxFailures && p.Failed <= r.config.MaxFailures {
			break
		}
		if !m.busy {
			m.phase, m.since = moving, r.now()
			move = append(move, ref)
			free--
		}
	}
	p.Moved, r.readySince = len(r.members)-len(r.in(waiting)), time.Time{}
	return move, p, next
}

// decide takes over what a person has decided, as far as it is about this rollout.
func (r *Rollout) decide(decision string) {
	c, ok := parseControl(decision)
	r.unread = ""
	switch {
	case c.Config != r.name:
		c = Control{}
	case !ok:
		c = Control{}
		r.unread = fmt.Sprintf("%q under the key of rollout.control cannot be read: decide again by corollary rollout, or "+
			"remove it", decision)
	case c.At < r.mark.Began:
		c.Promoted = 0
	}
	r.control = c
}

// look is how far the rollout is, and after how long that may change by itself. In the state Moving, upstreams may be
// moved up to the limit.
func (r *Rollout) look() (p Progress, next time.Duration) {
	if r.members == nil {
		return Progress{}, idle
	}
	if next = r.expire(); r.config.Control != nil {
		next = min(next, poll)
	}
	waits, pending, failures := r.turns(), r.in(moving), r.in(failed)
	inSteps := r.inSteps()
	p = Progress{State: Moving, Config: r.name, Steps: len(r.config.Steps), All: len(r.members), Ready: len(r.in(ready)),
		Failed: len(failures), Moved: len(r.members) - len(r.in(waiting)), Began: time.Unix(r.mark.Began, 0)}
	p.Edited = p.Moved - inSteps
	limits := Limits(r.config, p.All)
	p.Step, p.Limit = reached(limits, max(inSteps, 1))+1, r.limit
	promoted := p.All
	if n := r.control.Promoted; n <= p.Steps {
		promoted = append([]int{0}, limits...)[max(n, 0)]
	}
	r.noteReady(len(pending) == 0)
	r.takeBackRevert()
	why := r.whyHalted(waits, failures)
	switch {
	case inSteps < promoted && len(waits) > 0:
		r.reverted, p.Limit = "", max(promoted, r.limit)
	case r.reverted != "" && !r.byPerson:
		p.State, p.Why = Reverted, r.reverted
	case r.control.Reverts:
		p.State, p.Why = Paused, cmp.Or(r.reverted,
			"a person has reverted it, and this process does not have the config before")
	case why != "":
		p.State, p.Why = Halted, why
	case r.control.Paused:
		p.State, p.Why = Paused, "a person has paused it"
	case r.unread != "":
		p.State, p.Why = Paused, r.unread
	case inSteps < r.limit && len(waits) > 0:
	case len(pending) > 0:
		p.Why = "waits until these are Ready: " + names(pending, operator.Ref.String)
	case len(waits) == 0:
		return Progress{}, idle
	default:
		next = r.rest(&p, limits, inSteps, next)
	}
	p.Why = strings.TrimSpace(p.Why + r.unwatched)
	return p, next
}

// takeBackRevert lets a rollout go on that a person has reverted, and does no more.
func (r *Rollout) takeBackRevert() {
	if r.byPerson && !r.control.Reverts {
		r.reverted, r.byPerson = "", false
	}
}

// rest is look at the end of a step: the next one begins after the pause, if there is one.
func (r *Rollout) rest(p *Progress, limits []int, inSteps int, next time.Duration) time.Duration {
	pause := time.Duration(r.config.Pause)
	if rested := r.now().Sub(r.readySince); rested < pause {
		p.State, p.Why = Pausing, "the next step begins "+r.config.Pause.String()+" after all of this one was Ready"
		return min(next, pause-rested)
	}
	k := reached(limits, inSteps+1)
	if p.Step, p.Limit = k+1, max(limits[k], r.limit); limits[k] <= inSteps {
		p.State, p.Why = Waiting, "the last step is done; the rest waits for corollary rollout promote"
	}
	return next
}

// takeReturned returns those that have joined since it was called last.
func (r *Rollout) takeReturned() (refs []operator.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	refs, r.returned = r.returned, nil
	return refs
}

// revertIfHalted gives back what was moved if the rollout has halted and the config, or a person, wants that.
func (r *Rollout) revertIfHalted(p Progress) []operator.Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	halts := p.State == Halted && r.config.OnHalt == staged.HaltRevert
	if !r.before.works || r.reverted != "" || p.State == "" || !halts && !r.control.Reverts {
		return nil
	}
	if halts {
		return r.revert("it had halted, "+p.Why, false)
	}
	return r.revert("a person has reverted it: what was moved has the config before", true)
}

// reached is the first step at the end of which that many are moved; the last one if there is none.
func reached(limits []int, moved int) int {
	k := 0
	for k < len(limits)-1 && limits[k] < moved {
		k++
	}
	return k
}

// noteReady notes whether all that was moved is Ready now.
func (r *Rollout) noteReady(all bool) {
	switch {
	case !all:
		r.readySince = time.Time{}
	case r.readySince.IsZero():
		r.readySince = r.now()
	}
}

// expire has those fail that are not Ready in time, and returns after how long the next one would.
func (r *Rollout) expire() (next time.Duration) {
	next = idle
	for _, m := range r.members {
		if m.phase != moving {
			continue
		}
		left := m.since.Add(r.deadline()).Sub(r.now())
		if left > 0 {
			next = min(next, left)
			continue
		}
		m.phase, m.why = failed, "not Ready "+r.config.ProgressDeadline.String()+" after it was moved"
	}
	return next
}

// refusesNext says why the next upstream is not moved: it would fail before anything of it is written, and that is
// known now. It is empty if it may be moved.
func (r *Rollout) refusesNext(waits []operator.Ref, failures int) string {
	if len(waits) == 0 || failures < r.config.MaxFailures {
		return ""
	}
	m := r.members[waits[0]]
	if m.refuses == "" || !hasFailed(m.refuses, m.said) {
		return ""
	}
	return fmt.Sprintf("%s would be %s, so that it is not moved", waits[0], m.refuses)
}
