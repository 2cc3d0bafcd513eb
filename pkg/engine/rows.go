package engine

import (
	"errors"
	"slices"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// sourceRead records the result of an execution of a query. It returns false if that is not what the watch is about.
func (s *session) sourceRead(key informers.Key, err error) bool {
	var failed *informers.SourceError
	if !key.IsRows() || err != nil && !errors.As(err, &failed) {
		return false
	}
	if err != nil {
		s.generation.setSourceFailed(key, err.Error())
		reconcile.CountFailure(s.operator.name, "", string(reasonSourceFailed))
		return true
	}
	s.generation.setSourceFailed(key, "")
	return true
}

// removeGoneRows removes what rows have left that the query does not return and that no event announces, since they were gone
// before this session worked. They count together.
func (s *session) removeGoneRows() {
	if !s.pipeline.HasRows() {
		return
	}
	gone, doubt := s.cache.GoneRows(s.cache.Candidates(s.reconciler))
	gone = slices.DeleteFunc(gone, func(ref pipeline.Ref) bool { return !s.reconciler.HasLeft(ref) })
	s.batch.joinRows(gone, doubt) // before any of them is reconciled
	for _, ref := range gone {
		s.reconciler.NoteGone(ref)
	}
	s.Add(informers.PriorityBulk, 0, gone...)
}
