package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/corollary-dev/corollary/pkg/informers"
)

// workerPool are a session's workers. They begin by counting where there is a guard, rest until it is the session's turn to
// write, stand by as long as another process may, and then act.
type workerPool struct {
	workers sync.WaitGroup
	once    sync.Once
	// places has one for each worker, who takes it for one piece of work; the session takes all of them while the workers rest.
	places chan struct{}
	paused bool
	tally  *tally // what they have counted
	// standingBy is true while another process acts.
	standingBy atomic.Bool
}

// startWorkers starts the workers, once. They end with live, when what they hold is finished: the current piece of work is not cut
// off, so that what was applied is also recorded.
func (s *session) startWorkers(live context.Context) {
	s.pool.once.Do(func() {
		context.AfterFunc(live, s.shutDown)
		for range s.engine.options.Workers {
			s.pool.workers.Go(func() {
				for {
					ref, _, shutdown := s.queue.GetWithPriority()
					if shutdown {
						return
					}
					if !s.reconciler.Counting.Load() && !s.pool.standingBy.Load() { // which write nothing
						s.engine.options.MayWrite(live)
					}
					s.pool.places <- struct{}{}
					s.processItem(live, ref)
					<-s.pool.places
				}
			})
		}
	})
}

// stopWorkers waits until the workers have ended. The session's context is done.
func (s *session) stopWorkers() {
	s.shutDown()
	s.resumeWorkers()
	s.pool.workers.Wait()
}

// pauseWorkers waits until nobody works, and keeps them from it until wake.
func (s *session) pauseWorkers() {
	if !s.pool.paused {
		for range cap(s.pool.places) {
			s.pool.places <- struct{}{}
		}
		s.pool.paused = true
	}
}

func (s *session) resumeWorkers() {
	if s.pool.paused {
		s.pool.paused = false
		for range cap(s.pool.places) {
			<-s.pool.places
		}
	}
}

// beginCounting has the workers count, from the beginning. They rest, or have not begun.
func (s *session) beginCounting() {
	refs := s.cache.Everyone(s.reconciler)
	s.reconciler.UseBaselinesOf(s.operator.worker(s))
	s.pool.tally = newTally(refs)
	s.pool.standingBy.Store(false)
	s.reconciler.Counting.Store(true)
	s.resumeWorkers()
	s.Add(informers.PriorityBulk, 0, refs...)
}

// beginStandingBy has the workers let go of what needs no reconciliation any more: what would be kept for them would only grow.
func (s *session) beginStandingBy(live context.Context) {
	s.reconciler.Counting.Store(false)
	s.pool.standingBy.Store(true)
	s.resumeWorkers()
	s.startWorkers(live)
}

// beginActing has the workers act, upon all that was only counted or passed over too.
func (s *session) beginActing() {
	counted, passed := s.reconciler.Counting.Swap(false), s.pool.standingBy.Swap(false)
	if counted || passed {
		s.Add(informers.PriorityBulk, 0, s.cache.Everyone(s.reconciler)...)
	} else {
		s.Add(informers.PriorityBulk, 0, s.reconciler.Leaving()...) // no first list shows these
	}
	s.pool.tally = nil
	s.reconciler.UseBaselinesOf(nil)
	s.resumeWorkers()
}
