package guard

import (
	"strconv"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
)

func refsNamed(from, to int) (refs []operator.Ref) {
	for i := from; i < to; i++ {
		refs = append(refs, operator.Ref{Namespace: "a", Name: strconv.Itoa(i)})
	}
	return refs
}

// TestBatchReleasesWhatWasJudged: upstreams that join while guard judges the others, or whose count changes meanwhile,
// are not released with them, unless guard allows all of it.
func TestBatchReleasesWhatWasJudged(t *testing.T) {
	t.Parallel()
	var b Batch
	b.Open(false)
	first := refsNamed(0, 3)
	deletes := Counted{Count: Count{Existing: 1, Changed: 1, Deleted: 1}}
	b.Join(first)
	for _, ref := range first {
		b.Note(ref, deletes, false)
	}
	judged := b.current().Sum()
	if judged.left != 0 || judged.Deleted != 3 {
		t.Fatalf("%d are left, %d deletions are counted", judged.left, judged.Deleted)
	}
	more := refsNamed(3, 6)
	b.Join(more)
	upTo := func(deleted int) func(Sum) bool { return func(now Sum) bool { return now.Deleted <= deleted } }
	if refs, ok := b.release(judged, nil, upTo(100)); ok {
		t.Errorf("%v are released, some of them uncounted", refs)
	}
	for _, ref := range more {
		b.Note(ref, deletes, false)
	}
	if refs, ok := b.release(judged, nil, upTo(5)); ok {
		t.Errorf("%v are released, some of them not allowed", refs)
	}
	if refs, ok := b.release(judged, map[operator.Ref]canonical.Sum{}, upTo(100)); ok {
		t.Errorf("%v are released, some of them not confirmed", refs)
	}
	// While upstreams change all the time, no count is that which was judged.
	if refs, ok := b.release(judged, nil, upTo(6)); !ok || len(refs) != 6 {
		t.Errorf("%v are released, want all", refs)
	}
}

// TestBatchCountsDeletionsOfSingleReaders: what an input with one reader changes is its author's business; what it
// deletes counts.
func TestBatchCountsDeletionsOfSingleReaders(t *testing.T) {
	t.Parallel()
	changes := Counted{Count: Count{Existing: 2, Changed: 2}}
	deletes := Counted{Count: Count{Existing: 2, Changed: 2, Deleted: 1}}
	one, several := refsNamed(0, 1), refsNamed(0, 2)
	for _, row := range []struct {
		reason  string
		joins   [][]operator.Ref
		counted Counted
		free    bool
		sum     Count
	}{
		{"a change", [][]operator.Ref{one}, changes, true, Count{}},
		{"a deletion beside a change", [][]operator.Ref{one}, deletes, false, Count{Existing: 2, Changed: 1, Deleted: 1}},
		{"several readers", [][]operator.Ref{several}, changes, false, changes.Count},
		{"several readers, then one", [][]operator.Ref{several, one}, changes, false, changes.Count},
		{"one reader, then several", [][]operator.Ref{one, several}, changes, false, changes.Count},
	} {
		var b Batch
		b.Open(false)
		for _, refs := range row.joins {
			b.Join(refs)
		}
		must.Same(t, row.free, b.Note(one[0], row.counted, false), row.reason, "free")
		if got := b.tally.of(one[0]).Count; !row.free && got != row.sum {
			t.Errorf("%s: counted is %+v, want %+v", row.reason, got, row.sum)
		}
	}
}

// TestBatchForgets: what was released is remembered for rows alone, and only while anything of them is left.
func TestBatchForgets(t *testing.T) {
	t.Parallel()
	deletes := Counted{Count: Count{Existing: 1, Changed: 1, Deleted: 1}, Digest: canonical.Digest("it")}
	for _, rows := range []bool{false, true} {
		var b Batch
		b.Open(rows)
		for _, ref := range refsNamed(0, 10) {
			b.Join([]operator.Ref{ref})
			count := func(c Counted) bool {
				if rows {
					return b.NoteGone(ref, c)
				}
				return b.Note(ref, c, false)
			}
			count(deletes)
			if _, ok := b.release(b.current().Sum(), nil, nil); !ok {
				t.Fatal("it is not released")
			}
			if rows && (!count(deletes) || !count(Counted{})) {
				t.Error("a row that was released waits again")
			}
		}
		if n := len(b.cleared); n > 0 {
			t.Errorf("rows=%t: %d are remembered", rows, n)
		}
	}
}

// TestBatchSpendsConfirmations: what was confirmed is not in the count of what comes within the same minute, though it
// is still to be done; what guard allowed by itself is, and so is another change of the same upstream.
func TestBatchSpendsConfirmations(t *testing.T) {
	t.Parallel()
	deletion := func(of string) Counted {
		return Counted{Count: Count{Existing: 1, Changed: 1, Deleted: 1}, Digest: canonical.Digest(of)}
	}
	for _, row := range []struct {
		name, reason string
		confirmed    bool
		again        string // what becomes of the first three, which join once more
		deleted      int    // are counted then, with one more upstream
		free         bool
	}{
		{name: "confirmed", reason: "the budget is that of the new change", confirmed: true, again: "gone", deleted: 1, free: true},
		{name: "confirmed, and something else", reason: "another change of theirs is not confirmed", confirmed: true, again: "other", deleted: 4},
		{name: "allowed", reason: "changes within a minute are one, and what was allowed is not asked for again",
			again: "gone", deleted: 4, free: true},
		{name: "allowed, and something else", reason: "one upstream may lose one object after another", again: "other", deleted: 7},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var b Batch
			b.Open(false)
			first := refsNamed(0, 3)
			b.Join(first)
			for _, ref := range first {
				b.Note(ref, deletion("gone"), false)
			}
			judged := b.current().Sum()
			var asked map[operator.Ref]canonical.Sum
			if row.confirmed {
				asked = b.current().changes()
			}
			if _, ok := b.release(judged, asked, nil); !ok {
				t.Fatal("they are not released")
			}
			more := refsNamed(3, 4)
			b.Join(append(more, first...))
			b.Note(more[0], deletion("gone"), false)
			for _, ref := range first {
				must.Same(t, row.free, b.Note(ref, deletion(row.again), false), row.reason, "free")
			}
			if c := b.current().Sum(); c.left != 0 || c.Deleted != row.deleted {
				t.Errorf("%s: %d deletions are counted, want %d; %d are left", row.reason, c.Deleted, row.deleted, c.left)
			}
		})
	}
}

// TestClosedBatchTakesNoMore: what was not counted before the batch is done must not wait forever.
func TestClosedBatchTakesNoMore(t *testing.T) {
	t.Parallel()
	var b Batch
	b.Join(refsNamed(0, 2))
	if b.Has(refsNamed(0, 1)[0]) {
		t.Error("an upstream waits where nobody would let it go on")
	}
}
