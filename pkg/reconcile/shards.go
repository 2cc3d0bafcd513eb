package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// enterShardOf is Enter for the shard of the upstream with that uid.
func (r *Reconciler) enterShardOf(ctx context.Context, uid types.UID) (acting context.Context, leave func(), ok bool) {
	if r.Shards == nil {
		return ctx, func() {}, true
	}
	return r.Shards.Enter(ctx, r.Shards.Of(uid))
}

// enterShard is Enter for the shard of the upstream. If no reconcile of it may begin, nothing is left of this one,
// though the shard may have been forgotten before it noted its inputs.
func (r *reconciliation) enterShard(ctx context.Context) (acting context.Context, leave func(), ok bool) {
	acting, leave, ok = r.enterShardOf(ctx, r.Upstream.GetUID())
	if !ok {
		r.forget(r.Ref)
		r.readers.Move(r.Ref, r.Memory.Inputs().Refs, nil)
	}
	return acting, leave, ok
}

// ForgetShard forgets the upstreams of a shard. No reconcile of it runs, but one may have looked up its upstream and be
// about to enter the shard.
func (r *Reconciler) ForgetShard(shard int) {
	r.Cascades.ForgetAll(func(uid types.UID) bool { return r.Shards.Of(uid) == shard })
	for ref, uid := range r.memory.UIDs() {
		if r.Shards.Of(uid) == shard {
			r.forget(ref)
			if r.Rows != nil {
				r.Rows.Forget(ref)
			}
		}
	}
	r.Deselected.ForgetThat(func(uid types.UID) bool { return r.Shards.Of(uid) == shard })
}
