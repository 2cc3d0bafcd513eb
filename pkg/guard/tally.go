package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Tally is what guard has counted.
type Tally struct {
	mu      sync.Mutex
	pending map[operator.Ref]struct{} // not counted yet
	counted map[operator.Ref]Counted
	total   Count
	refs    int
	// version changes with what is counted.
	version int
}

// Sum is what a tally has counted so far, and how many upstreams are left. Of two with the same tally and version, what
// is counted is the same, one by one.
type Sum struct {
	Count
	left    int
	tally   *Tally
	version int
}

// NewTally returns a tally that expects upstreams.
func NewTally(refs []operator.Ref) *Tally {
	t := &Tally{pending: make(map[operator.Ref]struct{}, len(refs)), counted: map[operator.Ref]Counted{}, refs: len(refs)}
	for _, ref := range refs {
		t.pending[ref] = struct{}{}
	}
	return t
}

// Expect adds upstreams that are to be counted, again or for the first time.
func (t *Tally) Expect(refs []operator.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ref := range refs {
		t.pending[ref] = struct{}{}
	}
}

// Note records the count of an upstream, in place of the one before.
func (t *Tally) Note(ref operator.Ref, c Counted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = without(t.pending, ref)
	if c == t.counted[ref] {
		return
	}
	t.version++
	t.total = difference(t.total, t.counted[ref].Count)
	t.total.Add(c.Count)
	if c == (Counted{}) {
		delete(t.counted, ref)
		return
	}
	t.counted[ref] = c
}

// without deletes a key. An empty map is replaced: one that was large stays large.
func without[K comparable, V any](m map[K]V, key K) map[K]V {
	if delete(m, key); len(m) == 0 {
		return map[K]V{}
	}
	return m
}

// Drop removes upstreams that others count.
func (t *Tally) Drop(lost func(ref operator.Ref) bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.pending, func(ref operator.Ref, _ struct{}) bool { return lost(ref) })
	maps.DeleteFunc(t.counted, func(ref operator.Ref, c Counted) bool {
		isLost := lost(ref)
		if isLost {
			t.version++
			t.total = difference(t.total, c.Count)
		}
		return isLost
	})
}

// Sum returns what is counted so far.
func (t *Tally) Sum() Sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Sum{Count: t.total, left: len(t.pending), tally: t, version: t.version}
}

// difference is a without b.
func difference(a, b Count) Count {
	return Count{Existing: a.Existing - b.Existing, Changed: a.Changed - b.Changed, Deleted: a.Deleted - b.Deleted,
		Failing: a.Failing - b.Failing}
}

// of is the count of an upstream.
func (t *Tally) of(ref operator.Ref) Counted {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counted[ref]
}

// changes has, by upstream, the digest of what would be changed or deleted.
func (t *Tally) changes() map[operator.Ref]canonical.Sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := map[operator.Ref]canonical.Sum{}
	for ref, c := range t.counted {
		if c.Any() {
			set[ref] = c.Digest
		}
	}
	return set
}

// forget removes the changes in the set from the count.
func (t *Tally) forget(set map[operator.Ref]canonical.Sum) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, found := range t.counted {
		if sum, ok := set[ref]; ok && sum == found.Digest {
			t.version++
			t.total = difference(t.total, found.Count)
			delete(t.counted, ref)
		}
	}
}

// common counts what would be changed or deleted and is in the set.
func (t *Tally) common(set map[operator.Ref]canonical.Sum) (c Count) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, found := range t.counted {
		if sum, ok := set[ref]; ok && found.Any() && sum == found.Digest {
			c.Add(found.Count)
		}
	}
	return c
}

// changeDigest identifies a set of changes. Whoever confirms it confirms these, and no others that the config may cause
// later.
func changeDigest(set map[operator.Ref]canonical.Sum) string {
	h := sha256.New()
	for _, ref := range sortedRefs(set) {
		sum := set[ref]
		fmt.Fprintf(h, "%q %x\n", ref.String(), sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func sortedRefs(set map[operator.Ref]canonical.Sum) []operator.Ref {
	return slices.SortedFunc(maps.Keys(set), operator.Ref.Compare)
}

// examples names the first few upstreams of a set.
func (t *Tally) examples(set map[operator.Ref]canonical.Sum) string {
	const few = 3
	refs := sortedRefs(set)
	t.mu.Lock()
	defer t.mu.Unlock()
	// an error says most
	slices.SortStableFunc(refs, func(a, b operator.Ref) int { return t.counted[b].Failing - t.counted[a].Failing })
	var parts []string
	for _, ref := range refs[:min(few, len(refs))] {
		parts = append(parts, fmt.Sprintf("%s (%s)", ref, t.counted[ref].First))
	}
	if more := len(refs) - few; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}
