package engine

import (
	"reflect"

	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// left takes in that the watch no longer shows an upstream.
func (s *session) left(obj any) {
	if p, ok := withoutTomb(obj).(*packed); ok {
		s.Left(pipeline.Ref{Namespace: p.Namespace, Name: p.Name}, p.UID)
	}
}

// follow takes over from a session that has ended, without this one at its side, which upstreams it saw leaving, and finds those
// that have left since: it showed them, and this one, which selects as it did, does not. nil is no session.
func (s *session) follow(last *session) {
	if last == nil || last.Pipeline.Upstream.GVR != s.Pipeline.Upstream.GVR {
		return
	}
	s.InheritLeaving(last.Reconciler)
	watch := s.Pipeline.Config.Watch
	if watch.LabelSelector == nil || !reflect.DeepEqual(last.Pipeline.Config.Watch, watch) || len(last.unsynced()) > 0 {
		return
	}
	for _, sub := range last.caches.upstreams {
		for _, obj := range sub.indexer().List() {
			if refs := refsOf(obj); len(refs) == 1 && s.caches.UpstreamUID(refs[0]) == "" {
				s.left(obj)
			}
		}
	}
}
