package engine

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// reason is why an operator is not running, in the word that log, metric and readiness share.
type reason string

// The states of an operator as a whole.
const (
	// reasonStarting: its kinds have not been looked up yet.
	reasonStarting reason = "Starting"
	// reasonKindMissing: a kind is not served; it is picked up once it is.
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
	// reasonStandby: everything is watched, and another process is the leader.
	reasonStandby reason = "Standby"
	// reasonRunning: all is well.
	reasonRunning reason = "Running"
)

var operatorReasons = []reason{reasonStarting, reasonKindMissing, reasonUnavailable, reasonConfigRefused, reasonForbidden,
	reasonWatchFailed, reasonSyncing, reasonStandby, reasonRunning}

// condition is how an operator as a whole is doing.
type condition struct {
	reason  reason
	message string
}

// say records how the operator is doing; what changes is logged once and shown in the metric.
func (o *operator) say(r reason, message string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.current()
	o.condition = condition{reason: r, message: message}
	o.changed(before)
}

// trouble records a watch that is forbidden, cleared that it works, calm that a new session knows of none.
func (o *operator) trouble(key watchKey, message string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.current()
	o.troubles[key] = message
	o.changed(before)
}

func (o *operator) cleared(key watchKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.current()
	delete(o.troubles, key)
	o.changed(before)
}

func (o *operator) calm() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.troubles = map[watchKey]string{}
}

// current is what counts: a forbidden watch before everything else.
func (o *operator) current() condition {
	if len(o.troubles) == 0 {
		return o.condition
	}
	return condition{reason: reasonForbidden, message: strings.Join(slices.Sorted(maps.Values(o.troubles)), "; ")}
}

// changed logs and shows what is different now.
func (o *operator) changed(before condition) {
	now := o.current()
	if now == before {
		return
	}
	setOperatorState(o.name, now.reason)
	if before.reason == reasonSyncing && now.reason == reasonSyncing {
		return // readiness tells the details; a log line for each list would be noise
	}
	log := o.log.WithValues("reason", string(now.reason))
	switch now.reason {
	case reasonRunning, reasonStandby, reasonSyncing, reasonStarting:
		log.Info("operator state changed")
	case reasonKindMissing:
		log.Info("operator waits for a kind", "kind", now.message)
	default:
		log.Error(errors.New(now.message), "operator cannot run yet and tries again")
	}
}

func (o *operator) state() condition {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.current()
}

// Ready is the readiness check: every operator runs, or waits for a kind that is not installed, which is no fault of
// this process. Its error says, by operator, what is missing.
func (e *Engine) Ready(*http.Request) error {
	var problems []error
	for _, o := range e.operators {
		switch c := o.state(); c.reason {
		case reasonRunning, reasonStandby, reasonKindMissing:
		default:
			problems = append(problems, fmt.Errorf("operator %s: %s: %s", o.name, c.reason, c.message))
		}
	}
	return errors.Join(problems...)
}
