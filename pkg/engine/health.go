package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// setCondition records the state of a config; a change is logged once and shown in the metric.
func (g *generation) setCondition(r state.Reason, message string) {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	g.condition = state.Condition{Reason: r, Message: message}
	if g.condition.IsWorking() && !g.established {
		if g.established = true; g.operator.added {
			metrics.CountReload(g.operator.name, metrics.Applied)
		}
	}
	g.operator.reportChange()
}

// holds reports whether guard holds changes of a config that works otherwise.
func (g *generation) holds() bool {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	return g.held != ""
}

// setHeld records what guard holds of a config that works otherwise; empty for nothing. It reports whether nothing was
// held before.
func (g *generation) setHeld(message string) (begins bool) {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	begins = g.held == "" && message != ""
	if g.held != message {
		g.held = message
		g.operator.reportChange()
	}
	return begins
}

// setSourceFailed records why the rows of a watch cannot be read; empty if they can.
func (g *generation) setSourceFailed(key informers.Key, message string) {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	if g.sourceFailures[key] == message {
		return
	}
	if g.sourceFailures == nil {
		g.sourceFailures = map[informers.Key]string{}
	}
	if g.sourceFailures[key] = message; message == "" {
		delete(g.sourceFailures, key)
	}
	g.operator.reportChange()
}

// joinSorted are the messages of watches.
func joinSorted(messages map[informers.Key]string) string {
	return strings.Join(slices.Compact(slices.Sorted(maps.Values(messages))), "; ")
}

// setWriteBackFailed records why states of rows cannot be written; empty if they can.
func (g *generation) setWriteBackFailed(message string) {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	if g.writeBackFailed != message {
		g.writeBackFailed = message
		g.operator.reportChange()
	}
}

// setForbidden records a watch that is forbidden, clearForbidden that it works; resetForbidden is for a new session.
func (g *generation) setForbidden(key informers.Key, message string) {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	g.forbidden[key] = message
	g.operator.reportChange()
}

func (g *generation) clearForbidden(key informers.Key) {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	delete(g.forbidden, key)
	g.operator.reportChange()
}

func (g *generation) resetForbidden() {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	g.forbidden = map[informers.Key]string{}
}

// health is the state that counts: a forbidden watch takes precedence.
func (g *generation) health() state.Condition {
	switch {
	case len(g.forbidden) == 0 && g.condition.Reason == state.ReasonSyncing && len(g.sourceFailures) > 0:
		return state.Condition{Reason: state.ReasonSourceFailed, Message: joinSorted(g.sourceFailures)}
	case len(g.forbidden) == 0:
		return g.condition
	}
	return state.Condition{Reason: state.ReasonForbidden, Message: joinSorted(g.forbidden)}
}

// blocked says why a changed config is not active; its reason is empty if nothing blocks it.
func (o *runner) blocked() state.Condition {
	switch {
	case o.refused != "":
		return state.Condition{Reason: state.ReasonReloadFailed, Message: o.refused}
	case o.next == nil && o.current.held != "":
		return state.Condition{Reason: state.ReasonGuardWaiting, Message: o.current.held}
	case o.next == nil && !o.isNew():
		return state.Condition{}
	}
	switch c := cmp.Or(o.next, o.current).health(); {
	case c.Reason == state.ReasonStarting, c.Reason == state.ReasonSyncing, o.next == nil &&
		c.Reason == state.ReasonKindMissing:
		return state.Condition{}
	case c.Reason == state.ReasonGuardWaiting, c.Reason == state.ReasonStandby:
		return c
	default:
		return state.Condition{Reason: state.ReasonReloadFailed, Message: fmt.Sprintf("%s: %s", c.Reason, c.Message)}
	}
}

// isNew reports whether an operator has not worked yet, while all others have: a process that is ready stays so,
// whatever is added to it. The operator's lock is held.
func (o *runner) isNew() bool { return o.engine.wasReady.Load() && !o.current.established }

// sourceFailed is why rows cannot be read, of the config that is active and of one that waits for guard; empty if all
// can.
func (o *runner) sourceFailed() string {
	failures := map[informers.Key]string{}
	maps.Copy(failures, o.current.sourceFailures)
	if o.next != nil && o.next.condition.Reason == state.ReasonGuardWaiting {
		maps.Copy(failures, o.next.sourceFailures)
	}
	return joinSorted(failures)
}

// withSource is a state, and beside it that rows cannot be read.
func (o *runner) withSource(c state.Condition) []state.Condition {
	if failed := o.sourceFailed(); failed != "" && c.Reason != state.ReasonSourceFailed {
		return []state.Condition{c, {Reason: state.ReasonSourceFailed, Message: failed}}
	}
	return []state.Condition{c}
}

// states are the states of the operator as a whole, the one to look at first before the others: if it works, all that
// is wrong nevertheless, none of which hides another.
func (o *runner) states() (list []state.Condition) {
	c := o.current.health()
	if !c.IsWorking() {
		return o.withSource(c)
	}
	add := func(r state.Reason, message string) {
		if message != "" {
			list = append(list, state.Condition{Reason: r, Message: message})
		}
	}
	if waiting := o.blocked(); waiting.Reason != "" {
		list = append(list, waiting)
	}
	switch p := o.current.rollout; {
	case p.Stopped():
		add(state.ReasonRolloutHalted, p.String())
	case p.State != "":
		add(state.ReasonRollingOut, p.String())
	}
	add(state.ReasonSourceFailed, o.sourceFailed())
	if c.Reason != state.ReasonStandby {
		add(state.ReasonWriteBackFailed, o.current.writeBackFailed)
		add(state.ReasonKindMissing, o.current.missing)
	}
	if len(list) == 0 {
		return []state.Condition{c}
	}
	return list
}

// reportChange reports what has changed. The operator's lock is held.
func (o *runner) reportChange() {
	if waits := o.blocked(); waits != o.reportedBlock {
		before := o.reportedBlock
		o.reportedBlock = waits
		o.reportBlock(before)
	}
	now, before := o.states(), o.reportedStates
	if slices.Equal(now, before) {
		return
	}
	o.reportedStates = now
	metrics.SetStates(o.name, now)
	for _, c := range now {
		if !slices.Contains(before, c) {
			o.reportState(c, state.Has(before, c.Reason))
		}
	}
	for _, c := range before {
		if c.Reason == state.ReasonSourceFailed && !state.Has(now, c.Reason) && !now[0].IsWorking() {
			o.log.Info("the rows are read again")
		}
	}
}

// reportState logs a state that has begun, or one that continues with another message.
func (o *runner) reportState(c state.Condition, continues bool) {
	switch c.Reason {
	case state.ReasonGuardWaiting, state.ReasonRollingOut, state.ReasonRolloutHalted: // they have lines of their own
		return
	}
	if continues && c.Reason == state.ReasonSyncing || c == o.reportedBlock {
		return // readiness has the details; a log line for each list or count would be noise
	}
	log := o.log.WithValues("reason", string(c.Reason))
	if c.Reason == state.ReasonStandby && c.Message != "" {
		log = log.WithValues("message", c.Message)
	}
	switch c.Reason {
	case state.ReasonRunning, state.ReasonObserving, state.ReasonStandby, state.ReasonSyncing, state.ReasonStarting:
		log.Info("operator state changed")
	case state.ReasonKindMissing:
		log.Info("waiting for a kind to be served", "kind", c.Message)
	case state.ReasonWriteBackFailed:
		logging.Warn(log, "the state of a row cannot be written, will retry", "message", c.Message)
	case state.ReasonConfigRefused:
		log.Error(errors.New(c.Message), "operator is blocked, will retry")
	default:
		logging.Warn(log, "operator is blocked, will retry", "message", c.Message)
	}
}

// Ready is the readiness check: every operator runs, or waits for a kind that is not installed, which is not the fault
// of this process. Its error lists what is missing by operator, and the configs that could not start. A changed config
// that cannot start does not count here, since the last good one stays active, nor does one that was added after all
// were ready until it has worked once: Reloaded reports these. A rollout that has halted counts only if the check is
// requested by its name (a path that ends in /operators).
func (e *Engine) Ready(req *http.Request) error {
	var problems []error
	asked := req != nil && path.Base(req.URL.Path) == "operators"
	for _, o := range e.all() {
		o.mu.Lock()
		if p := o.current.rollout; asked && p.Stopped() {
			problems = append(problems, fmt.Errorf("operator %s: %s: %s", o.name, state.ReasonRolloutHalted, p))
		}
		if c := o.current.health(); !c.IsWorking() && c.Reason != state.ReasonKindMissing && !o.isNew() {
			problems = append(problems, o.problems(c)...)
		}
		o.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.missing {
		problems = append(problems, fmt.Errorf("%s: %s", state.ReasonConfigRefused, m.withNote()))
	}
	if len(problems) == 0 {
		e.wasReady.Store(true)
	}
	return errors.Join(problems...)
}

// problems are what a check says of a state, and what else holds.
func (o *runner) problems(c state.Condition) (list []error) {
	for _, c := range o.withSource(c) {
		list = append(list, fmt.Errorf("operator %s: %s: %s", o.name, c.Reason, c.Message))
	}
	return list
}

// ObjectsReady is the check that says how many upstreams are not Ready, and why. That is not a fault of the process, so
// it fails only if requested by its name (a path that ends in /objects), like Reloaded.
func (e *Engine) ObjectsReady(req *http.Request) error {
	if req != nil && path.Base(req.URL.Path) != "objects" {
		return nil
	}
	var problems []error
	for _, o := range e.all() {
		reasons, all := o.notReady()
		notReady := 0
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(reasons)) {
			notReady += reasons[why]
			parts = append(parts, fmt.Sprintf("%s %d", why, reasons[why]))
		}
		if notReady > 0 {
			problems = append(problems, fmt.Errorf("operator %s: %d of %d upstreams are not Ready: %s", o.name, notReady,
				all, strings.Join(parts, ", ")))
		}
	}
	return errors.Join(problems...)
}

// notReady counts the upstreams that are not Ready, by reason, and all of them: those of the active config, and those
// that it has yet to reach.
func (o *runner) notReady() (reasons map[string]int, all int) {
	var working []*session
	o.mu.Lock()
	for _, g := range []*generation{o.current, o.trails} {
		if g != nil && g.session != nil {
			working = append(working, g.session)
		}
	}
	o.mu.Unlock()
	reasons = map[string]int{}
	for _, s := range working {
		some, n := s.reconciler.NotReady()
		for why, count := range some {
			reasons[why] += count
		}
		all += n
	}
	return reasons, all
}

// Reloaded is the check that says why a changed config is not active. The process serves nevertheless, so it fails only
// if requested by its name (a path that ends in /reload), not as a part of the readiness of all.
func (e *Engine) Reloaded(req *http.Request) error {
	if req != nil && path.Base(req.URL.Path) != "reload" {
		return nil
	}
	var problems []error
	for _, o := range e.all() {
		o.mu.Lock()
		if c := o.blocked(); c.Reason != "" {
			problems = append(problems, o.problems(c)...)
		}
		o.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, stray := range e.unclaimed {
		problems = append(problems, fmt.Errorf("%s: %s", state.ReasonReloadFailed, stray))
	}
	return errors.Join(problems...)
}

// startingOperators are those whose watches may not be open yet.
func (e *Engine) startingOperators() map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	starting := map[string]bool{}
	for _, o := range e.operators {
		o.mu.Lock()
		switch o.current.condition.Reason {
		case state.ReasonStarting, state.ReasonUnavailable, state.ReasonSyncing:
			starting[o.name] = true
		}
		o.mu.Unlock()
	}
	return starting
}

// sourceRead records the result of an execution of a query. It returns false if that is not what the watch is about.
func (g *generation) sourceRead(key informers.Key, err error) bool {
	var failed *informers.SourceError
	if !key.IsRows() || err != nil && !errors.As(err, &failed) {
		return false
	}
	if err != nil {
		g.setSourceFailed(key, err.Error())
		counters.Failure(g.operator.name, "", string(state.ReasonSourceFailed))
		return true
	}
	g.setSourceFailed(key, "")
	return true
}

// setRollout records how far the rollout of a config is; the zero value for none.
func (g *generation) setRollout(p rollout.Progress) {
	o := g.operator
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current != g { // it trails another one by now
		return
	}
	before := g.rollout
	g.rollout = p
	metrics.SetRollout(o.name, p)
	log := o.log.WithValues("config", p.Config, "progress", p.String())
	switch on := eventsOf(g.file); {
	case p.State == before.State:
	case p.Stopped():
		logging.Warn(log, "the rollout of the changed config has halted: nothing more is moved")
		o.event(on, true, EventRolloutHalted, "Rollout", string(p.State)+" at "+p.String())
	case p.State == "" && before.All > 0:
		o.log.Info("the rollout of the changed config is no longer under way", "config", before.Config, "progress",
			before.String())
		o.event(on, false, EventRolloutEnded, "Rollout", "no longer under way, at "+before.String())
	case before.State == "":
		log.Info("the changed config is rolled out")
		o.event(on, false, EventRolloutBegun, "Rollout", p.String())
	default:
		log.Info("the rollout of the changed config continues", "state", string(p.State))
	}
	o.reportChange()
}
