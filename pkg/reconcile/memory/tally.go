package memory

import (
	"cmp"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Tally counts the upstreams and objects of an operator in its metrics.
type Tally struct {
	Operator string
	Settings *operator.Settings
}

// State is a state in which an object was counted, of a downstream or, with BeforeIndex, of deletion.before.
type State struct {
	Downstream int
	State      operator.State
}

// count has an upstream counted by what change does, unless it is forgotten. Watches forget upstreams while workers
// reconcile them.
func (u *Upstream) count(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.isForgotten {
		change()
	}
}

// Forget has an upstream counted no more.
func (t Tally) Forget(u *Upstream) {
	u.count(func() {
		t.moveStates(u, nil)
		t.moveVerdict(u, status.Verdict{})
		u.isForgotten = true
	})
}

// States moves an upstream's objects from the states in which they were counted to their current ones.
func (t Tally) States(u *Upstream, states []State) {
	u.count(func() { t.moveStates(u, states) })
}

// Before moves an upstream's deletion.before from the state in which it was counted to the current one.
func (t Tally) Before(u *Upstream, state operator.State) {
	u.count(func() {
		states := slices.DeleteFunc(slices.Clone(u.states), func(s State) bool {
			return s.Downstream == operator.BeforeIndex
		})
		t.moveStates(u, append(states, State{operator.BeforeIndex, state}))
	})
}

func (t Tally) moveStates(u *Upstream, states []State) {
	for _, was := range u.states {
		counters.AddObject(t.Operator, t.nameOf(was), string(was.State), -1)
	}
	for _, now := range states {
		counters.AddObject(t.Operator, t.nameOf(now), string(now.State), 1)
	}
	u.states = states
}

// nameOf is how metrics call the object.
func (t Tally) nameOf(counted State) string {
	if counted.Downstream == operator.BeforeIndex {
		return operator.BeforeName
	}
	return t.Settings.Downstreams[counted.Downstream].Name
}

// Verdict moves an upstream from the verdict of Ready with which it was counted to the current one; the zero value is
// none. A failed request for the upstream itself, such as writing its status, takes precedence: no status reports it.
func (t Tally) Verdict(u *Upstream, v status.Verdict) {
	u.count(func() { t.moveVerdict(u, v) })
}

func (t Tally) moveVerdict(u *Upstream, v status.Verdict) {
	if v.Reason != "" {
		v.Reason = cmp.Or(u.Notes.Get().UpstreamFailure, v.Reason)
	}
	was := valueOf(u.verdict)
	if was == v {
		return
	}
	if was.Reason != "" {
		counters.AddUpstream(t.Operator, was, -1)
	}
	if u.verdict = unique.Make(v); v.Reason != "" {
		counters.AddUpstream(t.Operator, v, 1)
	}
}

// valueOf is the verdict of a handle; the zero value for the zero handle.
func valueOf(h unique.Handle[status.Verdict]) (v status.Verdict) {
	if h != (unique.Handle[status.Verdict]{}) {
		v = h.Value()
	}
	return v
}

// NotReady counts the upstreams that are not Ready, by reason, and all of them.
func (m *Upstreams) NotReady() (reasons map[string]int, all int) {
	reasons = map[string]int{}
	for ref := range m.UIDs() {
		u := m.Peek(ref)
		if u == nil {
			continue
		}
		u.mu.Lock()
		if u.verdict != (unique.Handle[status.Verdict]{}) {
			v := u.verdict.Value()
			if all++; v.Ready == metav1.ConditionFalse {
				reasons[v.Reason]++
			}
		}
		u.mu.Unlock()
	}
	return reasons, all
}

// Renders reports whether all downstreams of the upstream were rendered when they were counted; isKnown is false if
// they were not.
func (u *Upstream) Renders() (all, isKnown bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !slices.ContainsFunc(u.states, func(s State) bool {
		return s.State == operator.StateRenderFailed
	}), len(u.states) > 0
}

// NoteInSync records the verdict of Ready of an upstream for which there is nothing to do until its next event.
func (u *Upstream) NoteInSync(v status.Verdict) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inSync = unique.Make(v)
}

// ClearInSync makes IsInSync false until the next note.
func (u *Upstream) ClearInSync() {
	if u != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.inSync = unique.Handle[status.Verdict]{}
	}
}

// IsInSync reports whether there is nothing to do for an upstream, which may be nil. There may be while a response
// counts that is newer than the cache.
func (u *Upstream) IsInSync() bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.inSync != (unique.Handle[status.Verdict]{}) && !u.hasResponses()
}

// InSync counts an upstream that is in sync, with all its objects.
func (t Tally) InSync(u *Upstream) {
	states := make([]State, len(u.desired.Objects))
	for k, o := range u.desired.Objects {
		if states[k] = (State{o.Downstream, operator.StateInSync}); !o.Wanted {
			states[k].State = operator.StateUnwanted
		}
	}
	u.count(func() {
		t.moveStates(u, states)
		t.moveVerdict(u, valueOf(u.inSync))
	})
}
