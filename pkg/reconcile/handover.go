package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// handover is what a session knows of what another process did that led before, while this one stood by. The watches of
// upstreams may be behind what that process has acted upon already: going by them, downstreams would go back to an older
// desired, for as long as the watches lag.
type handover struct {
	// happened: there was such a process.
	happened bool
	// version is one of the upstreams' resource versions. The other process cannot have acted upon a later one. Empty where
	// it could not be learned.
	version string
}

// ActAfter is called when this process is to act after another one that has. version is the upstreams' resource version, which
// that one cannot have acted upon a later one of; empty where it is not known.
func (r *Reconciler) ActAfter(version string) {
	r.handover = handover{happened: true, version: version}
}

// mayLag tells whether an upstream may be older than what the process acted upon that led before.
func (h handover) mayLag(up *unstructured.Unstructured) bool {
	return h.happened && !Newer(up.GetResourceVersion(), h.version)
}

// NoteWatchResult takes in how a list or watch of upstreams went, which key tells from others; err is nil for one that went well.
func (r *Reconciler) NoteWatchResult(key any, err error) { r.lost.note(key, err) }

// lostWatches are those of upstreams that have been interrupted and do not go on yet. What they show may be behind what the
// watches of downstreams, which go on at other times, show already.
type lostWatches struct {
	mu   sync.Mutex
	keys map[any]struct{}
}

// note takes in how a list or watch went.
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

// startOverAfter is when a reconciliation begins anew that went by what is no longer so, where no event comes before.
const startOverAfter = time.Second

// ensureLatest makes sure, before the first write for an upstream that may be stale, that the cache has the latest version:
// once, by one request. If it has not, the reconciliation starts over after the returned time.
func (r *reconciliation) ensureLatest(ctx context.Context, d *pipeline.Decision) (after time.Duration, err error) {
	lost := r.lost.any()
	if r.Pipeline.Observing() || !lost && !r.mayBeCollected(d) && (r.record.newest || !r.handover.mayLag(r.upstream)) {
		return 0, nil
	}
	up, err := r.client.Latest(ctx, r.UpstreamTarget(r.ref))
	switch {
	case errors.Is(err, apply.ErrGone), err == nil && up.GetUID() != r.upstream.GetUID():
		r.record.forgetObject(r.upstream.GetUID(), r.now)
		return startOverAfter, nil
	case err != nil:
		return 0, err
	case Newer(r.upstream.GetResourceVersion(), up.GetResourceVersion()): // the cluster was set back: the watch is about to notice
		return startOverAfter, nil
	case r.Selector.Matches(labelsOf(r.upstream)) && !r.Selector.Matches(labelsOf(up)): // the watch is about to say so
		return startOverAfter, nil
	}
	r.record.newest = !lost
	if up.GetResourceVersion() == r.upstream.GetResourceVersion() {
		return 0, nil
	}
	r.Log.Info("the watch lags: using a newer version of the upstream, which another process may have acted on", "upstream", r.ref.String())
	r.record.wrote(withoutManagedFields(up), false)
	return time.Millisecond, nil
}
