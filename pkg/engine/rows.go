package engine

import (
	"errors"
	"slices"

	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/source"
)

// sourceRead records the result of an execution of a query. It returns false if that is not what the watch is about.
func (g *generation) sourceRead(key informers.Key, err error) bool {
	var failed *informers.SourceError
	if !key.IsRows() || err != nil && !errors.As(err, &failed) {
		return false
	}
	if err != nil {
		g.setSourceFailed(key, err.Error())
		counters.Failure(g.operator.name, "", string(state.ReasonSourceFailed))
		return true
	}
	g.setSourceFailed(key, "")
	return true
}

// noteGoneRows finds rows that the query does not return, and that no event announces, since they were gone before this session worked.
// What they have left is not another process's.
func (s *session) noteGoneRows() (gone []operator.Ref, doubt source.Doubt) {
	if !s.pipeline.HasRows() {
		return nil, doubt
	}
	gone, doubt = s.cache.GoneRows(s.cache.Candidates(s.reconciler))
	gone = slices.DeleteFunc(gone, func(ref operator.Ref) bool { return !s.reconciler.HasLeft(ref) })
	for _, ref := range gone {
		s.reconciler.NoteGone(ref)
	}
	return gone, doubt
}

// removeGoneRows removes what such rows have left. They count together.
func (s *session) removeGoneRows() {
	if !s.pipeline.HasRows() {
		return
	}
	gone, doubt := s.noteGoneRows()
	s.gate.JoinRows(gone, doubt) // before any of them is reconciled
	s.Add(informers.PriorityBulk, 0, gone...)
}
