package reconcile

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// markAnswer says whether the other upstream exists that an owner annotation names. A uid that is gone does not come back; that one
// exists, or that this is not known, is found out again after a while.
type markAnswer struct {
	mark  string
	void  bool
	retry retryState
}

// findNamedOwners finds out whether the other upstreams exist that owner annotations name: on the objects that the upstream wants, and
// on those that a witness knows.
func (r *reconciliation) findNamedOwners(ctx context.Context) {
	before := r.record.unusual.get().marks
	r.record.unusual.set(false, func(u *unusual) { u.marks = nil })
	find := func(live *drift.Live, known bool) {
		if r.record.unusual.get().marks[live.UID] != nil {
			return
		}
		if answer := before[live.UID]; answer != nil {
			r.record.keepMark(live.UID, answer)
		}
		r.findNamed(ctx, live, known)
	}
	recorded := r.recorded()
	for k := range r.record.desired.Objects {
		at, _, ok := r.locate(k, r.recordedAs(recorded, k))
		if !ok {
			continue
		}
		if live, _ := r.latest(k, at); live != nil {
			find(live, r.isTrusted(k, live.UID, recorded) || r.downstream(k).OwnsFields())
		}
	}
	for _, w := range r.witnesses() {
		if live := r.Cache.Live(w.downstream, w.at); live != nil && live.UID == w.uid {
			find(live, true)
		}
	}
}

// findNamed finds out whether the other upstream exists that the owner annotation of live names, by at most one request for each retry.
// If live is not known to be ours, the annotation may be about another kind of upstream where another field manager applies it, and about
// a row that a query lacks for a while.
func (r *reconciliation) findNamed(ctx context.Context, live *drift.Live, known bool) {
	at, uid, ok := marks.NamesOther(live, r.upstream.GetUID())
	if !ok || !known && (live.MarkTheirs || r.Pipeline.HasRows()) {
		delete(r.record.unusual.get().marks, live.UID)
		return
	}
	answer := r.record.unusual.get().marks[live.UID]
	if answer == nil || answer.mark != live.OwnerMark {
		answer = &markAnswer{mark: live.OwnerMark}
		r.record.keepMark(live.UID, answer)
	}
	if answer.void || answer.retry.wait(r.record.externalDigest, r.now) > 0 {
		return
	}
	if answer.void = !r.mayExist(ctx, at, uid); !answer.void {
		conf := r.Pipeline.Config.Retry
		answer.retry.fail(time.Duration(conf.MinDelay), time.Duration(conf.MaxDelay), 0, r.record.externalDigest, r.now)
	}
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

// withMark returns live with what is known of the upstream that its owner annotation names.
func (r *reconciliation) withMark(live *drift.Live) *drift.Live {
	if live == nil {
		return nil
	}
	answer := r.record.unusual.get().marks[live.UID]
	if answer == nil || !answer.void || answer.mark != live.OwnerMark {
		return live
	}
	void := *live
	void.MarkVoid = true
	return &void
}

func (r *record) keepMark(object types.UID, answer *markAnswer) {
	u := r.unusual.edit()
	if u.marks == nil {
		u.marks = map[types.UID]*markAnswer{}
	}
	u.marks[object] = answer
}

// applyAt is the apply of an update. Others may not hold our marks: if they own nothing else that the document has, it takes these.
func (r *reconciliation) applyAt(ctx context.Context, o operator.Outcome, version string, doc map[string]any) (*unstructured.Unstructured, error) {
	t := r.target(o.Downstream, o.Target)
	resp, err := r.client.ApplyAt(ctx, t, o.UID, version, doc)
	if version != "" && apply.OwnsOnly(err, marks.Fields(r.Pipeline.Settings)) {
		t.Yields = false
		return r.client.ApplyAt(ctx, t, o.UID, version, doc)
	}
	return resp, err
}
