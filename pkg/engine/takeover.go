package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// heritage is what a session knows of what another process did that led before, while this one stood by. The watches of
// upstreams may be behind what that process has acted upon already: going by them, downstreams would go back to an older
// wish, for as long as the watches lag.
type heritage struct {
	// heir: there was such a process.
	heir bool
	// version is one of the upstreams' resource versions. The other process cannot have acted upon a later one. Empty where
	// it could not be learned.
	version string
}

// electedAlready tells whether this process may write: what is listed from now on is not behind another one.
func (e *Engine) electedAlready() bool {
	select {
	case <-e.elected:
		return true
	default:
		return false
	}
}

// versionWait bounds how long the version is waited for: nothing is done meanwhile.
const versionWait = 5 * time.Second

// takeOver is called when this process has been elected, by a session that was there before.
func (s *session) takeOver(ctx context.Context) {
	if !s.engine.options.Succeeds() {
		return
	}
	s.heritage.heir = true
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	for namespace := range s.caches.upstreams { // one will do: versions are the kind's, not a namespace's
		version, err := s.client.Version(ctx, s.upstreamTarget(pipeline.Ref{Namespace: namespace}))
		if err != nil {
			s.log.Info("asking for the version of the upstreams failed: each is read before it is acted upon", "message", err.Error())
			return
		}
		s.heritage.version = version
		return
	}
}

// mayLag tells whether an upstream may be older than what the process acted upon that led before.
func (h heritage) mayLag(up *unstructured.Unstructured) bool {
	return h.heir && !newer(up.GetResourceVersion(), h.version)
}

// lostWatches are those of upstreams that have been interrupted and do not go on yet. What they show may be behind what the
// watches of downstreams, which go on at other times, show already.
type lostWatches struct {
	mu   sync.Mutex
	keys map[watchKey]struct{}
}

// note takes in how a list or watch went.
func (w *lostWatches) note(key watchKey, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.keys, key); err != nil {
		if w.keys == nil {
			w.keys = map[watchKey]struct{}{}
		}
		w.keys[key] = struct{}{}
	}
}

func (w *lostWatches) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.keys) > 0
}

// lookAnew is when a look begins anew that went by what is no longer so, where no event comes before.
const lookAnew = time.Second

// outdated makes sure, before anything is written for an upstream that may lag, that it is the latest one: once, by one
// request. Where it is not, the look is to begin anew after the time that is returned.
func (l *look) outdated(ctx context.Context, d *pipeline.Decision) (after time.Duration, err error) {
	lost := l.lost.any()
	if l.pipeline.Observing() || !lost && !l.mayBeCollected(d) && (l.record.newest || !l.heritage.mayLag(l.upstream)) {
		return 0, nil
	}
	up, err := l.client.Latest(ctx, l.upstreamTarget(l.ref))
	switch {
	case errors.Is(err, apply.ErrGone), err == nil && up.GetUID() != l.upstream.GetUID():
		l.record.letGo(l.upstream.GetUID(), l.now)
		return lookAnew, nil
	case err != nil:
		return 0, err
	case newer(l.upstream.GetResourceVersion(), up.GetResourceVersion()): // the cluster was set back: the watch is about to notice
		return lookAnew, nil
	case l.selector.Matches(labelsOf(l.upstream)) && !l.selector.Matches(labelsOf(up)): // the watch is about to say so
		return lookAnew, nil
	}
	l.record.newest = !lost
	if up.GetResourceVersion() == l.upstream.GetResourceVersion() {
		return 0, nil
	}
	l.log.Info("the watch lags behind a later version of the upstream, on which another process may have acted: going by that", "upstream", l.ref.String())
	l.record.wrote(withoutManagedFields(up), false)
	return time.Millisecond, nil
}
