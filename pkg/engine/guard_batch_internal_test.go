package engine

import (
	"strconv"
	"testing"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

func refsNamed(from, to int) (refs []pipeline.Ref) {
	for i := from; i < to; i++ {
		refs = append(refs, pipeline.Ref{Namespace: "a", Name: strconv.Itoa(i)})
	}
	return refs
}

// TestBatchReleasesWhatWasJudged: upstreams that join while guard judges the others, or whose count changes meanwhile, are not
// released with them.
func TestBatchReleasesWhatWasJudged(t *testing.T) {
	t.Parallel()
	var b batch
	b.open()
	first, own := refsNamed(0, 3), drift.Digest("own")
	deletes := reconcile.Counted{GuardCount: reconcile.GuardCount{Standing: 1, Changed: 1, Deleted: 1}}
	b.join(first)
	for _, ref := range first {
		b.note(ref, deletes, own, false)
	}
	judged, left := b.current().sum()
	if left != 0 || judged.Deleted != 3 {
		t.Fatalf("%d are left, %d deletions are counted", left, judged.Deleted)
	}
	more := refsNamed(3, 6)
	b.join(more)
	if refs, ok := b.release(judged); ok {
		t.Errorf("%v are released, some of them uncounted", refs)
	}
	for _, ref := range more {
		b.note(ref, deletes, own, false)
	}
	if refs, ok := b.release(judged); ok {
		t.Errorf("%v are released, some of them not judged", refs)
	}
	judged, _ = b.current().sum()
	if refs, ok := b.release(judged); !ok || len(refs) != 6 {
		t.Errorf("%v are released, want all", refs)
	}
}

// TestClosedBatchTakesNobody: what is not counted before it is done must not wait for ever.
func TestClosedBatchTakesNobody(t *testing.T) {
	t.Parallel()
	var b batch
	b.join(refsNamed(0, 2))
	if _, waits := b.has(refsNamed(0, 1)[0]); waits {
		t.Error("an upstream waits where nobody would let it go on")
	}
}
