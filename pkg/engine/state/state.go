// Package state has the states of an operator as a whole: the words that the log, the metric and readiness share.
package state

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// Reason is the state of an operator, in the word that log, metric and readiness share.
type Reason string

// The states of an operator as a whole.
const (
	// ReasonStarting: its kinds have not been looked up yet.
	ReasonStarting Reason = "Starting"
	// ReasonKindMissing: a kind is not served, or the API server cannot be asked about it. What needs the kind waits until
	// it is served: everything, if it is the upstream's. Or its conversion is not published: everything waits.
	ReasonKindMissing Reason = "KindMissing"
	// ReasonUnavailable: the API server did not answer when asked for its kinds.
	ReasonUnavailable Reason = "Unavailable"
	// ReasonConfigRefused: the config does not fit the schemas that the API server has.
	ReasonConfigRefused Reason = "ConfigRefused"
	// ReasonForbidden: a permission to watch is missing.
	ReasonForbidden Reason = "Forbidden"
	// ReasonWatchFailed: a watch could not be started, or its kind has gone.
	ReasonWatchFailed Reason = "WatchFailed"
	// ReasonSyncing: the first lists are under way.
	ReasonSyncing Reason = "Syncing"
	// ReasonStandby: everything is watched, and another process is the leader; or with shards, guard waits for the counts
	// of others, which the message says.
	ReasonStandby Reason = "Standby"
	// ReasonRunning: the workers run.
	ReasonRunning Reason = "Running"
	// ReasonObserving: the workers run, and write nothing, since mode is Observe.
	ReasonObserving Reason = "Observing"
	// ReasonGuardWaiting: a change is larger than guard allows and waits for confirmation.
	ReasonGuardWaiting Reason = "GuardWaiting"
	// ReasonRollingOut: the changed config reaches the upstreams step by step.
	ReasonRollingOut Reason = "RollingOut"
	// ReasonRolloutHalted: too many of them have failed. Nothing more is moved.
	ReasonRolloutHalted Reason = "RolloutHalted"
	// ReasonSourceFailed: the rows cannot be read. Those that were read last stay, and nothing is deleted.
	ReasonSourceFailed Reason = "SourceFailed"
	// ReasonWriteBackFailed: the states of rows cannot be written to the database. All else goes on.
	ReasonWriteBackFailed Reason = "WriteBackFailed"
	// ReasonReloadFailed: the changed config cannot start; the last good one stays active. /readyz/reload reports it for a
	// new config, too.
	ReasonReloadFailed Reason = "ReloadFailed"
)

// Reasons are all of them.
var Reasons = []Reason{ReasonStarting, ReasonKindMissing, ReasonUnavailable, ReasonConfigRefused, ReasonForbidden,
	ReasonWatchFailed, ReasonSyncing, ReasonStandby, ReasonRunning, ReasonObserving,
	ReasonGuardWaiting, ReasonRollingOut, ReasonRolloutHalted, ReasonSourceFailed,
	ReasonWriteBackFailed, ReasonReloadFailed}

// Working is the reason of an operator whose workers run.
func Working(p *compile.Pipeline) Reason {
	if p.Observing() {
		return ReasonObserving
	}
	return ReasonRunning
}

// Condition is the state of an operator, or of one of its configs.
type Condition struct {
	Reason  Reason
	Message string
}

// IsWorking reports whether a config works, or will without anybody's help.
func (c Condition) IsWorking() bool {
	return c.Reason == ReasonRunning || c.Reason == ReasonObserving || c.Reason == ReasonStandby
}

// Has reports whether a condition of the list has a reason.
func Has(list []Condition, r Reason) bool {
	return slices.ContainsFunc(list, func(c Condition) bool { return c.Reason == r })
}
