package engine

import (
	"errors"
	"fmt"
	"net/http"
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
	next := condition{reason: r, message: message}
	if o.condition == next {
		return
	}
	o.condition = next
	setOperatorState(o.name, r)
	log := o.log.WithValues("reason", string(r))
	switch r {
	case reasonRunning, reasonStandby, reasonSyncing, reasonStarting:
		log.Info("operator is " + string(r))
	default:
		log.Error(errors.New(message), "operator cannot run yet and tries again")
	}
}

func (o *operator) state() condition {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.condition
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
