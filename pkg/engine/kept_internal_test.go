package engine

import "fmt"

// Kept tells what an operator has in its queue and remembers of upstreams that it does not look at.
func (e *Engine) Kept(name string) (n int, text string) {
	o := e.byName(name)
	o.mu.Lock()
	s := o.current.session
	o.mu.Unlock()
	queued, leaving, cascades := s.queue.Len(), len(s.reconciler.Leaving()), s.reconciler.Cascades()
	return queued + leaving + cascades, fmt.Sprintf("%d are queued, %d remembered as leaving, of %d the deletion", queued, leaving, cascades)
}
