package engine

import (
	"context"
	"time"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// electedAlready reports whether this process may write: what it lists from now on is not older than what another process acted
// on.
func (e *Engine) electedAlready() bool {
	select {
	case <-e.elected:
		return true
	default:
		return false
	}
}

// versionWait bounds the request for the version: nothing is done meanwhile.
const versionWait = 5 * time.Second

// actAfterAnother is called by a session that was open while another process may have acted.
func (s *session) actAfterAnother(ctx context.Context) {
	if s.pipeline.HasRows() { // no API server has them, and each cluster reads them itself
		return
	}
	s.reconciler.ActAfter("")
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	if namespaces := s.cache.Namespaces(); len(namespaces) > 0 { // one will do: versions are the kind's, not a namespace's
		version, err := s.reconciler.Client.Version(ctx, s.reconciler.UpstreamTarget(operator.Ref{Namespace: namespaces[0]}))
		if err != nil {
			s.operator.log.Info("reading the resource version of the upstreams failed: each upstream is read before it is written", "message", err.Error())
			return
		}
		s.reconciler.ActAfter(version)
		return
	}
}
