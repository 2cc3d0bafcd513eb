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

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// reason is the state of an operator, in the word that log, metric and readiness share.
type reason string

// The states of an operator as a whole.
const (
	// reasonStarting: its kinds have not been looked up yet.
	reasonStarting reason = "Starting"
	// reasonKindMissing: a kind is not served, or the API server cannot be asked about it. What needs the kind waits until it
	// is served: everything, if it is the upstream's.
	reasonKindMissing reason = "KindMissing"
	// reasonUnavailable: the API server did not answer when asked for its kinds.
	reasonUnavailable reason = "Unavailable"
	// reasonConfigRefused: the config does not fit the schemas that the API server has.
	reasonConfigRefused reason = "ConfigRefused"
	// reasonForbidden: a permission to watch is missing.
	reasonForbidden reason = "Forbidden"
	// reasonWatchFailed: a watch could not be started, or its kind has gone.
	reasonWatchFailed reason = "WatchFailed"
	// reasonSyncing: the first lists are under way.
	reasonSyncing reason = "Syncing"
	// reasonStandby: everything is watched, and another process is the leader; or with shards, guard waits for the counts of others,
	// which the message says.
	reasonStandby reason = "Standby"
	// reasonRunning: the workers run.
	reasonRunning reason = "Running"
	// reasonObserving: the workers run, and write nothing, since mode is Observe.
	reasonObserving reason = "Observing"
	// reasonGuardWaiting: a change is larger than guard allows and waits for confirmation.
	reasonGuardWaiting reason = "GuardWaiting"
	// reasonSourceFailed: the rows cannot be read. Those that were read last stay, and nothing is deleted.
	reasonSourceFailed reason = "SourceFailed"
	// reasonWriteBackFailed: the states of rows cannot be written to the database. All else goes on.
	reasonWriteBackFailed reason = "WriteBackFailed"
	// reasonReloadFailed: the changed config cannot start; the last good one stays active. /readyz/reload reports it for a new
	// config, too.
	reasonReloadFailed reason = "ReloadFailed"
)

var operatorReasons = []reason{reasonStarting, reasonKindMissing, reasonUnavailable, reasonConfigRefused, reasonForbidden,
	reasonWatchFailed, reasonSyncing, reasonStandby, reasonRunning, reasonObserving, reasonGuardWaiting, reasonSourceFailed,
	reasonWriteBackFailed, reasonReloadFailed}

// workingReason is the reason of an operator whose workers run.
func workingReason(p *compile.Pipeline) reason {
	if p.Observing() {
		return reasonObserving
	}
	return reasonRunning
}

// condition is the state of an operator, or of one of its configs.
type condition struct {
	reason  reason
	message string
}

// setCondition records the state of a config; a change is logged once and shown in the metric.
func (g *generation) setCondition(r reason, message string) {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	g.condition = condition{reason: r, message: message}
	if g.condition.isWorking() && !g.established {
		if g.established = true; g.operator.added {
			countReload(g.operator.name, reloadApplied)
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

// setHeld records what guard holds of a config that works otherwise; empty for nothing. It reports whether nothing was held before.
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
func (g *generation) health() condition {
	switch {
	case len(g.forbidden) == 0 && g.condition.reason == reasonSyncing && len(g.sourceFailures) > 0:
		return condition{reasonSourceFailed, joinSorted(g.sourceFailures)}
	case len(g.forbidden) == 0:
		return g.condition
	}
	return condition{reason: reasonForbidden, message: joinSorted(g.forbidden)}
}

// isWorking reports whether a config works, or will without anybody's help.
func (c condition) isWorking() bool {
	return c.reason == reasonRunning || c.reason == reasonObserving || c.reason == reasonStandby
}

// blocked says why a changed config is not active; its reason is empty if nothing blocks it.
func (o *runner) blocked() condition {
	switch {
	case o.refused != "":
		return condition{reasonReloadFailed, o.refused}
	case o.next == nil && o.current.held != "":
		return condition{reasonGuardWaiting, o.current.held}
	case o.next == nil && !o.isNew():
		return condition{}
	}
	switch c := cmp.Or(o.next, o.current).health(); {
	case c.reason == reasonStarting, c.reason == reasonSyncing, o.next == nil && c.reason == reasonKindMissing:
		return condition{}
	case c.reason == reasonGuardWaiting, c.reason == reasonStandby:
		return c
	default:
		return condition{reasonReloadFailed, fmt.Sprintf("%s: %s", c.reason, c.message)}
	}
}

// isNew reports whether an operator has not worked yet, while all others have: a process that is ready stays so, whatever is
// added to it. The operator's lock is held.
func (o *runner) isNew() bool { return o.engine.wasReady.Load() && !o.current.established }

// sourceFailed is why rows cannot be read, of the config that is active and of one that waits for guard; empty if all can.
func (o *runner) sourceFailed() string {
	failures := map[informers.Key]string{}
	maps.Copy(failures, o.current.sourceFailures)
	if o.next != nil && o.next.condition.reason == reasonGuardWaiting {
		maps.Copy(failures, o.next.sourceFailures)
	}
	return joinSorted(failures)
}

// withSource is a state, and beside it that rows cannot be read.
func (o *runner) withSource(c condition) []condition {
	if failed := o.sourceFailed(); failed != "" && c.reason != reasonSourceFailed {
		return []condition{c, {reasonSourceFailed, failed}}
	}
	return []condition{c}
}

// states are the states of the operator as a whole, the one to look at first before the others: if it works, all that is wrong
// nevertheless, none of which hides another.
func (o *runner) states() (list []condition) {
	c := o.current.health()
	if !c.isWorking() {
		return o.withSource(c)
	}
	add := func(r reason, message string) {
		if message != "" {
			list = append(list, condition{r, message})
		}
	}
	if waiting := o.blocked(); waiting.reason != "" {
		list = append(list, waiting)
	}
	add(reasonSourceFailed, o.sourceFailed())
	if c.reason != reasonStandby {
		add(reasonWriteBackFailed, o.current.writeBackFailed)
		add(reasonKindMissing, o.current.missing)
	}
	if len(list) == 0 {
		return []condition{c}
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
	setOperatorStates(o.name, now)
	for _, c := range now {
		if !slices.Contains(before, c) {
			o.reportState(c, hasReason(before, c.reason))
		}
	}
	for _, c := range before {
		if c.reason == reasonSourceFailed && !hasReason(now, c.reason) && !now[0].isWorking() {
			o.log.Info("the rows are read again")
		}
	}
}

func hasReason(list []condition, r reason) bool {
	return slices.ContainsFunc(list, func(c condition) bool { return c.reason == r })
}

// reportState logs a state that has begun, or one that continues with another message.
func (o *runner) reportState(c condition, continues bool) {
	if continues && c.reason == reasonSyncing || c.reason == reasonGuardWaiting || c == o.reportedBlock {
		return // readiness has the details; a log line for each list or count would be noise
	}
	log := o.log.WithValues("reason", string(c.reason))
	if c.reason == reasonStandby && c.message != "" {
		log = log.WithValues("message", c.message)
	}
	switch c.reason {
	case reasonRunning, reasonObserving, reasonStandby, reasonSyncing, reasonStarting:
		log.Info("operator state changed")
	case reasonKindMissing:
		log.Info("waiting for a kind to be served", "kind", c.message)
	case reasonWriteBackFailed:
		logging.Warn(log, "the state of a row cannot be written, will retry", "message", c.message)
	case reasonConfigRefused:
		log.Error(errors.New(c.message), "operator is blocked, will retry")
	default:
		logging.Warn(log, "operator is blocked, will retry", "message", c.message)
	}
}

// Ready is the readiness check: every operator runs, or waits for a kind that is not installed, which is no fault of this
// process. Its error lists what is missing by operator, and the configs that could not start. A changed config that cannot
// start does not count here, since the last good one stays active, nor does one that was added after all were ready until it
// has worked once: Reloaded reports these.
func (e *Engine) Ready(*http.Request) error {
	var problems []error
	for _, o := range e.all() {
		o.mu.Lock()
		if c := o.current.health(); !c.isWorking() && c.reason != reasonKindMissing && !o.isNew() {
			problems = append(problems, o.problems(c)...)
		}
		o.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, err := range e.missing {
		problems = append(problems, fmt.Errorf("%s: %w", reasonConfigRefused, err))
	}
	if len(problems) == 0 {
		e.wasReady.Store(true)
	}
	return errors.Join(problems...)
}

// problems are what a check says of a state, and what else holds.
func (o *runner) problems(c condition) (list []error) {
	for _, c := range o.withSource(c) {
		list = append(list, fmt.Errorf("operator %s: %s: %s", o.name, c.reason, c.message))
	}
	return list
}

// ObjectsReady is the check that says how many upstreams are not Ready, and why. That is no fault of the process, so it fails only
// if requested by its name (a path that ends in /objects), like Reloaded.
func (e *Engine) ObjectsReady(req *http.Request) error {
	if req != nil && path.Base(req.URL.Path) != "objects" {
		return nil
	}
	var problems []error
	for _, o := range e.all() {
		working := o.activeReconciler(nil)
		if working == nil {
			continue
		}
		reasons, all := working.NotReady()
		notReady := 0
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(reasons)) {
			notReady += reasons[why]
			parts = append(parts, fmt.Sprintf("%s %d", why, reasons[why]))
		}
		if notReady > 0 {
			problems = append(problems, fmt.Errorf("operator %s: %d of %d upstreams are not Ready: %s", o.name, notReady, all, strings.Join(parts, ", ")))
		}
	}
	return errors.Join(problems...)
}

// Reloaded is the check that says why a changed config is not active. The process serves nevertheless, so it fails only if
// requested by its name (a path that ends in /reload), not as a part of the readiness of all.
func (e *Engine) Reloaded(req *http.Request) error {
	if req != nil && path.Base(req.URL.Path) != "reload" {
		return nil
	}
	var problems []error
	for _, o := range e.all() {
		o.mu.Lock()
		if c := o.blocked(); c.reason != "" {
			problems = append(problems, o.problems(c)...)
		}
		o.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, stray := range e.unclaimed {
		problems = append(problems, fmt.Errorf("%s: %s", reasonReloadFailed, stray))
	}
	return errors.Join(problems...)
}
