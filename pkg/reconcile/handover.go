package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

// handover is what a session knows about another process that was the leader before, while this one was a standby. The watches
// of upstreams may lag behind what that process acted on: downstreams would get an older desired state as long as they do.
type handover struct {
	// happened is true if there was such a process.
	happened bool
	// version is a resourceVersion of the upstreams later than any that the other process acted on. Empty if it could not be
	// read.
	version string
	// number counts them, from 1.
	number int
}

// lag is what is known of how far the watches of upstreams lag.
type lag struct {
	lost     lostWatches
	handover handover
}

// ActAfter is called if this process acts after another one. version is a resourceVersion of the upstreams later than any that
// the other one acted on; empty if it is unknown.
func (l *lag) ActAfter(version string) {
	l.handover = handover{happened: true, version: version, number: l.handover.number + 1}
}

// mayLag reports whether an upstream may be older than what the process before acted on.
func (h handover) mayLag(up *unstructured.Unstructured) bool {
	return h.happened && !memory.Newer(up.GetResourceVersion(), h.version)
}

// NoteWatchResult records the result of a list or watch of upstreams, identified by key; err is nil for success.
func (l *lag) NoteWatchResult(key any, err error) { l.lost.note(key, err) }

// lostWatches are the watches of upstreams that were interrupted and have not resumed. What they show may be older than what
// the watches of downstreams show already.
type lostWatches struct {
	mu   sync.Mutex
	keys map[any]struct{}
}

// note records the result of a list or watch.
func (w *lostWatches) note(key any, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.keys, key); err != nil {
		if w.keys == nil {
			w.keys = map[any]struct{}{}
		}
		w.keys[key] = struct{}{}
	}
}

func (w *lostWatches) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.keys) > 0
}

// isNewest reports whether the upstream was read since the last handover.
func (r *reconciliation) isNewest() bool {
	return int(r.Memory.Steps.NewestSince) == 1+r.handover.number
}

// startOverAfter is when a reconciliation of an outdated upstream starts over, if no event comes before.
const startOverAfter = time.Second

// ensureLatest makes sure, by one request before the first write for an upstream that may be stale, that the cache has its
// latest version. If it does not, the reconciliation starts over after the returned time.
func (r *reconciliation) ensureLatest(ctx context.Context, d *operator.Decision) (after time.Duration, err error) {
	lost := r.lost.any()
	if r.Pipeline.HasRows() || r.Pipeline.Observing() || !lost && !r.mayBeCollected(d) && (r.isNewest() || !r.handover.mayLag(r.Upstream)) {
		return 0, nil
	}
	up, err := r.API.Latest(ctx, r.UpstreamTarget(r.Ref))
	switch {
	case errors.Is(err, apply.ErrGone), err == nil && up.GetUID() != r.Upstream.GetUID():
		r.Memory.NoteGone(r.Upstream.GetUID(), r.Began)
		return startOverAfter, nil
	case err != nil:
		return 0, err
	case memory.Newer(r.Upstream.GetResourceVersion(), up.GetResourceVersion()): // the cluster was set back: the watch is about to notice
		return startOverAfter, nil
	case r.isWatched(r.Upstream) && !r.isWatched(up): // the watch is about to say so
		return startOverAfter, nil
	}
	if r.Memory.Steps.NewestSince = 0; !lost {
		r.Memory.Steps.NewestSince = int32(1 + r.handover.number)
	}
	if up.GetResourceVersion() == r.Upstream.GetResourceVersion() {
		return 0, nil
	}
	r.Log.Info("the watch lags: using a newer version of the upstream, which another process may have acted on", "upstream", r.Ref.String())
	r.Memory.WroteUpstream(write.WithoutManagedFields(up), false)
	return time.Millisecond, nil
}
