package render

import (
	"container/list"
	"sync"
)

// cache keeps parsed skeletons. If their weight exceeds a limit, the least recently used are removed. It is safe for concurrent
// use.
type cache struct {
	mu      sync.Mutex
	limit   int
	size    int
	entries map[string]*list.Element
	order   *list.List // front: most recently used; values are *cached
}

type cached struct {
	text     string
	skeleton *skeleton
}

func newCache(limit int) *cache {
	return &cache{limit: limit, entries: map[string]*list.Element{}, order: list.New()}
}

func (c *cache) get(text []byte) *skeleton {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[string(text)]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).skeleton
}

// put stores a skeleton, unless it needs more than a quarter of the cache: it would replace skeletons that are used more often.
func (c *cache) put(text []byte, s *skeleton) {
	weight := len(text) + s.size
	if weight > c.limit/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[string(text)]; ok {
		return
	}
	entry := &cached{text: string(text), skeleton: s}
	c.entries[entry.text] = c.order.PushFront(entry)
	c.size += weight
	for c.size > c.limit {
		last := c.order.Back()
		old := c.order.Remove(last).(*cached)
		delete(c.entries, old.text)
		c.size -= len(old.text) + old.skeleton.size
	}
}
