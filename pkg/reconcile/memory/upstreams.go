package memory

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Upstreams is the memory of the upstreams of one operator.
type Upstreams struct {
	mu sync.Mutex
	by map[operator.Ref]*Upstream
	// Removals outlive the memory of an upstream.
	Removals Removals
	// misses delay reads of upstreams that failed.
	misses map[operator.Ref]*Retry
}

// Missed returns the retry of an upstream that could not be read; Found drops it.
func (m *Upstreams) Missed(ref operator.Ref) *Retry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.misses == nil {
		m.misses = map[operator.Ref]*Retry{}
	}
	if m.misses[ref] == nil {
		m.misses[ref] = &Retry{}
	}
	return m.misses[ref]
}

// Found records that an upstream could be read.
func (m *Upstreams) Found(ref operator.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.misses, ref)
}

// Recall returns the memory of an upstream, which ref names. That of another uid is dropped.
func (m *Upstreams) Recall(ref operator.Ref, uid types.UID) *Upstream {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.by[ref]
	if u == nil || u.UID != uid {
		u = &Upstream{UID: uid}
		if m.by == nil {
			m.by = map[operator.Ref]*Upstream{}
		}
		m.by[ref] = u
	}
	return u
}

// Peek returns the memory of an upstream if there is any; else nil.
func (m *Upstreams) Peek(ref operator.Ref) *Upstream {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by[ref]
}

// PeekAt is Peek for the upstream of that uid.
func (m *Upstreams) PeekAt(ref operator.Ref, uid types.UID) *Upstream {
	if u := m.Peek(ref); u != nil && u.UID == uid {
		return u
	}
	return nil
}

// UIDs are the uids of the upstreams that it remembers.
func (m *Upstreams) UIDs() map[operator.Ref]types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	uids := make(map[operator.Ref]types.UID, len(m.by))
	for ref, u := range m.by {
		uids[ref] = u.UID
	}
	return uids
}

// Forget drops the memory of an upstream.
func (m *Upstreams) Forget(ref operator.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, ref)
}
