package engine

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/state"
)

// Reasons of events about an operator as a whole.
const (
	// EventReloaded: a changed config is active.
	EventReloaded = "Reloaded"
	// EventReloadFailed: a changed config cannot start, and the last good one stays active; or a new one cannot.
	EventReloadFailed = "ReloadFailed"
	// EventSharedConventions: another process writes with the same field manager and labels.
	EventSharedConventions = "SharedConventions"
	// EventGuardWaiting: a change is larger than guard allows and waits for confirmation.
	EventGuardWaiting = "GuardWaiting"
	// EventRolloutBegun: a changed config reaches the upstreams step by step. EventRolloutEnded: it has reached all, or
	// another config takes its place. EventRolloutHalted: too many upstreams have failed.
	EventRolloutBegun  = "RolloutBegun"
	EventRolloutEnded  = "RolloutEnded"
	EventRolloutHalted = "RolloutHalted"
)

// reportBlock reports what blocks a changed config, when that changes. The operator's lock is held.
func (o *runner) reportBlock(before state.Condition) {
	now := o.reportedBlock
	metrics.SetReloadFailed(o.name, now.Reason == state.ReasonReloadFailed)
	switch now.Reason {
	case state.ReasonReloadFailed:
		metrics.CountReload(o.name, metrics.Failed)
		what := "the config cannot start"
		if o.current.established {
			what = "the changed config cannot start; the last good one stays active"
		}
		if o.current.established || o.refused != "" { // else its own state is logged
			o.log.Error(errors.New(now.Message), what, "reason", string(now.Reason))
		}
		o.event(eventsOf(o.current.file), true, EventReloadFailed, "Reload", what+": "+now.Message)
	case state.ReasonStandby:
		o.log.Info("the changed config waits; the last good one stays active", "message", now.Message)
	case "":
		if before.Reason == state.ReasonReloadFailed && o.current.established {
			o.log.Info("the config is no longer blocked")
		}
	}
}

// reportUnclaimed reports the errors of files that no running operator reports, when they change. The engine's lock is
// held.
func (e *Engine) reportUnclaimed(strays []string) {
	for _, stray := range strays {
		if !slices.Contains(e.unclaimed, stray) {
			metrics.CountReload("", metrics.Failed)
			what := "a config cannot be loaded; the other operators start"
			if e.running != nil {
				what = "a config cannot be loaded; running operators continue"
			}
			e.options.Log.Error(errors.New(stray), what, "reason", string(state.ReasonReloadFailed))
		}
	}
	if e.unclaimed = strays; len(strays) > 0 {
		metrics.SetReloadFailed("", true)
	} else {
		metrics.ForgetReloadFailed()
	}
}

// eventsOf is the event policy of a config: none with mode Observe, since an event is an object.
func eventsOf(f *load.File) config.EventPolicy {
	if f.Mode == config.ModeObserve {
		return config.EventsNone
	}
	return f.Events
}

// event sends an event about the operator as a whole. It regards the Operator by its name: not an object in the
// cluster, but events can be selected by it. policy is the config's.
func (o *runner) event(policy config.EventPolicy, warning bool, reason, action, note string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	if policy == config.EventsNone || policy == config.EventsWarnings && !warning {
		return
	}
	regarding := &corev1.ObjectReference{APIVersion: config.APIVersion, Kind: config.Kind,
		Namespace: o.engine.options.Namespace, Name: o.name}
	o.engine.recorderOf(o.current).Eventf(regarding, nil, kind, reason, action, "%s", note)
}
