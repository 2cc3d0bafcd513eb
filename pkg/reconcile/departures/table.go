package departures

import (
	"maps"
	"sync"
)

// table is a map that watches and workers use at once.
type table[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]V
}

func (t *table[K, V]) get(k K) (v V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok = t.of[k]
	return v, ok
}

// put sets the value of a key to what of makes of the one before, the zero value if there was none. It reports whether
// there was one.
func (t *table[K, V]) put(k K, of func(V) V) (had bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[K]V{}
	}
	was, had := t.of[k]
	t.of[k] = of(was)
	return had
}

// take removes a key, and returns its value.
func (t *table[K, V]) take(k K) (v V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok = t.of[k]
	delete(t.of, k)
	return v, ok
}

func (t *table[K, V]) remove(such func(K, V) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.of, such)
}

// clone returns a copy of the map.
func (t *table[K, V]) clone() map[K]V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.of)
}

// set is a table of keys.
type set[K comparable] struct{ table[K, struct{}] }

// add adds a key. It reports whether it was there.
func (s *set[K]) add(k K) (had bool) {
	return s.put(k, func(struct{}) struct{} { return struct{}{} })
}

func (s *set[K]) has(k K) bool {
	_, ok := s.get(k)
	return ok
}
