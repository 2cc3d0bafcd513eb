package reconcile

import (
	"cmp"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/status"
)

// ForgetObjects drops the counts of a session that has ended. One that has counted nothing leaves those of its successor.
func (r *Reconciler) ForgetObjects() {
	if r.counted.Load() {
		counters.DropStates(r.Name)
	}
}

// statesOf are the states in which results are counted.
func statesOf(results []operator.Result) []countedState {
	states := make([]countedState, len(results))
	for i, result := range results {
		states[i] = countedState{result.Outcome.Downstream, result.Outcome.State}
	}
	return states
}

// count has an upstream counted by what change does, unless it is forgotten. Watches forget upstreams while workers reconcile them.
func (rec *record) count(change func()) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if !rec.forgotten {
		change()
	}
}

// uncount has an upstream counted no more.
func (r *Reconciler) uncount(rec *record) {
	rec.count(func() {
		r.moveStates(rec, nil)
		r.moveVerdict(rec, status.Verdict{})
		rec.forgotten = true
	})
}

// countStates moves an upstream's downstreams from the states in which they were counted to their current ones.
func (r *Reconciler) countStates(rec *record, states []countedState) {
	rec.count(func() { r.moveStates(rec, states) })
}

func (r *Reconciler) moveStates(rec *record, states []countedState) {
	for _, was := range rec.states {
		counters.AddObject(r.Name, r.nameOf(was), string(was.state), -1)
	}
	r.counted.Store(true)
	for _, now := range states {
		counters.AddObject(r.Name, r.nameOf(now), string(now.state), 1)
	}
	rec.states = states
}

// nameOf is how metrics call the object.
func (r *Reconciler) nameOf(counted countedState) string {
	if counted.downstream == beforeIndex {
		return operator.BeforeName
	}
	return r.Pipeline.Downstreams[counted.downstream].Name
}

// countVerdict moves an upstream from the verdict of Ready with which it was counted to the current one; the zero value is
// none. A failed request for the upstream itself, such as writing its status, takes precedence: no status reports it.
func (r *Reconciler) countVerdict(rec *record, v status.Verdict) {
	rec.count(func() { r.moveVerdict(rec, v) })
}

func (r *Reconciler) moveVerdict(rec *record, v status.Verdict) {
	if v.Reason != "" {
		v.Reason = cmp.Or(rec.unusual.get().upstreamFailure, v.Reason)
	}
	var was status.Verdict
	if rec.verdict != (unique.Handle[status.Verdict]{}) {
		was = rec.verdict.Value()
	}
	if was == v {
		return
	}
	r.counted.Store(true)
	if was.Reason != "" {
		counters.AddUpstream(r.Name, was, -1)
	}
	if rec.verdict = unique.Make(v); v.Reason != "" {
		counters.AddUpstream(r.Name, v, 1)
	}
}

// NotReady counts the upstreams that are not Ready, by reason, and all of them.
func (r *Reconciler) NotReady() (reasons map[string]int, all int) {
	reasons = map[string]int{}
	for ref := range r.memory.uids() {
		rec := r.memory.peek(ref)
		if rec == nil {
			continue
		}
		rec.mu.Lock()
		if rec.verdict != (unique.Handle[status.Verdict]{}) {
			v := rec.verdict.Value()
			if all++; v.Ready == metav1.ConditionFalse {
				reasons[v.Reason]++
			}
		}
		rec.mu.Unlock()
	}
	return reasons, all
}

// countBefore moves an upstream's deletion.before from the state in which it was counted to the current one; "" is none.
func (r *Reconciler) countBefore(rec *record, state operator.State) {
	rec.count(func() {
		states := slices.DeleteFunc(slices.Clone(rec.states), func(s countedState) bool { return s.downstream == beforeIndex })
		if state != "" {
			states = append(states, countedState{beforeIndex, state})
		}
		r.moveStates(rec, states)
	})
}
