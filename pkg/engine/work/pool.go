package work

import (
	"context"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Pool are the workers of a session, in its mode.
type Pool struct {
	*Modes
	workers sync.WaitGroup
	once    sync.Once
}

// NewPool returns a pool that is paused, and has at most that many workers.
func NewPool(workers int) *Pool { return &Pool{Modes: newModes(workers)} }

// Go calls f beside the workers. Stop waits for it, too.
func (p *Pool) Go(f func()) { p.workers.Go(f) }

// Start has workers call do with what next returns, until that is false. A second call does nothing. A pool at rest has
// no worker, after workerIdle.
func (p *Pool) Start(next func() (ref operator.Ref, ok bool), do func(ref operator.Ref)) {
	p.once.Do(func() {
		p.workers.Go(func() {
			busy, following := make(chan struct{}, cap(p.slots)), make(chan operator.Ref)
			defer close(following)
			for {
				busy <- struct{}{}
				ref, ok := next()
				if !ok {
					return
				}
				select {
				case following <- ref:
				default:
					p.workers.Go(func() {
						workOff(ref, following, func(ref operator.Ref) {
							defer func() { <-busy }()
							do(ref)
						})
					})
				}
			}
		})
	})
}

// Enter waits until the workers are not paused. None of the others is until leave is called.
func (p *Pool) Enter() (leave func()) {
	p.slots <- struct{}{}
	return func() { <-p.slots }
}

// Stop waits until the workers have ended, and what Go has called. What Start calls returns false by now.
func (p *Pool) Stop() {
	p.Pass(Stopped, nil)
	p.workers.Wait()
}

// workerIdle is how long a worker waits for more work. A new one has to grow its stack again, which took a tenth of the
// CPU time of a burst.
const workerIdle = time.Second

// workOff calls do with an upstream, and then with those that come next, until none comes for a while.
func workOff(ref operator.Ref, next <-chan operator.Ref, do func(ref operator.Ref)) {
	idle := time.NewTimer(workerIdle)
	defer idle.Stop()
	for more := true; more; {
		do(ref)
		idle.Reset(workerIdle)
		select {
		case ref, more = <-next:
		case <-idle.C:
			more = false
		}
	}
}

// Pause waits for d or until ctx is done.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
