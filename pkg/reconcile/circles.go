package reconcile

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// circles finds superseded objects that wait for each other: each stays until its successor exists, whose name the next one has, as when
// upstreams swap the names of their objects. In each circle, one gives way: that of the upstream by which it was closed, so that nobody
// can take an object from an upstream that waits.
type circles struct {
	mu        sync.Mutex
	upstreams map[pipeline.Ref]waitingUpstream
	owners    map[types.UID]pipeline.Ref // by superseded object
}

// waitingUpstream is what an upstream decided on itself.
type waitingUpstream struct {
	// digest is that of the upstream: another one may decide otherwise.
	digest drift.Sum
	// blockers are by superseded object.
	blockers map[types.UID][]types.UID
	givesWay map[types.UID]bool
}

// maxCircle bounds how many objects are visited to find a circle.
const maxCircle = 1000

// set replaces what is known of an upstream. It reports whether one of its objects gives way since now. isCurrent reports whether the
// decision of another upstream is about it as it is now.
func (c *circles) set(ref pipeline.Ref, w waitingUpstream, isCurrent func(pipeline.Ref, drift.Sum) bool) (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := c.upstreams[ref]
	if !known && len(w.blockers) == 0 {
		return false
	}
	for object := range before.blockers {
		delete(c.owners, object)
	}
	if len(w.blockers) == 0 {
		delete(c.upstreams, ref)
		return false
	}
	if c.upstreams == nil {
		c.upstreams, c.owners = map[pipeline.Ref]waitingUpstream{}, map[types.UID]pipeline.Ref{}
	}
	w.givesWay = map[types.UID]bool{}
	c.upstreams[ref] = w
	for object := range w.blockers {
		c.owners[object] = ref
	}
	for object := range w.blockers {
		others := c.circle(object)
		if others == nil || slices.ContainsFunc(others, func(other types.UID) bool {
			at := c.owners[other]
			return c.upstreams[at].givesWay[other] || at != ref && !isCurrent(at, c.upstreams[at].digest)
		}) {
			continue
		}
		w.givesWay[object] = true
		closed = closed || !before.givesWay[object]
	}
	return closed
}

// circle returns the other objects of a circle with an object; nil for none.
func (c *circles) circle(start types.UID) []types.UID {
	cameFrom, queue := map[types.UID]types.UID{}, []types.UID{start}
	for len(queue) > 0 && len(cameFrom) < maxCircle {
		object := queue[0]
		queue = queue[1:]
		for _, next := range c.upstreams[c.owners[object]].blockers[object] {
			if _, seen := cameFrom[next]; seen {
				continue
			}
			cameFrom[next] = object
			if next != start {
				queue = append(queue, next)
				continue
			}
			others := []types.UID{}
			for ; object != start; object = cameFrom[object] {
				others = append(others, object)
			}
			return others
		}
	}
	return nil
}

// givesWay reports whether a superseded object of an upstream is to be removed before its successor exists.
func (c *circles) givesWay(ref pipeline.Ref, object types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.upstreams[ref].givesWay[object]
}

// noteCircles records which objects wait for others according to a decision. It reports whether it closes a circle, so that the
// upstream is to be decided on again.
func (r *reconciliation) noteCircles(ctx context.Context, d pipeline.Decision) bool {
	w := waitingUpstream{}
	for _, o := range d.Leftovers {
		if len(o.Blockers) == 0 || r.Pipeline.Observing() || !r.acceptsSuccessors(ctx, d, o.Blockers) {
			continue
		}
		if w.blockers == nil {
			w.digest, w.blockers = r.digest(nil), map[types.UID][]types.UID{}
		}
		w.blockers[o.UID] = o.Blockers
	}
	return r.circles.set(r.ref, w, func(at pipeline.Ref, digest drift.Sum) bool {
		up, err := r.Cache.Upstream(at)
		return err == nil && up != nil && (&reconciliation{Reconciler: r.Reconciler, upstream: up}).digest(nil) == digest
	})
}

// acceptsSuccessors reports whether the API server would accept the objects whose names the blockers have, by one dry run for each desired
// state. An upstream whose objects are refused would give nobody anything for what is removed.
func (r *reconciliation) acceptsSuccessors(ctx context.Context, d pipeline.Decision, blockers []types.UID) bool {
	for k, o := range d.Outcomes {
		if o.State != pipeline.StateConflict || o.Live == nil || !slices.Contains(blockers, o.Live.UID) {
			continue
		}
		t, hash := &r.record.targets[k], r.record.desired.Objects[k].Hash
		switch {
		case t.accepted == hash:
			continue
		case t.refused == hash && t.retry.wait(r.record.externalDigest, r.now) > 0:
			return false
		}
		if err := r.accepts(ctx, o); err != nil {
			t.refused = hash
			r.Log.Info("an object whose name another upstream has would be refused, so that no object is removed for it", "upstream", r.ref.String(),
				"target", o.Target.String(), "reason", classify(r.downstream(k), err).Reason, "message", classify(r.downstream(k), err).Message)
			return false
		}
		t.accepted = hash
	}
	return true
}

// accepts asks by a dry run whether the API server would accept an object in the place of one of another upstream.
func (r *reconciliation) accepts(ctx context.Context, o pipeline.Outcome) error {
	t, fields := r.target(o.Downstream, o.Target), r.Pipeline.Downstreams[o.Downstream].OwnsFields()
	if !fields {
		o.Live = nil
	}
	doc, err := r.dryRunDocument(ctx, r.record.desired, o)
	switch {
	case err != nil:
		return err
	case fields:
		return r.client.AcceptsApply(ctx, t, o.UID, doc)
	}
	return r.client.Accepts(ctx, t, doc)
}
