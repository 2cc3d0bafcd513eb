package shards

import "context"

// phase is where a shard of this process is.
type phase string

const (
	loading  phase = "loading"  // its objects are being loaded, and reconciled once
	active   phase = "held"     // they are, and its Lease says so or is about to
	draining phase = "draining" // no reconcile of it begins
	drained  phase = "drained"  // none runs: it can be given back
	lost     phase = "lost"     // another process may hold it
)

// held is a shard of this process.
type held struct {
	phase phase
	// group is how many shards were being loaded with it; recorded is true once its Lease says that it has been loaded.
	group    int
	recorded bool
	// give ends the context of Gained, and cut those of Within.
	give, cut context.CancelFunc
	writes    context.Context
}

// Ring implements Owned.
func (m *Member) Ring() Ring { return Ring{m.options.N} }

// Has implements Owned.
func (m *Member) Has(k int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[k]
	return h != nil && (h.phase == loading || h.phase == active)
}

// Quarantined implements Owned.
func (m *Member) Quarantined(k int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quarantined[k]
}

// Subscribe implements Owned.
func (m *Member) Subscribe(h Handler) { m.handler = h }

// Within implements Owned.
func (m *Member) Within(ctx context.Context, k int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[k]
	if h == nil || h.writes.Err() != nil {
		cancel()
		return ctx, cancel
	}
	stop := context.AfterFunc(h.writes, cancel)
	return ctx, func() { stop(); cancel() }
}

// gain begins to act for a shard whose Lease names this process.
func (m *Member) gain(ctx context.Context, k, group int) {
	gained, give := context.WithCancel(ctx)
	writes, cut := context.WithCancel(context.WithoutCancel(ctx)) // at the end of the process, what has begun is finished
	h := &held{phase: loading, group: group, give: give, cut: cut, writes: writes}
	m.mu.Lock()
	m.held[k] = h
	m.mu.Unlock()
	go func() {
		m.handler.Gained(gained, k)
		m.mu.Lock()
		if h.phase == loading && gained.Err() == nil {
			h.phase = active
		}
		m.mu.Unlock()
		m.rouse()
		<-gained.Done()
		m.lose(ctx, k, h)
	}()
}

// lose has the handler stop acting for a shard, after Gained has returned. At the end of the process the handler stops
// by itself.
func (m *Member) lose(ctx context.Context, k int, h *held) {
	if ctx.Err() != nil {
		return
	}
	m.handler.Lost(k)
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.phase == lost {
		h.cut()
		delete(m.held, k)
	} else {
		h.phase = drained
	}
	m.rouse()
}

// drainShard begins to give up a shard.
func (m *Member) drainShard(k int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.held[k]; h != nil && (h.phase == loading || h.phase == active) {
		h.phase = draining
		h.give()
	}
}

// loseShard stops acting for a shard that another process may hold.
func (m *Member) loseShard(k int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[k]
	if h == nil || h.phase == lost {
		return
	}
	before := h.phase
	h.phase = lost
	h.cut()
	h.give()
	if before == drained {
		delete(m.held, k)
	}
}

// given forgets a shard that has been given back.
func (m *Member) given(k int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.held[k]; h != nil {
		h.cut()
		delete(m.held, k)
	}
}
