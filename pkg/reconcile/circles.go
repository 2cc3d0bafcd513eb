package reconcile

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// circles finds superseded objects that wait for each other: each stays until its successor exists, whose name the next one has, as when
// upstreams swap the names of their objects. In each circle, one gives way: that of the upstream by which it was closed, so that nobody
// can take an object from an upstream that waits.
type circles struct {
	mu    sync.Mutex
	known waits // with a board, only those of this process
}

// waits are superseded objects and what they wait for.
type waits struct {
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

const (
	// maxCircle bounds how many objects are visited to find a circle.
	maxCircle = 1000
	// maxRead bounds how many upstreams of other processes are read to check a circle.
	maxRead = 50
)

// set replaces what is known of an upstream.
func (w *waits) set(ref pipeline.Ref, upstream waitingUpstream) {
	for object := range w.upstreams[ref].blockers {
		delete(w.owners, object)
	}
	if len(upstream.blockers) == 0 {
		delete(w.upstreams, ref)
		return
	}
	if w.upstreams == nil {
		w.upstreams, w.owners = map[pipeline.Ref]waitingUpstream{}, map[types.UID]pipeline.Ref{}
	}
	w.upstreams[ref] = upstream
	for object := range upstream.blockers {
		w.owners[object] = ref
	}
}

// settle decides which objects of an upstream give way. isCurrent reports whether what is known of another upstream is about it as it is
// now.
func (w *waits) settle(ref pipeline.Ref, isCurrent func(pipeline.Ref, drift.Sum) bool) {
	upstream := w.upstreams[ref]
	if len(upstream.blockers) == 0 {
		return
	}
	upstream.givesWay = map[types.UID]bool{}
	w.upstreams[ref] = upstream
	for object := range upstream.blockers {
		others := w.circle(object)
		if others != nil && !slices.ContainsFunc(others, w.givesWay) && !slices.ContainsFunc(others, func(other types.UID) bool {
			at := w.owners[other]
			return at != ref && !isCurrent(at, w.upstreams[at].digest)
		}) {
			upstream.givesWay[object] = true
		}
	}
}

// givesWay reports whether a superseded object is to be removed before its successor exists.
func (w *waits) givesWay(object types.UID) bool {
	return w.upstreams[w.owners[object]].givesWay[object]
}

// circle returns the other objects of a circle with an object; nil for none.
func (w *waits) circle(start types.UID) []types.UID {
	cameFrom, queue := map[types.UID]types.UID{}, []types.UID{start}
	for len(queue) > 0 && len(cameFrom) < maxCircle {
		object := queue[0]
		queue = queue[1:]
		for _, next := range w.upstreams[w.owners[object]].blockers[object] {
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

// givesWay reports whether a superseded object is to be removed before its successor exists.
func (c *circles) givesWay(object types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.givesWay(object)
}

// note replaces what is known of an upstream and decides which of its objects give way. It reports whether one does since now.
func (c *circles) note(ref pipeline.Ref, upstream waitingUpstream, isCurrent func(pipeline.Ref, drift.Sum) bool) (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known.upstreams[ref].givesWay
	c.known.set(ref, upstream)
	c.known.settle(ref, isCurrent)
	return hasMore(c.known.upstreams[ref].givesWay, before)
}

// take is note for an upstream of which all processes have agreed which objects give way.
func (c *circles) take(ref pipeline.Ref, agreed waitingUpstream) (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known.upstreams[ref].givesWay
	c.known.set(ref, agreed)
	return hasMore(agreed.givesWay, before)
}

// hasMore reports whether there is an object in a set that is not in another one.
func hasMore(set, other map[types.UID]bool) bool {
	for object := range set {
		if !other[object] {
			return true
		}
	}
	return false
}

// forget forgets an upstream.
func (c *circles) forget(ref pipeline.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.set(ref, waitingUpstream{})
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
			w.digest, w.blockers = r.readableDigest(false), map[types.UID][]types.UID{}
		}
		w.blockers[o.UID] = o.Blockers
	}
	isCached := func(at pipeline.Ref, digest drift.Sum) bool { return r.isCached(ctx, at, digest) }
	if r.Swaps == nil {
		return r.circles.note(r.ref, w, isCached)
	}
	if len(w.blockers) == 0 && d.Pending() {
		return false // what an action meets may show that it still waits: it does not lose its turn
	}
	closed, err := r.noteOnBoard(ctx, w, isCached)
	if err != nil && len(w.blockers) > 0 {
		r.Log.Info("cannot publish that the upstream waits for a name: circles of names through other processes are not found", "upstream", r.ref.String(),
			"reason", apply.Classify(err).Reason, "message", err.Error())
	}
	return closed
}

// isCached reports whether an upstream with that digest is in the cache.
func (r *reconciliation) isCached(ctx context.Context, at pipeline.Ref, digest drift.Sum) bool {
	up, err := r.Cache.Upstream(at)
	return err == nil && up != nil && r.digestOf(ctx, up) == digest
}

// digestOf is the readableDigest of another upstream, without its status. What it asks for depends on nothing else, other than the config
// and its own objects.
func (r *reconciliation) digestOf(ctx context.Context, up *unstructured.Unstructured) drift.Sum {
	other := &reconciliation{Reconciler: r.Reconciler, upstream: up, record: &record{}}
	other.record.inputs.edit().refs = r.Pipeline.InputRefs(ctx, up)
	other.readInputs(ctx)
	return other.readableDigest(false)
}

// acceptsSuccessors reports whether the API server would accept the objects whose names the blockers have, by one dry run for each desired
// state. An upstream whose objects are refused would give nobody anything for what is removed.
func (r *reconciliation) acceptsSuccessors(ctx context.Context, d pipeline.Decision, blockers []types.UID) bool {
	for k, o := range d.Outcomes {
		if o.State != pipeline.StateConflict || o.Live == nil || !slices.Contains(blockers, o.Live.UID) {
			continue
		}
		t, hash := &r.record.objects[k].target, r.record.desired.Objects[k].Hash
		switch {
		case t.unusual.get().successor.accepted == hash:
			continue
		case t.unusual.get().successor.refused == hash && t.retry.get().wait(r.record.externalDigest, r.now) > 0:
			return false
		}
		if err := r.accepts(ctx, o); err != nil {
			t.unusual.edit().successor.refused = hash
			r.Log.Info("an object whose name another upstream has would be refused, so that no object is removed for it", "upstream", r.ref.String(),
				"target", o.Target.String(), "reason", classify(r.downstream(k), err).Reason, "message", classify(r.downstream(k), err).Message)
			return false
		}
		t.unusual.edit().successor.accepted = hash
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
