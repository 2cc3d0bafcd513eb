package engine

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/source"
)

// noteGoneRows finds rows that the query does not return, and that no event announces, since they were gone before this session worked.
// What they have left is not another process's.
func noteGoneRows(r *reconcile.Reconciler, cache *informers.Cache) (gone []operator.Ref, doubt source.Doubt) {
	if !r.Pipeline.HasRows() {
		return nil, doubt
	}
	gone, doubt = cache.GoneRows(cache.Candidates(r))
	gone = slices.DeleteFunc(gone, func(ref operator.Ref) bool { return !r.HasLeft(ref) })
	for _, ref := range gone {
		r.NoteGone(ref)
	}
	return gone, doubt
}
