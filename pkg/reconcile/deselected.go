package reconcile

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// deselected knows which upstreams were seen to lose the labels that the config selects by, theirs or their namespace's. That
// is a desired state about their downstreams. One that is merely found without them may have been left out by a change of the config,
// which deletes nothing.
type deselected struct {
	mu         sync.Mutex
	upstreams  map[pipeline.Ref]types.UID
	namespaces map[string]struct{}
}

// upstream takes in that the watch no longer shows the upstream of that uid.
func (l *deselected) upstream(ref pipeline.Ref, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.upstreams == nil {
		l.upstreams = map[pipeline.Ref]types.UID{}
	}
	l.upstreams[ref] = uid
}

// namespace takes in that namespaces are no longer selected, or are again.
func (l *deselected) namespace(names []pipeline.Ref, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.namespaces == nil {
		l.namespaces = map[string]struct{}{}
	}
	for _, name := range names {
		if delete(l.namespaces, name.Name); left {
			l.namespaces[name.Name] = struct{}{}
		}
	}
}

// has tells whether the upstream of that uid was seen leaving, or its namespace.
func (l *deselected) has(ref pipeline.Ref, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen, upstream := l.upstreams[ref]
	_, namespace := l.namespaces[ref.Namespace]
	return upstream && seen == uid || namespace && ref.Namespace != ""
}

// some tells whether an upstream of that name was seen leaving.
func (l *deselected) some(ref pipeline.Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.upstreams[ref]
	return ok
}

// refs lists the upstreams that were seen leaving.
func (l *deselected) refs() []pipeline.Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.upstreams))
}

// forget is for an upstream that is gone, has been cleaned up after, or is selected. It returns the uid that was remembered.
func (l *deselected) forget(ref pipeline.Ref) types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer delete(l.upstreams, ref)
	return l.upstreams[ref]
}

// inherit takes over what another session saw. Neither works.
func (l *deselected) inherit(from *deselected) {
	from.mu.Lock()
	upstreams, namespaces := maps.Clone(from.upstreams), maps.Clone(from.namespaces)
	from.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.upstreams == nil {
		l.upstreams = map[pipeline.Ref]types.UID{}
	}
	maps.Copy(l.upstreams, upstreams)
	if l.namespaces == nil {
		l.namespaces = map[string]struct{}{}
	}
	maps.Copy(l.namespaces, namespaces)
}

// isLeftOver tells whether an upstream that is not selected keeps what it has: nobody saw it leave, and its status does
// not say that its downstreams are on their way out.
func (l *reconciliation) isLeftOver() bool {
	return l.upstream.GetDeletionTimestamp() == nil && !l.deselected.has(l.ref, l.upstream.GetUID()) && !l.Pipeline.SaysNotSelected(l.upstream)
}

// standByWait bounds a read of StandBy: nobody acts before it is done.
const standByWait = 5 * time.Second

// StandBy lets go of an upstream that was seen leaving, once it is gone or the process that leads has cleaned up after it. It
// writes nothing: what is to be done for an upstream is found again by whoever begins to act. It returns after how long to look
// again.
func (s *Reconciler) StandBy(ctx context.Context, ref pipeline.Ref) time.Duration {
	if !s.deselected.some(ref) || s.Cache.UpstreamUID(ref) != "" {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, standByWait)
	defer cancel()
	l, err := s.vanished(ctx, ref)
	if err == nil && l == nil {
		return 0
	}
	if err == nil {
		done := l.Pipeline.SaysNotSelected(l.upstream) && len(l.owned()) == 0 && !l.hasFinalizer()
		l.releaseSlot()
		if s.forget(ref); done {
			s.deselected.forget(ref)
			return 0
		}
	}
	return time.Duration(s.Pipeline.Config.Retry.MaxDelay)
}
