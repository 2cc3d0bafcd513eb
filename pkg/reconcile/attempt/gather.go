package attempt

import (
	"context"
	"slices"
	"time"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/read"
)

// Decide decides by what is gathered, and once more if the upstream begins to wait for an object of others: what
// happened to it since it was gathered has woken nobody.
func (r *Attempt) Decide(gather func() operator.Input) (operator.Input, operator.Decision) {
	in := gather()
	d := decide.Decide(r.Pipeline.Settings, in)
	if r.AwaitOthers(in, d) {
		in = gather()
		d = decide.Decide(r.Pipeline.Settings, in)
	}
	return in, d
}

// AwaitOthers records which objects of others the upstream waits for. It reports whether one is new.
func (r *Attempt) AwaitOthers(in operator.Input, d operator.Decision) bool {
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
	return r.Awaited.Set(r.Ref, objects)
}

// FirstDecision is the decision before the API server is asked for anything but the objects that the status records.
func (r *Attempt) FirstDecision(ctx context.Context) (operator.Input, operator.Decision) {
	r.FindNamedOwners(ctx)
	r.FindUnseen(ctx)
	return r.Decide(func() operator.Input { return r.GatherCached(ctx) })
}

// GatherCached gathers what the decision depends on. It sends no request, but for upstreams that the watch may hide:
// see FindOthers.
func (r *Attempt) GatherCached(ctx context.Context) operator.Input {
	r.UpdateDesired(ctx) // our own write to the upstream may have brought someone else's change with it
	r.TrustedUntil = time.Time{}
	r.TrustTerminating()
	r.Memory.ConfirmCreated(func(m memory.Place) bool { return r.Cache.Live(m.Downstream, m.At) != nil })
	in := operator.Input{Upstream: r.Upstream, Desired: r.Memory.Desired(),
		Health: r.Pipeline.Health(r.Upstream, r.Memory.Desired(), r.InputsRead), Selected: r.Selected,
		HasFinalizer: r.HasFinalizer(), HasPreviousFinalizer: marks.HasPreviousFinalizer(r.Pipeline.Settings, r.Upstream),
		FinalizerSpaced: r.FinalizerSpaced(), Now: r.Began, Unread: r.Unread}
	recorded := r.Recorded()
	if !r.Selected {
		in.SelectionErr = r.Pipeline.Match(r.Upstream).Err
		in.Leftovers = r.WithUnseen(r.FindLeftovers(nil, r.OwnedByDownstream()))
		in.Others = r.FindOthers(ctx, in.Leftovers)
		return in
	}
	in.Facts = make([]operator.Facts, len(in.Desired.Objects))
	for k := range in.Desired.Objects {
		in.Facts[k] = r.Facts(k, recorded)
	}
	in.Leftovers = r.WithUnseen(r.FindLeftovers(r.Memory.Desired(), r.OwnedByDownstream()))
	in.Leftovers = slices.DeleteFunc(in.Leftovers, func(own operator.Owned) bool {
		return slices.ContainsFunc(in.Facts, func(f operator.Facts) bool {
			return f.Live != nil && f.Live.UID == own.Live.UID
		})
	})
	in.Others, in.Unrecorded = r.FindOthers(ctx, in.Leftovers), r.Unrecorded()
	return in
}

// GatherAll gathers what the cache shows and what it does not show, in each round: the status must go on recording what
// the cache has just lost until it is gone.
func (r *Attempt) GatherAll(ctx context.Context) operator.Input {
	r.FindNamedOwners(ctx)
	r.CheckTerminating(ctx)
	in := r.GatherCached(ctx)
	for r.FindUnseen(ctx) { // the cache may have lost more meanwhile
		in = r.GatherCached(ctx)
	}
	in.Unread = r.Unread
	if slices.ContainsFunc(in.Leftovers, func(own operator.Owned) bool {
		return read.IsHolder(r.Pipeline.Settings, own)
	}) {
		var err error
		if in.Forgotten, err = r.FindContents(ctx, in.Leftovers); err != nil {
			r.ReportFailure("reading an object of a downstream that the config no longer has", err)
			r.HasFailed = true
		}
	}
	r.keepTerminating(ctx, in)
	return in
}
