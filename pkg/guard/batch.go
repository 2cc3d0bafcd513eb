package guard

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/source"
)

// Batch are the changes that inputs and namespaces cause: all upstreams concerned are counted before any of them is
// changed beyond what guard allows. The zero value accepts no upstreams.
type Batch struct {
	mu sync.Mutex
	// joined signals that upstreams have joined; nil before open.
	joined chan struct{}
	// tally counts the changes that wait, and what was released; nil before the first one.
	tally *Tally
	// waiting has the upstreams that are held, and the digests of their changes.
	waiting map[operator.Ref]canonical.Sum
	// alone has those that wait only for inputs with one reader: what changes there is its author's business, what is
	// deleted counts.
	alone map[operator.Ref]bool
	// released is what guard allowed within batchWindow before the last one that came while none waited: further changes
	// count with it.
	released map[operator.Ref]released
	expired  time.Time
	// confirmed has the digests of changes that were confirmed within the last minute, and may still have to be carried
	// out.
	confirmed   map[operator.Ref]canonical.Sum
	confirmedAt time.Time
	// cleared has, by row that is gone, the digest of what may be removed; nil if upstreams are not rows.
	cleared map[operator.Ref]canonical.Sum
	// doubt is why rows that the last result lacks may exist nevertheless.
	doubt source.Doubt
}

// released is all that guard allowed for an upstream since at least one change of it was released at the last time;
// last has that one's digest.
type released struct {
	all  Counted
	last canonical.Sum
	at   time.Time
}

// with adds a change that follows.
func (r released) with(c Counted) Counted {
	c.Digest = canonical.Digest([]any{string(r.all.Digest[:]), string(c.Digest[:])})
	c.Changed, c.Deleted, c.Failing = c.Changed+r.all.Changed, c.Deleted+r.all.Deleted, c.Failing+r.all.Failing
	return c
}

// batchWindow is how long the changes of several inputs or namespaces count as one.
const batchWindow = time.Minute

// Open makes the batch accept upstreams from now on, and forget everything.
func (b *Batch) Open(rows bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.joined == nil {
		b.joined = make(chan struct{}, 1)
	}
	if b.tally, b.waiting, b.alone, b.released, b.confirmed, b.cleared = nil, nil, nil, nil, nil, nil; rows {
		b.cleared = map[operator.Ref]canonical.Sum{}
	}
}

// NoteConfirmed records a confirmation: confirmed changes do not count any more.
func (b *Batch) NoteConfirmed(confirmed map[operator.Ref]canonical.Sum) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.confirmed, b.confirmedAt = confirmed, time.Now()
}

// Join has upstreams counted before they are reconciled, once the batch is open.
func (b *Batch) Join(refs []operator.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(refs) == 0 {
		return
	}
	_, waits := b.waiting[refs[0]]
	alone := len(refs) == 1 && (!waits || b.alone[refs[0]])
	if b.joinLocked(refs); alone && b.joined != nil {
		b.alone[refs[0]] = true
	}
}

// JoinRows is Join for the rows that a result lacks. Each result counts by itself.
func (b *Batch) JoinRows(goneRows []operator.Ref, doubt source.Doubt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if doubt.Lasting || !b.doubt.Lasting || len(b.waiting) == 0 {
		b.doubt = doubt
	}
	if len(goneRows) == 0 {
		return
	}
	if len(b.waiting) == 0 {
		b.tally, b.released = nil, nil
	}
	for _, ref := range goneRows {
		delete(b.cleared, ref)
	}
	b.joinLocked(goneRows)
}

// doubtful is the doubt about the rows that wait; empty for none.
func (b *Batch) doubtful() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.doubt.Why
}

func (b *Batch) joinLocked(refs []operator.Ref) {
	if b.joined == nil {
		return
	}
	if b.tally == nil {
		b.tally, b.waiting, b.alone, b.released = NewTally(nil), map[operator.Ref]canonical.Sum{}, map[operator.Ref]bool{},
			map[operator.Ref]released{}
	}
	b.expire(time.Now())
	for _, ref := range refs {
		b.waiting[ref] = canonical.Sum{}
		delete(b.alone, ref)
	}
	b.tally.Expect(refs)
	select {
	case b.joined <- struct{}{}:
	default:
	}
}

// expire forgets what is too old, while nothing waits: what waits counts with all that it came with.
func (b *Batch) expire(now time.Time) {
	if len(b.waiting) > 0 || now.Sub(b.expired) < time.Second {
		return
	}
	b.expired = now
	for ref, r := range b.released {
		if now.Sub(r.at) > batchWindow {
			b.tally.Note(ref, Counted{})
			b.released = without(b.released, ref)
		}
	}
	if now.Sub(b.confirmedAt) > batchWindow {
		b.confirmed = nil
	}
}

// Has reports whether an upstream waits.
func (b *Batch) Has(ref operator.Ref) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.waiting[ref]
	return ok
}

// Note records the count of an upstream that waits. One that is free, or whose very change was confirmed, waits no
// more.
func (b *Batch) Note(ref operator.Ref, c Counted, free bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.waiting[ref]; !ok {
		return free
	}
	return b.noteLocked(ref, c, free)
}

// NoteGone is Note for a row that is gone. It waits unless the batch has released it, also if it has not joined.
func (b *Batch) NoteGone(ref operator.Ref, c Counted) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sum, ok := b.cleared[ref]; b.joined == nil || c.Deleted == 0 || ok && sum == c.Digest {
		if _, waits := b.waiting[ref]; waits {
			b.tally.Note(ref, Counted{})
			b.waiting = without(b.waiting, ref)
		}
		if c.Deleted == 0 {
			delete(b.cleared, ref)
		}
		return true
	}
	if _, ok := b.waiting[ref]; !ok {
		b.joinLocked([]operator.Ref{ref})
	}
	return b.noteLocked(ref, c, false)
}

func (b *Batch) noteLocked(ref operator.Ref, c Counted, free bool) bool {
	digest, before := c.Digest, b.released[ref]
	if b.alone[ref] {
		c.Changed, free = c.Deleted, free || c.Deleted == 0
	}
	confirmed, ok := b.confirmed[ref]
	// it was allowed, and is not done yet
	if free = free || ok && confirmed == digest || before.all.Any() && before.last == digest; free {
		b.tally.Note(ref, before.all)
		b.waiting, b.alone = without(b.waiting, ref), without(b.alone, ref)
		return true
	}
	if before.all.Any() {
		c = before.with(c)
	}
	b.tally.Note(ref, c)
	b.waiting[ref] = digest
	return false
}

// release returns the upstreams that wait and lets them go on, unless what is counted now is not allowed, or is
// incomplete: upstreams may have joined meanwhile. What was counted is allowed; anything else only if allows says so,
// and not if counted was confirmed: while upstreams change all the time, the count is another one before others have
// published theirs. Confirmed changes do not count any more.
func (b *Batch) release(
	counted Sum, confirmed map[operator.Ref]canonical.Sum, allows func(now Sum) bool,
) (refs []operator.Ref, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tally == nil {
		return nil, false
	}
	now := b.tally.Sum()
	if now.tally != counted.tally || now.left > 0 || now != counted && (confirmed != nil || !allows(now)) {
		return nil, false
	}
	refs, done := make([]operator.Ref, 0, len(b.waiting)), maps.Clone(confirmed)
	for ref, digest := range b.waiting {
		refs = append(refs, ref)
		c := b.tally.of(ref)
		if c.Deleted > 0 && b.cleared != nil {
			b.cleared[ref] = digest
		}
		if confirmed != nil && confirmed[ref] == c.Digest {
			done[ref] = digest
			b.released = without(b.released, ref)
		} else if c.Any() {
			b.released[ref] = released{c, digest, time.Now()}
		}
	}
	b.waiting, b.alone = map[operator.Ref]canonical.Sum{}, map[operator.Ref]bool{}
	if confirmed != nil {
		b.tally.forget(confirmed)
		b.confirmed, b.confirmedAt = done, time.Now()
	}
	return refs, true
}

// Drop removes upstreams that wait and that others count.
func (b *Batch) Drop(lost func(ref operator.Ref) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.waiting, func(ref operator.Ref, _ canonical.Sum) bool { return lost(ref) })
	maps.DeleteFunc(b.released, func(ref operator.Ref, _ released) bool { return lost(ref) })
	b.tally.Drop(lost)
}

// current is the tally while any upstream waits; nil if none does.
func (b *Batch) current() *Tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return nil
	}
	return b.tally
}

// Held has the upstreams that wait.
func (b *Batch) Held() []operator.Ref {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.waiting))
}

// Serve lets upstreams that wait go on once they are counted and allowed, or confirmed, until ctx is done. held is
// called with what is waited for, empty for nothing, and released with the upstreams that go on.
func (b *Batch) Serve(ctx context.Context, host *Host, held func(text string), released func(refs []operator.Ref)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.joined:
		}
		w := newWait(host, nil, b.doubtful, batchKey)
		for ctx.Err() == nil {
			if w.tally = b.current(); w.tally == nil {
				w.board.end(ctx, withdrawn)
				w.reportNothing()
				break
			}
			if refs, ok := b.tryRelease(ctx, w, held); ok {
				released(refs)
				break
			}
			pause(ctx)
		}
		held("")
		w.end()
	}
}

// tryRelease returns the upstreams that wait, if they may go on now.
func (b *Batch) tryRelease(ctx context.Context, w *Wait, held func(text string)) (refs []operator.Ref, ok bool) {
	counted := w.tally.Sum()
	if counted.left > 0 {
		return nil, false
	}
	c := counted
	c.Existing = w.countExisting()
	text, settled := w.countBatch(ctx, &c)
	if text == "" && settled {
		text = w.waitsFor(c)
	}
	if text != "" || settled { // else what was said last holds on
		held(text)
	}
	if text != "" || !settled {
		return nil, false
	}
	doubt := w.doubt()
	allows := func(now Sum) bool {
		more := difference(now.Count, counted.Count)
		more.Add(c.Count)
		return counted.Changed > 0 && w.exceedsIn(doubt, more) == "" // else the counts of others were not added
	}
	if refs, ok = b.release(counted, w.confirmed, allows); ok {
		w.board.end(ctx, w.how(counted))
	}
	return refs, ok
}
