package read

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// FindNamedOwners finds out whether the other upstreams exist that owner annotations name: on the objects that the
// upstream wants, and on those that a witness knows.
func (r *Reader) FindNamedOwners(ctx context.Context) {
	named := map[types.UID]bool{}
	find := func(live *drift.Live, known bool) {
		if !named[live.UID] {
			named[live.UID] = r.FindNamed(ctx, live, known)
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

// FindNamed finds out whether the other upstream exists that the owner annotation of live names, by at most one request
// for each retry. If live is not known to be ours, the annotation may be about another kind of upstream where another
// field manager applies it, and about a row that a query lacks for a while. It returns false if the annotation names
// none.
func (r *Reader) FindNamed(ctx context.Context, live *drift.Live, known bool) bool {
	at, uid, ok := marks.NamesOther(live, r.Upstream.GetUID())
	if !ok || !known && (live.MarkTheirs || r.Pipeline.HasRows()) {
		r.Memory.Notes.Get().DropMarks(func(uid types.UID) bool { return uid == live.UID })
		return false
	}
	mark := r.Memory.Notes.Edit().Mark(live)
	if mark.IsVoid || mark.Retry.Wait(r.Memory.Cause(), r.Began) > 0 {
		return true
	}
	if mark.IsVoid = !r.MayExist(ctx, at, uid); !mark.IsVoid {
		mark.Retry.Fail(memory.SpacingOf(r.Pipeline.Config.Retry), 0, r.Memory.Cause(), r.Began)
	}
	return true
}

// MayExist reports whether there is an upstream with that name and uid, or that cannot be found out. What the cache
// does not show is read: the watch may lag, or see only a part.
func (r *Reader) MayExist(ctx context.Context, at operator.Ref, uid types.UID) bool {
	switch {
	case r.Cache.UpstreamUID(at) == uid:
		return true
	case r.Pipeline.HasRows(), !CanExist(r.Pipeline.Settings, at):
		return false
	}
	up, err := r.API.Latest(ctx, UpstreamTarget(r.Pipeline.Settings, at))
	if err != nil {
		return !errors.Is(err, apply.ErrGone)
	}
	return up.GetUID() == uid
}

// NamesOther reports whether the owner annotation of an object names another upstream, which exists.
func (r *Reader) NamesOther(ctx context.Context, obj *unstructured.Unstructured) bool {
	return slices.ContainsFunc(marks.OwnerMarks(r.Pipeline.Settings, obj), func(mark string) bool {
		at, uid, ok := marks.ParseOwnerMark(mark)
		return ok && uid != string(r.Upstream.GetUID()) && r.MayExist(ctx, at, types.UID(uid))
	})
}
