package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// workerPool are a session's workers.
type workerPool struct {
	*modes
	workers sync.WaitGroup
	once    sync.Once
	tally   atomic.Pointer[guard.Tally] // of what they count
}

// startWorkers has the queue worked off, from now on. That ends with live, after the reconciles that have begun: they are not cut
// off, so that what was applied is also recorded. An operator at rest has no worker, after workerIdle.
func (s *session) startWorkers(live context.Context) {
	s.pool.once.Do(func() {
		context.AfterFunc(live, s.shutDown)
		s.pool.workers.Go(func() {
			busy, next := make(chan struct{}, s.engine.options.Workers), make(chan operator.Ref)
			defer close(next)
			for {
				busy <- struct{}{}
				ref, ok := s.next()
				if !ok {
					return
				}
				select {
				case next <- ref:
				default:
					s.pool.workers.Go(func() { s.workOff(live, ref, next, func() { <-busy }) })
				}
			}
		})
	})
}

// workerIdle is how long a worker waits for more work. A new one has to grow its stack again, which took a tenth of the CPU time of a burst.
const workerIdle = time.Second

// workOff reconciles an upstream, and then those that come next, until none comes for a while. done is called after each.
func (s *session) workOff(live context.Context, ref operator.Ref, next <-chan operator.Ref, done func()) {
	idle := time.NewTimer(workerIdle)
	defer idle.Stop()
	for more := true; more; {
		func() {
			defer done()
			s.runWorker(live, ref)
		}()
		idle.Reset(workerIdle)
		select {
		case ref, more = <-next:
		case <-idle.C:
			more = false
		}
	}
}

// runWorker reconciles one upstream once the workers are not paused.
func (s *session) runWorker(live context.Context, ref operator.Ref) {
	if s.pool.is(acting) {
		s.engine.options.MayWrite(live)
	}
	s.pool.slots <- struct{}{}
	defer func() { <-s.pool.slots }()
	begun := time.Now()
	defer func() { s.turns.end(ref, time.Since(begun)) }()
	s.processItem(live, ref)
}

// stopWorkers waits until the workers have ended. The session's context is done.
func (s *session) stopWorkers() {
	s.shutDown()
	s.pool.pass(stopped, nil)
	s.pool.workers.Wait()
}

// beginCounting makes the workers count, from the start.
func (s *session) beginCounting() {
	var refs []operator.Ref
	s.pool.pass(guardCounts, func() {
		s.shards.takeLoaded(nil)
		refs = s.cache.Candidates(s.reconciler)
		s.reconciler.UseBaselinesOf(s.operator.activeReconciler(s))
		s.pool.tally.Store(guard.NewTally(refs))
	})
	s.Add(informers.PriorityBulk, 0, refs...)
}

// beginStandingBy makes the workers drop what needs no reconcile any more: the queue would only grow.
func (s *session) beginStandingBy(live context.Context) {
	s.pool.pass(mayNotAct, nil)
	s.startWorkers(live)
}

// startWith are the upstreams that a start reconciles: those in sync when they were counted are only counted in the metrics. The batch
// releases an upstream that waits in it when that is reconciled.
func (s *session) startWith(counted bool) []operator.Ref {
	refs := s.cache.Candidates(s.reconciler)
	if !counted {
		return refs
	}
	return slices.DeleteFunc(refs, func(ref operator.Ref) bool {
		uid := s.cache.UpstreamUID(ref) // "" if the watch does not show it
		inSync := !s.batch.Has(ref) && uid != "" && s.reconciler.IsInSync(ref, uid)
		if inSync {
			s.reconciler.CountInSync(ref)
		}
		return inSync
	})
}

// beginActing makes the workers act, also on all that was only counted or skipped.
func (s *session) beginActing() {
	s.pool.pass(mayAct, func() {
		loaded, _ := s.shards.takeLoaded(s.batch.Join) // guard has counted none of them
		if before := s.pool.before; before == counting || before == standby {
			s.Add(informers.PriorityBulk, 0, s.startWith(before == counting)...)
		} else {
			// No first list shows those that leave, and those of shards were passed over while these were loaded.
			s.Add(informers.PriorityBulk, 0, append(s.reconciler.Leaving(), loaded...)...)
		}
		s.pool.tally.Store(nil)
		s.reconciler.UseBaselinesOf(nil)
	})
}
