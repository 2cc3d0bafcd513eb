package skeleton

import (
	"container/list"
	"sync"
)

// Cache keeps parsed skeletons. If their weight exceeds a limit, the least recently used are removed. It is safe for
// concurrent use.
type Cache struct {
	mu      sync.Mutex
	limit   int
	size    int
	entries map[string]*list.Element
	order   *list.List // front: most recently used; values are *cached
}

type cached struct {
	text     string
	skeleton *Skeleton
}

// NewCache returns a cache with a limit in bytes.
func NewCache(limit int) *Cache {
	return &Cache{limit: limit, entries: map[string]*list.Element{}, order: list.New()}
}

// Get returns the skeleton of a text, nil if it is not kept.
func (c *Cache) Get(text []byte) *Skeleton {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[string(text)]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).skeleton
}

// Put stores a skeleton, unless it needs more than a quarter of the cache: it would replace skeletons that are used
// more often.
func (c *Cache) Put(text []byte, s *Skeleton) {
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
