package reconcile

import (
	"maps"
	"sync"

	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// leaving knows which upstreams were seen to lose the labels that the config selects by, theirs or their namespace's. That
// is a wish about their downstreams. One that is merely found without them may have been left out by a change of the config,
// which deletes nothing.
type leaving struct {
	mu         sync.Mutex
	upstreams  map[pipeline.Ref]struct{}
	namespaces map[string]struct{}
}

// upstream takes in that upstreams are no longer shown by the watch.
func (l *leaving) upstream(refs []pipeline.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.upstreams == nil {
		l.upstreams = map[pipeline.Ref]struct{}{}
	}
	for _, ref := range refs {
		l.upstreams[ref] = struct{}{}
	}
}

// namespace takes in that namespaces are no longer selected, or are again.
func (l *leaving) namespace(names []pipeline.Ref, left bool) {
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

// has tells whether an upstream was seen leaving.
func (l *leaving) has(ref pipeline.Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, upstream := l.upstreams[ref]
	_, namespace := l.namespaces[ref.Namespace]
	return upstream || namespace && ref.Namespace != ""
}

// forget is for an upstream that is gone, has been cleaned up after, or is selected.
func (l *leaving) forget(ref pipeline.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.upstreams, ref)
}

// inherit takes over what another session saw. Neither works.
func (l *leaving) inherit(from *leaving) {
	from.mu.Lock()
	upstreams, namespaces := maps.Clone(from.upstreams), maps.Clone(from.namespaces)
	from.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.upstreams == nil {
		l.upstreams = map[pipeline.Ref]struct{}{}
	}
	maps.Copy(l.upstreams, upstreams)
	if l.namespaces == nil {
		l.namespaces = map[string]struct{}{}
	}
	maps.Copy(l.namespaces, namespaces)
}

// isLeftOver tells whether an upstream that is not selected keeps what it has: nobody saw it leave, and its status does
// not say that its downstreams are on their way out.
func (l *look) isLeftOver() bool {
	return l.upstream.GetDeletionTimestamp() == nil && !l.leaving.has(l.ref) && !l.Pipeline.SaysNotSelected(l.upstream)
}
