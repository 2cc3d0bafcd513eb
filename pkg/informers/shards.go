package informers

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// ShardSet is some shards whose objects are loaded together: for each kind there is one watch for all of them. Shards
// can be dropped from it, but not added.
type ShardSet struct {
	ring shards.Ring

	mu      sync.RWMutex
	held    []int
	changed chan struct{} // closed, and replaced, when a shard is dropped
}

// NewShardSet makes a set of some shards of a ring.
func NewShardSet(ring shards.Ring, held ...int) *ShardSet {
	return &ShardSet{ring: ring, held: slices.Compact(slices.Sorted(slices.Values(held))), changed: make(chan struct{})}
}

// Shards lists the shards of the set.
func (s *ShardSet) Shards() []int {
	held, _ := s.now()
	return held
}

// Has reports whether an upstream of that uid is in one of the shards.
func (s *ShardSet) Has(uid string) bool {
	shard := s.ring.Of(uid)
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := slices.BinarySearch(s.held, shard)
	return ok
}

// now are the shards, and what is closed when there are fewer.
func (s *ShardSet) now() ([]int, <-chan struct{}) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.held, s.changed
}

// drop takes a shard out; it returns false if the set does not have it.
func (s *ShardSet) drop(shard int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := slices.BinarySearch(s.held, shard)
	if ok {
		s.held = slices.Delete(slices.Clone(s.held), at, at+1)
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return ok
}

// Drop takes a shard out of a set, and its objects out of the caches. Nobody is notified of that: no reconcile of the
// shard runs.
func (w *Factory) Drop(set *ShardSet, shard int) {
	if !set.drop(shard) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, shared := range w.live {
		if key.Shards == set {
			shared.sweep()
		}
	}
}

// shardFilter passes on the objects of a set of shards; nil passes on all.
type shardFilter struct {
	set *ShardSet
	// keys are the uids of the upstreams that an object belongs to; none for an object that belongs to no shard.
	keys func(obj runtime.Object) []string
	// byServer is true if the API server is to select the upstreams by their uid.
	byServer bool
	// foreign counts the objects of other shards that the API server sent nevertheless.
	foreign atomic.Int64
	notify  func()

	// view is that of downstreams: their owner marks say whose they are. It is nil for upstreams.
	view *drift.View
	// cached is the object with a key in the cache, which may be late; nil for none.
	cached func(key string) any

	mu sync.Mutex
	// pending has what was passed on and the cache may not have yet, by its key.
	pending map[string]pendingObject
	// forgetAt is how many of them there are when those that have arrived are forgotten.
	forgetAt int
}

// pendingObject is an object on its way to the cache.
type pendingObject struct {
	version string
	marks   *ownerMarks // nil if it came in a list: of all objects at once, they take much memory
}

// has reports whether an object belongs to the shards.
func (f *shardFilter) has(obj runtime.Object) bool {
	return slices.ContainsFunc(f.keys(obj), f.set.Has)
}

// narrow adds the shards to the options of a list or watch, and returns them, and what is closed when there are fewer.
func (f *shardFilter) narrow(o *metav1.ListOptions, label string) (held []int, changed <-chan struct{}) {
	if f == nil {
		return nil, nil
	}
	held, changed = f.set.now()
	switch {
	case f.byServer && len(held) > 0:
		o.ShardSelector = f.set.ring.Selector(held)
	case label != "":
		o.LabelSelector = withShards(o.LabelSelector, label, held)
	}
	return held, changed
}

// list removes what belongs to other shards from a list of the shards asked for, or from a page of it.
func (f *shardFilter) list(list *unstructured.UnstructuredList, asked []int, first bool) {
	if f == nil || list == nil {
		return
	}
	if first {
		f.beginList()
	}
	list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		if f.has(&u) {
			f.passesOn(&u, true)
			return false
		}
		f.noteForeign(&u, asked)
		return true
	})
}

// beginList forgets what was on its way to the cache: a list of all follows it.
func (f *shardFilter) beginList() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending, f.forgetAt = nil, 0
}

// noteForeign counts an object that the API server should not have sent, since it belongs to none of the shards asked
// for.
func (f *shardFilter) noteForeign(obj runtime.Object, asked []int) {
	isAsked := func(uid string) bool { return slices.Contains(asked, f.set.ring.Of(uid)) }
	if f.byServer && !slices.ContainsFunc(f.keys(obj), isAsked) && f.foreign.Add(1) == 1 {
		f.notify()
	}
}

// passesOn notes an object that is passed on, as a part of a list or not.
func (f *shardFilter) passesOn(obj runtime.Object, listed bool) {
	key, version := keyAndVersion(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending == nil {
		f.pending = map[string]pendingObject{}
	}
	c := pendingObject{version: version}
	if !listed {
		marks := marksOf(obj, f.view)
		c.marks = &marks
	}
	if f.pending[key] = c; len(f.pending) >= f.forgetAt {
		f.forgetArrivedLocked()
	}
}

// forgetArrived forgets what the cache has by now, and returns how much is left.
func (f *shardFilter) forgetArrived() (left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetArrivedLocked()
	return len(f.pending)
}

func (f *shardFilter) forgetArrivedLocked() {
	maps.DeleteFunc(f.pending, func(key string, c pendingObject) bool {
		cached, ok := f.cached(key).(runtime.Object)
		return ok && !c.isLaterThan(cached)
	})
	if len(f.pending) == 0 {
		f.pending = nil // a map that was large stays large
	}
	f.forgetAt = 2*len(f.pending) + 100
}

// isLaterThan reports whether the cache, which has an object in that state, will have it in a later one.
func (c pendingObject) isLaterThan(cached runtime.Object) bool {
	_, version := keyAndVersion(cached)
	return memory.Newer(c.version, version)
}

func keyAndVersion(obj runtime.Object) (key, version string) {
	if o, ok := obj.(metav1.Object); ok {
		key, version = cache.MetaObjectToName(o).String(), o.GetResourceVersion()
	}
	return key, version
}

// passedOn returns the owner marks with which the cache has a downstream, or will have it; ok is false if it will not.
// The object is no longer pending, since its end follows. The marks of a listed object that the cache does not have yet
// are not known: the list queues its owners.
func (f *shardFilter) passedOn(obj runtime.Object) (marks ownerMarks, ok bool) {
	key, _ := keyAndVersion(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	c, comes := f.pending[key]
	delete(f.pending, key)
	if c.marks != nil {
		return *c.marks, true
	}
	known, ok := f.cached(key).(runtime.Object)
	if ok {
		marks = marksOf(known, f.view)
	}
	return marks, ok || comes
}

// withMarks gives an object these owner marks in place of its own. Only the watch that brought it has it.
func (f *shardFilter) withMarks(obj runtime.Object, m ownerMarks) runtime.Object {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj
	}
	u.SetOwnerReferences(m.references)
	annotations := u.GetAnnotations()
	delete(annotations, f.view.Previous.OwnerAnnotation)
	if delete(annotations, f.view.OwnerAnnotation); m.annotation != "" && f.view.OwnerAnnotation != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[f.view.OwnerAnnotation] = m.annotation
	}
	u.SetAnnotations(annotations)
	return u
}

// event is what a watch of the shards asked for shows instead of an event, which may be a part of a list; ok is false
// for nothing. A downstream that has left the shards is deleted from them, with the owner marks that it had: as if it
// had lost the labels of a watch, the event is about its owners so far. An upstream never leaves its shard.
func (f *shardFilter) event(e watch.Event, asked []int, listed bool) (changed watch.Event, ok bool) {
	switch {
	case e.Type == watch.Bookmark || e.Type == watch.Error:
		return e, true
	case f.has(e.Object):
		if e.Type == watch.Deleted {
			f.passedOn(e.Object)
		} else {
			f.passesOn(e.Object, listed)
		}
		return e, true
	}
	f.noteForeign(e.Object, asked)
	if e.Type == watch.Added || f.view == nil {
		return e, false
	}
	marks, ok := f.passedOn(e.Object)
	if ok {
		e.Type, e.Object = watch.Deleted, f.withMarks(e.Object, marks)
	}
	return e, ok
}

// narrowAfter is how long after a shard was dropped a watch goes on that brings its objects, which are ignored: several
// shards are often dropped one after the other.
const narrowAfter = 5 * time.Second

// filtered is a watch of some shards. It ends soon after there are fewer, so that it is opened again for those.
type filtered struct {
	from   watch.Interface
	asked  []int
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
	lists  bool // until the end of the list with which it begins
}

// filterEvents begins to pass on the events of a watch. changed is closed when there are fewer shards than it asked
// for; narrowed is called when it ends because of that.
func (s *sharedWatch) filterEvents(w *filtered, changed <-chan struct{}, narrowed func()) watch.Interface {
	w.events, w.done = make(chan watch.Event), make(chan struct{})
	if w.lists {
		s.filter.beginList()
	}
	go w.run(s, changed, narrowed)
	return w
}

func (w *filtered) run(s *sharedWatch, changed <-chan struct{}, narrowed func()) {
	defer close(w.events)
	defer w.from.Stop()
	listed, forget := time.After(narrowAfter), time.After(narrowAfter)
	var due <-chan time.Time
	for {
		select {
		case <-w.done:
			return
		case <-listed:
			s.sweep() // what a list brought while shards were dropped
		case <-forget:
			if s.filter.forgetArrived() > 0 {
				forget = time.After(narrowAfter)
			}
		case <-changed:
			_, changed = s.filter.set.now()
			due = time.After(narrowAfter)
		case <-due:
			s.sweep() // what was on its way when the shards were dropped
			narrowed()
			return
		case e, ok := <-w.from.ResultChan():
			if !ok {
				return
			}
			w.lists = w.lists && !endsList(e)
			if e, ok = s.filter.event(e, w.asked, w.lists); !ok {
				continue
			}
			select {
			case w.events <- e:
			case <-w.done:
				return
			}
		}
	}
}

// endsList reports whether an event is the end of the list with which a watch begins.
func endsList(e watch.Event) bool {
	mark, ok := e.Object.(metav1.Object)
	return ok && e.Type == watch.Bookmark && mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// Stop implements watch.Interface.
func (w *filtered) Stop() { w.once.Do(func() { close(w.done) }) }

// ResultChan implements watch.Interface.
func (w *filtered) ResultChan() <-chan watch.Event { return w.events }

// cached is the object with a key in the cache; nil for none.
func (s *sharedWatch) cached(key string) any {
	obj, _, _ := s.informer.GetIndexer().GetByKey(key) // the only error is that of a store with other keys
	return obj
}

// sweep takes the objects of dropped shards out of the cache, but for those that are about to come back: their events
// replace them.
func (s *sharedWatch) sweep() {
	for _, obj := range s.informer.GetIndexer().List() {
		if o, ok := obj.(runtime.Object); ok && !s.filter.has(o) {
			s.takeOut(o)
		}
	}
}

func (s *sharedWatch) takeOut(obj runtime.Object) {
	indexer := s.informer.GetIndexer() // an in-memory store gives no errors
	key, _ := keyAndVersion(obj)
	s.filter.mu.Lock() // what is passed on from now on comes later
	defer s.filter.mu.Unlock()
	c, comes := s.filter.pending[key]
	if now, _, _ := indexer.GetByKey(key); now == obj && (!comes || !c.isLaterThan(obj)) {
		_ = indexer.Delete(obj)
		delete(s.filter.pending, key)
	}
}

// uidOf is the key of an upstream.
func uidOf(obj runtime.Object) []string {
	if o, ok := obj.(metav1.Object); ok {
		return []string{string(o.GetUID())}
	}
	return nil
}

// markedBy are the uids in the owner marks of objects of a view, as an API server sends them or as the cache has them.
// If a label has the shard of an object, those in other shards do not count: a watch of their shard does not show the
// object.
func (s *ShardSet) markedBy(view *drift.View, label string) func(obj runtime.Object) []string {
	return func(obj runtime.Object) []string {
		if live, ok := obj.(*drift.Live); ok { // it has the label: otherwise it would not be in the cache
			return ownersOf(live)
		}
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil
		}
		return slices.DeleteFunc(marksOf(u, view).uids(), func(uid string) bool {
			return label != "" && u.GetLabels()[label] != marks.ShardLabelValue(s.ring.Of(uid))
		})
	}
}

// withShards is a label selector for objects with the label of one of the shards.
func withShards(selector, label string, held []int) string {
	values := []string{"none"} // not a shard, and a list of values is never empty
	if len(held) > 0 {
		values = values[:0]
		for _, shard := range held {
			values = append(values, marks.ShardLabelValue(shard))
		}
	}
	in := label + " in (" + strings.Join(values, ",") + ")"
	if selector == "" {
		return in
	}
	return selector + "," + in
}
