package engine

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/source"
)

// noteGoneRows finds rows that the query does not return, and that no event announces, since they were gone before this
// session worked. What they have left is not another process's.
func noteGoneRows(r *reconcile.Reconciler, cache *informers.Cache) (goneRows []operator.Ref, doubt source.Doubt) {
	if !r.Pipeline.HasRows() {
		return nil, doubt
	}
	goneRows, doubt = cache.GoneRows(cache.Candidates(r))
	goneRows = slices.DeleteFunc(goneRows, func(ref operator.Ref) bool { return !r.HasLeft(ref) })
	for _, ref := range goneRows {
		r.NoteGone(ref)
	}
	return goneRows, doubt
}
