package engine

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/source"
)

// batch are the changes that shared inputs and namespaces cause: all upstreams concerned are counted before any of them is
// changed beyond what guard allows. The zero value accepts no upstreams.
type batch struct {
	mu sync.Mutex
	// joined signals that upstreams have joined; nil before open.
	joined chan struct{}
	// tally counts the changes since the first one after batchWindow without any; nil for none.
	tally *tally
	// waiting has the upstreams that are held.
	waiting map[pipeline.Ref]struct{}
	// confirmed has the digests of changes that were confirmed within the last minute, and may still have to be carried out.
	confirmed map[pipeline.Ref]drift.Sum
	last      time.Time
	// cleared has, by row that is gone, the digest of what may be removed; nil if upstreams are not rows.
	cleared map[pipeline.Ref]drift.Sum
	// doubt is why rows that the last result lacks may exist nevertheless.
	doubt source.Doubt
}

// batchWindow is how long the changes of several inputs or namespaces count as one.
const batchWindow = time.Minute

// open makes the batch accept upstreams from now on, and forget everything.
func (b *batch) open(rows bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.joined == nil {
		b.joined = make(chan struct{}, 1)
	}
	if b.tally, b.waiting, b.confirmed, b.cleared = nil, nil, nil, nil; rows {
		b.cleared = map[pipeline.Ref]drift.Sum{}
	}
}

// noteConfirmed records a confirmation: confirmed changes do not count any more.
func (b *batch) noteConfirmed(confirmed map[pipeline.Ref]drift.Sum) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.confirmed, b.last = confirmed, time.Now()
}

// join has upstreams counted before they are reconciled, once the batch is open.
func (b *batch) join(refs []pipeline.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.joinLocked(refs)
}

// joinRows is join for the rows that a result lacks. Each result counts by itself.
func (b *batch) joinRows(gone []pipeline.Ref, doubt source.Doubt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if doubt.Lasting || !b.doubt.Lasting || len(b.waiting) == 0 {
		b.doubt = doubt
	}
	if len(gone) == 0 {
		return
	}
	if len(b.waiting) == 0 {
		b.tally = nil
	}
	for _, ref := range gone {
		delete(b.cleared, ref)
	}
	b.joinLocked(gone)
}

// doubtful is the doubt about the rows that wait; empty for none.
func (b *batch) doubtful() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.doubt.Why
}

func (b *batch) joinLocked(refs []pipeline.Ref) {
	if b.joined == nil {
		return
	}
	now := time.Now()
	if len(b.waiting) == 0 && now.Sub(b.last) > batchWindow {
		b.tally, b.confirmed = nil, nil
	}
	if b.tally == nil {
		b.tally, b.waiting = newTally(nil), map[pipeline.Ref]struct{}{}
	}
	b.last = now
	for _, ref := range refs {
		b.waiting[ref] = struct{}{}
	}
	b.tally.expect(refs)
	select {
	case b.joined <- struct{}{}:
	default:
	}
}

// has reports whether an upstream waits.
func (b *batch) has(ref pipeline.Ref) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.waiting[ref]
	return ok
}

// note records the count of an upstream that waits. One that is free, or whose very change was confirmed, waits no more.
func (b *batch) note(ref pipeline.Ref, c reconcile.Counted, free bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.waiting[ref]; !ok {
		return free
	}
	return b.noteLocked(ref, c, free)
}

// noteGone is note for a row that is gone. It waits unless the batch has released it, also if it has not joined.
func (b *batch) noteGone(ref pipeline.Ref, c reconcile.Counted) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sum, ok := b.cleared[ref]; b.joined == nil || c.Deleted == 0 || ok && sum == c.Digest {
		if _, waits := b.waiting[ref]; waits {
			b.tally.note(ref, reconcile.Counted{})
			b.waiting = without(b.waiting, ref)
		}
		if c.Deleted == 0 {
			delete(b.cleared, ref)
		}
		return true
	}
	if _, ok := b.waiting[ref]; !ok {
		b.joinLocked([]pipeline.Ref{ref})
	}
	return b.noteLocked(ref, c, false)
}

func (b *batch) noteLocked(ref pipeline.Ref, c reconcile.Counted, free bool) bool {
	if sum, ok := b.confirmed[ref]; ok && sum == c.Digest {
		c, free = reconcile.Counted{GuardCount: reconcile.GuardCount{Existing: c.Existing}}, true
	}
	b.tally.note(ref, c)
	if b.waiting[ref] = struct{}{}; free {
		b.waiting = without(b.waiting, ref)
	}
	return free
}

// release returns the upstreams that wait and lets them go on, unless what is counted now is not allowed, or is incomplete: upstreams may
// have joined meanwhile. What was counted is allowed; anything else only if allows says so, and not if counted was confirmed: while upstreams
// change all the time, the count is another one before others have published theirs. Confirmed changes do not count any more.
func (b *batch) release(counted sum, confirmed map[pipeline.Ref]drift.Sum, allows func(now sum) bool) (refs []pipeline.Ref, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tally == nil {
		return nil, false
	}
	now := b.tally.sum()
	if now.of != counted.of || now.left > 0 || now != counted && (confirmed != nil || !allows(now)) {
		return nil, false
	}
	refs = make([]pipeline.Ref, 0, len(b.waiting))
	for ref := range b.waiting {
		refs = append(refs, ref)
		if c := b.tally.of(ref); c.Deleted > 0 && b.cleared != nil {
			b.cleared[ref] = c.Digest
		}
	}
	b.waiting = map[pipeline.Ref]struct{}{}
	if confirmed != nil {
		b.tally.forget(confirmed)
		b.confirmed, b.last = confirmed, time.Now()
	}
	return refs, true
}

// drop removes upstreams that wait and that others count.
func (b *batch) drop(lost func(ref pipeline.Ref) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.waiting, func(ref pipeline.Ref, _ struct{}) bool { return lost(ref) })
	b.tally.drop(lost)
}

// current is the tally while any upstream waits; nil if none does.
func (b *batch) current() *tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return nil
	}
	return b.tally
}

// CountedByGuard implements reconcile.Host.
func (s *session) CountedByGuard(ref pipeline.Ref) bool { return s.batch.has(ref) }

// MayProceed implements reconcile.Host.
func (s *session) MayProceed(ref pipeline.Ref, c reconcile.Counted, free bool) bool {
	if s.pipeline.HasRows() && s.cache.UpstreamUID(ref) == "" {
		return s.batch.noteGone(ref, c)
	}
	return s.batch.note(ref, c, free)
}

// how is what has become of a batch that is released.
func (w *guardWait) how(counted sum) ended {
	switch {
	case w.confirmed != nil:
		return confirmed
	case counted.Changed == 0:
		return withdrawn
	}
	return allowed
}

// watchBatches lets upstreams that guard holds go on once they are counted and allowed, or confirmed, until live is done.
func (s *session) watchBatches(live context.Context) {
	guard := s.pipeline.Config.Guard
	for {
		select {
		case <-live.Done():
			return
		case <-s.batch.joined:
		}
		w := &guardWait{session: s, guard: guard, doubt: s.batch.doubtful, board: s.newCountBoard(batchCountKey)}
		for {
			if w.tally = s.batch.current(); w.tally == nil {
				w.board.end(live, withdrawn)
				w.reportNothing()
				break
			}
			if counted := w.tally.sum(); counted.left == 0 {
				c := counted
				c.Existing = w.countExisting()
				text, settled := w.countBatch(live, &c)
				if text == "" && settled {
					text = w.waitsFor(c)
				}
				if text != "" || settled { // else what was said last holds on
					s.generation.setHeld(text)
				}
				if text == "" && settled {
					doubt := w.doubt()
					allows := func(now sum) bool {
						more := difference(now.GuardCount, counted.GuardCount)
						more.Add(c.GuardCount)
						return counted.Changed > 0 && w.exceedsIn(doubt, more) == "" // else the counts of others were not added
					}
					if refs, ok := s.batch.release(counted, w.confirmed, allows); ok {
						s.Add(informers.PriorityReaders, 0, refs...)
						w.board.end(live, w.how(counted))
						break
					}
				}
			}
			if pause(live, syncPoll); live.Err() != nil {
				break
			}
		}
		s.generation.setHeld("")
		w.end()
	}
}
