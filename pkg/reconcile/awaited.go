package reconcile

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/reconcile/departures"
)

// others is what is known of objects of others.
type others struct {
	awaited departures.Awaited
	shared  departures.Shared
}

// Awaiting lists the upstreams that wait for an object of others, first the one that has waited longest.
func (o *others) Awaiting(live *drift.Live) []operator.Ref {
	return o.awaited.Upstreams(operator.Ref{Namespace: live.Namespace, Name: live.Name})
}

// decide decides by what is gathered, and once more if the upstream begins to wait for an object of others: what happened to it since it
// was gathered has woken nobody.
func (r *reconciliation) decide(gather func() operator.Input) (operator.Input, operator.Decision) {
	in := gather()
	d := decide.Decide(r.Pipeline.Settings, in)
	if r.awaitOthers(in, d) {
		in = gather()
		d = decide.Decide(r.Pipeline.Settings, in)
	}
	return in, d
}

// awaitOthers records which objects of others the upstream waits for. It reports whether one is new.
func (r *reconciliation) awaitOthers(in operator.Input, d operator.Decision) bool {
	var objects []operator.Ref
	note := func(o operator.Outcome) {
		if !slices.Contains(objects, o.Target) {
			objects = append(objects, o.Target)
		}
	}
	for k, o := range d.Outcomes {
		w := &r.Memory.Desired().Objects[k]
		sets := w.Wanted && w.Err == nil && r.DownstreamOf(k).OwnsFields()
		if sets || o.State == operator.StateConflict || o.State == operator.StateWaiting && o.Theirs {
			note(o)
		}
	}
	if d.Before != nil && d.Before.State == operator.StateConflict {
		note(*d.Before)
	}
	for _, other := range in.Others { // they stay in what is to be deleted
		objects = append(objects, other.At)
	}
	return r.awaited.Set(r.Ref, objects)
}
