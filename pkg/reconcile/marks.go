package reconcile

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// findNamedOwners finds out whether the other upstreams exist that owner annotations name: on the objects that the upstream wants, and
// on those that a witness knows.
func (r *reconciliation) findNamedOwners(ctx context.Context) {
	named := map[types.UID]bool{}
	find := func(live *drift.Live, known bool) {
		if !named[live.UID] {
			named[live.UID] = r.findNamed(ctx, live, known)
		}
	}
	recorded := r.Recorded()
	for k := range r.Memory.Desired().Objects {
		at, _, ok := r.Locate(k, r.RecordedAs(recorded, k))
		if !ok {
			continue
		}
		if live, _ := r.LatestAt(k, at); live != nil {
			find(live, r.IsTrusted(k, live.UID, recorded) || r.DownstreamOf(k).OwnsFields())
		}
	}
	for _, w := range r.Witnesses(r.Trusted()) {
		if live := r.Cache.Live(w.Downstream, w.At); live != nil && live.UID == w.UID {
			find(live, true)
		}
	}
	r.Memory.Notes.Get().DropMarks(func(uid types.UID) bool { return !named[uid] })
}

// findNamed finds out whether the other upstream exists that the owner annotation of live names, by at most one request for each retry.
// If live is not known to be ours, the annotation may be about another kind of upstream where another field manager applies it, and about
// a row that a query lacks for a while. It returns false if the annotation names none.
func (r *reconciliation) findNamed(ctx context.Context, live *drift.Live, known bool) bool {
	at, uid, ok := marks.NamesOther(live, r.Upstream.GetUID())
	if !ok || !known && (live.MarkTheirs || r.Pipeline.HasRows()) {
		r.Memory.Notes.Get().DropMarks(func(uid types.UID) bool { return uid == live.UID })
		return false
	}
	mark := r.Memory.Notes.Edit().Mark(live)
	if mark.IsVoid || mark.Retry.Wait(r.Memory.Cause(), r.Began) > 0 {
		return true
	}
	if mark.IsVoid = !r.mayExist(ctx, at, uid); !mark.IsVoid {
		mark.Retry.Fail(r.spacing(), 0, r.Memory.Cause(), r.Began)
	}
	return true
}

// mayExist reports whether there is an upstream with that name and uid, or that cannot be found out. What the cache does not show is
// read: the watch may lag, or see only a part.
func (r *reconciliation) mayExist(ctx context.Context, at operator.Ref, uid types.UID) bool {
	switch {
	case r.Cache.UpstreamUID(at) == uid:
		return true
	case r.Pipeline.HasRows(), !canExist(r.Pipeline.Settings, at):
		return false
	}
	up, err := r.client.Latest(ctx, r.UpstreamTarget(at))
	if err != nil {
		return !errors.Is(err, apply.ErrGone)
	}
	return up.GetUID() == uid
}
