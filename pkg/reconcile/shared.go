package reconcile

import (
	"sync"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// shared are the upstreams for which another process with the same field manager and labels works, as far as that has shown.
type shared struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// maxShared bounds how many of them are remembered.
const maxShared = 1000

// isShared reports such an upstream: once in the log and by an event for the operator, and each in the metric.
func (s *Reconciler) isShared(upstream, why string) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if _, ok := s.shared.seen[upstream]; ok || len(s.shared.seen) >= maxShared {
		return
	}
	if s.shared.seen == nil {
		s.shared.seen = map[string]struct{}{}
	}
	s.shared.seen[upstream] = struct{}{}
	setShared(s.Name, len(s.shared.seen))
	if len(s.shared.seen) > 1 {
		return
	}
	note := "objects with this operator's field manager and labels belong to upstreams that it does not work for, and are left alone: " + why +
		"; give each process conventions of its own"
	s.Log.Info(note, "upstream", upstream, "fieldManager", s.Pipeline.Config.Conventions.FieldManager)
	s.Host.TellShared(note, upstream)
}

const whyShared = "another process uses the same conventions, or a config before selected or watched more"

// NoteOwner looks at whose an object is that our field manager has applied: an upstream that this operator does not watch is
// another process's, or is left over from a config that watched more.
func (s *Reconciler) NoteOwner(live *drift.Live) {
	if !live.Managed {
		return
	}
	for _, owner := range live.Owners {
		if owner.Controller && owner.Kind != s.Pipeline.Upstream.GVK.Kind {
			s.isShared(owner.Kind+" "+owner.Name, whyShared)
		}
	}
	if ref, _, ok := pipeline.ParseOwnerMark(live.OwnerMark); ok && !s.Cache.Watches(ref.Namespace) {
		s.isShared(ref.String(), whyShared)
	}
}

// noteShared is for an upstream that is not selected and keeps what it has: see isLeftOver.
func (l *look) noteShared() {
	if len(l.owned()) > 0 && !l.leaving.has(l.ref) {
		l.isShared(l.ref.String(), whyShared)
	}
}
