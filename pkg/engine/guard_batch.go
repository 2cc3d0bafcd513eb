package engine

import (
	"context"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// batch is what changes of shared inputs and of namespaces cause: the upstreams that they concern are counted before any of
// them is changed beyond what guard allows. Its zero value takes no upstream in.
type batch struct {
	mu sync.Mutex
	// joined holds a sign that upstreams have come in; nil before open.
	joined chan struct{}
	// tally counts the changes since the first one after a time of rest; nil where there was none.
	tally *tally
	// waiting has the upstreams that are not done, with the digest of their own content as it was counted; the zero digest
	// for one that is still to be counted.
	waiting map[pipeline.Ref]drift.Sum
	// confirmed has the digests of changes that were confirmed within the last minute, and may still have to be carried out.
	confirmed map[pipeline.Ref]drift.Sum
	last      time.Time
}

// batchWindow is how long the changes of several inputs or namespaces count as one.
const batchWindow = time.Minute

// open has the batch take upstreams in from now on, and forget what it knows.
func (b *batch) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.joined == nil {
		b.joined = make(chan struct{}, 1)
	}
	b.tally, b.waiting, b.confirmed = nil, nil, nil
}

// spend takes a confirmation in: what was confirmed does not count any more.
func (b *batch) spend(confirmed map[pipeline.Ref]drift.Sum) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.confirmed, b.last = confirmed, time.Now()
}

// join has upstreams counted before they are done, once the batch is open.
func (b *batch) join(refs []pipeline.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.joined == nil {
		return
	}
	now := time.Now()
	if len(b.waiting) == 0 && now.Sub(b.last) > batchWindow {
		b.tally, b.confirmed = nil, nil
	}
	if b.tally == nil {
		b.tally, b.waiting = newTally(nil), map[pipeline.Ref]drift.Sum{}
	}
	b.last = now
	for _, ref := range refs {
		b.waiting[ref] = drift.Sum{}
	}
	b.tally.expect(refs)
	select {
	case b.joined <- struct{}{}:
	default:
	}
}

// has tells whether an upstream waits, and the digest that it had when it was counted.
func (b *batch) has(ref pipeline.Ref) (own drift.Sum, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own, ok = b.waiting[ref]
	return own, ok
}

// note takes in what was counted of an upstream that waits. One that is free to go on waits no more; it is where that very
// change was confirmed.
func (b *batch) note(ref pipeline.Ref, c reconcile.Counted, own drift.Sum, free bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.waiting[ref]; !ok {
		return free
	}
	if sum, ok := b.confirmed[ref]; ok && sum == c.Digest {
		c, free = reconcile.Counted{GuardCount: reconcile.GuardCount{Standing: c.Standing}}, true
	}
	b.tally.note(ref, c)
	if b.waiting[ref] = own; free {
		delete(b.waiting, ref)
	}
	return free
}

// release lets everything go on and returns it. It does not where the count is no longer the one that guard allowed, or is
// not complete: upstreams may have joined meanwhile. What was confirmed does not count any more.
func (b *batch) release(allowed reconcile.GuardCount, confirmed map[pipeline.Ref]drift.Sum) (refs []pipeline.Ref, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, left := b.tally.sum(); left > 0 || c != allowed {
		return nil, false
	}
	refs = make([]pipeline.Ref, 0, len(b.waiting))
	for ref := range b.waiting {
		refs = append(refs, ref)
	}
	b.waiting = map[pipeline.Ref]drift.Sum{}
	if confirmed != nil {
		b.tally.forget(confirmed)
		b.confirmed, b.last = confirmed, time.Now()
	}
	return refs, true
}

// current is the tally while anything waits; nil where nothing does.
func (b *batch) current() *tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return nil
	}
	return b.tally
}

// Batched implements reconcile.Host.
func (s *session) Batched(ref pipeline.Ref) (drift.Sum, bool) { return s.batch.has(ref) }

// CountBatched implements reconcile.Host.
func (s *session) CountBatched(ref pipeline.Ref, c reconcile.Counted, own drift.Sum, free bool) bool {
	return s.batch.note(ref, c, own, free)
}

// watchBatches lets what guard held go on once it is counted and allowed, or confirmed, until live is done.
func (s *session) watchBatches(live context.Context) {
	guard := s.pipeline.Config.Guard
	for {
		select {
		case <-live.Done():
			return
		case <-s.batch.joined:
		}
		w := &guardWait{session: s, guard: guard}
		for {
			if w.tally = s.batch.current(); w.tally == nil {
				break
			}
			if counted, left := w.tally.sum(); left == 0 {
				c := counted
				c.Standing = s.cache.CountDownstreams()
				text := w.waitsFor(c)
				s.generation.holds(text)
				if text == "" {
					if refs, ok := s.batch.release(counted, w.spent); ok {
						s.Add(informers.PriorityReaders, 0, refs...)
						break
					}
				}
			}
			if pause(live, syncPoll); live.Err() != nil {
				break
			}
		}
		s.generation.holds("")
		w.end()
	}
}
