package informers

import (
	"cmp"
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
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// ShardSet is some shards whose objects are loaded together: for each kind there is one watch for all of them. Shards can be
// dropped from it, but not added.
type ShardSet struct {
	ring shards.Ring

	mu      sync.RWMutex
	held    []int
	changed chan struct{} // closed, and replaced, when a shard is dropped
}

// NewShardSet makes a set of some shards of a ring.
func NewShardSet(ring shards.Ring, of ...int) *ShardSet {
	return &ShardSet{ring: ring, held: slices.Compact(slices.Sorted(slices.Values(of))), changed: make(chan struct{})}
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

// Drop takes a shard out of a set, and its objects out of the caches. Nobody is notified of that: no reconcile of the shard runs.
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
	// coming has the owner marks of objects that were passed on and that the cache may not have yet, by their key.
	coming map[string]ownerMarks
	// forgetAt is how many of them there are when those that it has are forgotten.
	forgetAt int
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

// list removes what belongs to other shards from a list of the shards asked for.
func (f *shardFilter) list(list *unstructured.UnstructuredList, asked []int) {
	if f == nil || list == nil {
		return
	}
	list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		if f.has(&u) {
			return false
		}
		f.noteForeign(&u, asked)
		return true
	})
}

// noteForeign counts an object that the API server should not have sent, since it belongs to none of the shards asked for.
func (f *shardFilter) noteForeign(obj runtime.Object, asked []int) {
	isAsked := func(uid string) bool { return slices.Contains(asked, f.set.ring.Of(uid)) }
	if f.byServer && !slices.ContainsFunc(f.keys(obj), isAsked) && f.foreign.Add(1) == 1 {
		f.notify()
	}
}

// passesOn notes an object that is passed on.
func (f *shardFilter) passesOn(obj runtime.Object) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.coming == nil {
		f.coming = map[string]ownerMarks{}
	}
	f.coming[key] = f.marksOf(obj)
}

// forgetArrived forgets objects that the cache has by now, once there are more than a few.
func (f *shardFilter) forgetArrived() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.coming) < f.forgetAt {
		return
	}
	maps.DeleteFunc(f.coming, func(key string, _ ownerMarks) bool { return f.cached(key) != nil })
	if len(f.coming) == 0 {
		f.coming = nil // a map that was large stays large
	}
	f.forgetAt = 2*len(f.coming) + 100
}

// passedOn returns the owner marks with which the cache has an object, or will have it, as far as it is known; ok is false if it will not.
// While it is being filled from a list, it may have any. What is coming is forgotten, since the end of the object follows.
func (f *shardFilter) passedOn(obj runtime.Object, filling bool) (marks ownerMarks, ok bool) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return marks, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if marks, ok = f.coming[key]; ok {
		delete(f.coming, key)
		return marks, true
	}
	known := f.cached(key)
	if live, isLive := known.(*drift.Live); isLive {
		marks.annotation = live.OwnerMark
		for _, o := range live.Owners {
			marks.references = append(marks.references, metav1.OwnerReference{Kind: o.Kind, Name: o.Name, UID: o.UID})
		}
	}
	return marks, known != nil || filling
}

// ownerMarks are those of a downstream.
type ownerMarks struct {
	references []metav1.OwnerReference
	annotation string
}

func (f *shardFilter) marksOf(obj runtime.Object) (m ownerMarks) {
	if u, ok := obj.(*unstructured.Unstructured); ok && f.view != nil {
		m.references = u.GetOwnerReferences()
		m.annotation = cmp.Or(u.GetAnnotations()[f.view.OwnerAnnotation], u.GetAnnotations()[f.view.Previous.OwnerAnnotation])
	}
	return m
}

// withMarks is an object with these owner marks in place of its own. It is a copy: a write of this process may have returned the object.
func (f *shardFilter) withMarks(obj runtime.Object, m ownerMarks) runtime.Object {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || f.view == nil {
		return obj
	}
	u = u.DeepCopy()
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

// event is what a watch of the shards asked for shows instead of an event; ok is false for nothing. An object that has left the shards
// is deleted from them, with the owner marks that it had: as where it loses the labels of a watch, the event is about its owners so far.
func (f *shardFilter) event(e watch.Event, asked []int, filling bool) (changed watch.Event, ok bool) {
	if e.Type == watch.Bookmark || e.Type == watch.Error {
		return e, true
	}
	if f.has(e.Object) {
		switch {
		case e.Type == watch.Deleted:
			f.passedOn(e.Object, filling)
		case !filling: // of all objects at once, the marks would take much memory
			f.passesOn(e.Object)
			f.forgetArrived()
		}
		return e, true
	}
	f.noteForeign(e.Object, asked)
	if e.Type == watch.Added {
		return e, false
	}
	marks, ok := f.passedOn(e.Object, filling)
	if ok {
		e.Type, e.Object = watch.Deleted, f.withMarks(e.Object, marks)
	}
	return e, ok
}

// narrowAfter is how long after a shard was dropped a watch goes on that brings its objects, which are ignored: several shards are
// often dropped one after the other.
const narrowAfter = 5 * time.Second

// filtered is a watch of some shards. It ends soon after there are fewer, so that it is opened again for those.
type filtered struct {
	from   watch.Interface
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

// filterEvents begins to pass on the events of a watch of the shards asked for. narrowed is called when it ends because there are fewer
// shards than at changed.
func (s *sharedWatch) filterEvents(from watch.Interface, asked []int, changed <-chan struct{}, narrowed func()) watch.Interface {
	w := &filtered{from: from, events: make(chan watch.Event), done: make(chan struct{})}
	go w.run(s, asked, changed, narrowed)
	return w
}

func (w *filtered) run(s *sharedWatch, asked []int, changed <-chan struct{}, narrowed func()) {
	defer close(w.events)
	defer w.from.Stop()
	listed, filling := time.After(narrowAfter), true
	var due <-chan time.Time
	for {
		select {
		case <-w.done:
			return
		case <-listed:
			s.sweep() // what a list brought while shards were dropped
			filling = false
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
			if e, ok = s.filter.event(e, asked, filling || !s.informer.HasSynced()); !ok {
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

// Stop implements watch.Interface.
func (w *filtered) Stop() { w.once.Do(func() { close(w.done) }) }

// ResultChan implements watch.Interface.
func (w *filtered) ResultChan() <-chan watch.Event { return w.events }

// cached is the object with a key in the cache; nil for none.
func (s *sharedWatch) cached(key string) any {
	obj, _, _ := s.informer.GetIndexer().GetByKey(key) // the only error is that of a store with other keys
	return obj
}

// sweep takes the objects of dropped shards out of the cache.
func (s *sharedWatch) sweep() {
	indexer := s.informer.GetIndexer() // an in-memory store gives no errors
	for _, obj := range indexer.List() {
		if o, ok := obj.(runtime.Object); ok && !s.filter.has(o) {
			if now, _, _ := indexer.Get(obj); now == obj { // else it has changed meanwhile, and may have come back
				_ = indexer.Delete(obj)
			}
		}
	}
}

// uidOf is the key of an upstream.
func uidOf(obj runtime.Object) []string {
	if o, ok := obj.(metav1.Object); ok {
		return []string{string(o.GetUID())}
	}
	return nil
}

// markedBy are the uids in the owner marks of objects of a view, as an API server sends them or as the cache has them. If a label has the
// shard of an object, those in other shards do not count: a watch of their shard does not show the object.
func (s *ShardSet) markedBy(view *drift.View, label string) func(obj runtime.Object) []string {
	return func(obj runtime.Object) []string {
		if live, ok := obj.(*drift.Live); ok { // it has the label: otherwise it would not be in the cache
			return ownersOf(live)
		}
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil
		}
		return slices.DeleteFunc(marksOf(u, view), func(uid string) bool {
			return label != "" && u.GetLabels()[label] != pipeline.ShardLabelValue(s.ring.Of(uid))
		})
	}
}

// marksOf are the uids in the owner marks of an object.
func marksOf(u *unstructured.Unstructured, view *drift.View) (uids []string) {
	for _, ref := range u.GetOwnerReferences() {
		uids = append(uids, string(ref.UID))
	}
	annotations := u.GetAnnotations()
	for _, key := range []string{view.OwnerAnnotation, view.Previous.OwnerAnnotation} {
		if _, uid, ok := pipeline.ParseOwnerMark(annotations[key]); ok && key != "" {
			return append(uids, uid)
		}
	}
	return uids
}

// withShards is a label selector for objects with the label of one of the shards.
func withShards(selector, label string, held []int) string {
	values := []string{"none"} // not a shard, and a list of values is never empty
	if len(held) > 0 {
		values = values[:0]
		for _, shard := range held {
			values = append(values, pipeline.ShardLabelValue(shard))
		}
	}
	in := label + " in (" + strings.Join(values, ",") + ")"
	if selector == "" {
		return in
	}
	return selector + "," + in
}
