package informers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/informers/kept"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/source"
)

// Key identifies a watch: two with equal keys are one. Identity is whose permissions it uses; Namespace "" is all;
// Selector is a label selector, Fields a field selector; View identifies what the transform keeps. Shards are those
// whose objects it shows, nil for all; ShardLabel is the label that has the shard of an object, empty for none.
type Key struct {
	Identity   connections.Identity
	GVR        schema.GroupVersionResource
	Namespace  string
	Selector   string
	Fields     string
	View       string
	Shards     *ShardSet
	ShardLabel string
}

func (k Key) String() string {
	if k.Namespace == "" {
		return k.GVR.GroupResource().String()
	}
	return k.GVR.GroupResource().String() + " in namespace " + k.Namespace
}

// withoutShards is the key of a watch of all shards.
func (k Key) withoutShards() Key {
	k.Shards, k.ShardLabel = nil, ""
	return k
}

// Factory shares informers by Key and stops those without users.
type Factory struct {
	// Unconverted is asked before each list and watch; nil: nothing is converted.
	Unconverted Unconverted

	connections *connections.Connections
	indexers    cache.Indexers

	mu   sync.Mutex
	live map[Key]*sharedWatch
}

type sharedWatch struct {
	informer cache.SharedIndexInformer
	ctx      context.Context // what the informer runs under; stop ends it
	stop     context.CancelFunc
	run      sync.Once
	rows     *rowsWatch // nil for objects of an API server
	filter   *shardFilter
	returned kept.Returned // used by downstreams

	mu    sync.Mutex
	users map[*subscription]struct{}
	// failing is since when lists and watches fail; zero if the last one succeeded.
	failing time.Time
}

// subscription is one user's share of a watch.
type subscription struct {
	key      Key
	shared   *sharedWatch
	owner    *Factory
	handle   cache.ResourceEventHandlerRegistration
	onResult func(Key, error)
	onRows   func(count int, goneRows []operator.Ref, doubt source.Doubt) // nil for objects of an API server
	released sync.Once
	left     atomic.Bool
}

// NewFactory makes a factory for the clients of an API server.
func NewFactory(c *connections.Connections) *Factory {
	return &Factory{connections: c, indexers: indexers, live: map[Key]*sharedWatch{}}
}

// IndexByUpstream makes Cache.MarkedFor work. Call it before the first watch is opened.
func (w *Factory) IndexByUpstream() {
	w.indexers = maps.Clone(w.indexers)
	w.indexers[byUpstream] = upstreamsNamed
}

// subscribe joins the watch of key, and starts it if nobody has. onResult is called with the result of every list and
// watch, nil for success; after an error the informer retries.
func (w *Factory) subscribe(key Key, transform cache.TransformFunc, handler cache.ResourceEventHandler,
	heard func(Key, error)) (*subscription, error) {
	return w.subscribeTo(key, nil, transform, handler, heard)
}

// subscribeTo is subscribe to the objects that a filter passes on.
func (w *Factory) subscribeTo(key Key, filter *shardFilter, transform cache.TransformFunc,
	handler cache.ResourceEventHandler,
	heard func(Key, error)) (*subscription, error) {
	return w.join(&subscription{key: key, owner: w, onResult: heard}, handler, func(shared *sharedWatch) error {
		if filter != nil { // one for each watch
			shared.filter = &shardFilter{set: filter.set, keys: filter.keys, byServer: filter.byServer,
				view: filter.view, cached: shared.cached, notify: func() { shared.notify(key, ErrUnfiltered) }}
		}
		mine := w.connections.ClientsOf(key.Identity)
		client, example := mine.Objects, runtime.Object(&unstructured.Unstructured{})
		switch {
		case strings.HasPrefix(key.View, kept.PackedView):
			client, example = mine.Packed, &kept.Packed{}
		case strings.HasPrefix(key.View, downstreamView) && filter == nil: // a filter changes what it passes on
			var err error
			if client, err = w.connections.Watching(key.Identity, &shared.returned); err != nil {
				return err
			}
			example = nil // it is unstructured, or a *drift.Live
		}
		source := listWatch(w.resource(client, key), key, shared, func() { w.abandon(key, shared) })
		return w.prepare(key, shared, cache.ToListWatcherWithWatchListSemantics(source, client), example, transform)
	})
}

// join subscribes to the watch of a key, which prepare makes if nobody has subscribed yet.
func (w *Factory) join(
	s *subscription, handler cache.ResourceEventHandler, prepare func(*sharedWatch) error,
) (*subscription, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := s.key
	shared := w.live[key]
	if shared == nil {
		ctx, stop := context.WithCancel(context.Background())
		shared = &sharedWatch{ctx: ctx, stop: stop, users: map[*subscription]struct{}{}}
		if err := prepare(shared); err != nil {
			stop()
			return nil, err
		}
		w.live[key] = shared
	}
	s.shared = shared
	shared.mu.Lock()
	shared.users[s] = struct{}{}
	shared.mu.Unlock()
	var err error
	if s.handle, err = shared.informer.AddEventHandler(handler); err != nil {
		w.releaseLocked(s)
		return nil, fmt.Errorf("watching %s: %w", key.GVR.GroupResource(), err)
	}
	// The first handler is added before the informer runs, so that it misses nothing.
	shared.run.Do(func() { go shared.informer.RunWithContext(shared.ctx) })
	return s, nil
}

// prepare makes the informer of a shared watch.
func (w *Factory) prepare(
	key Key,
	shared *sharedWatch,
	from cache.ListerWatcher,
	example runtime.Object,
	transform cache.TransformFunc,
) error {
	shared.informer = cache.NewSharedIndexInformerWithOptions(from, example,
		cache.SharedIndexInformerOptions{Indexers: w.indexers, ObjectDescription: key.GVR.String()})
	err := errors.Join(
		shared.informer.SetTransform(transform),
		shared.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			shared.notify(key, err)
		}))
	if err != nil {
		return fmt.Errorf("watching %s: %w", key.GVR.GroupResource(), err)
	}
	return nil
}

// listWatch lists and watches what the key says, and notifies the users of every result. A watch that was interrupted
// goes on only if the cluster was not restored to an older state meanwhile: it would wait for a version that is yet to
// come, and show an outdated state until then.
func listWatch(
	resource dynamic.ResourceInterface, key Key, shared *sharedWatch, abandon func(),
) *cache.ListWatch {
	var ends time.Time // the watch that was opened last does not end by itself before
	failed := false
	var narrowed atomic.Bool // the watch was ended for fewer shards
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = key.Selector, key.Fields
			if o.ResourceVersion == "0" {
				// The API server may answer this from its watch cache, which may be older than what was acted on before.
				o.ResourceVersion = ""
			}
			asked, _ := shared.filter.narrow(&o, key.ShardLabel)
			list, err := resource.List(ctx, o)
			if err == nil {
				failed = false // the next watch goes on from this list
				shared.filter.list(list, asked, o.Continue == "")
				shared.notify(key, nil)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = key.Selector, key.Fields
			asked, changed := shared.filter.narrow(&o, key.ShardLabel)
			cut := !narrowed.Swap(false) && time.Now().Before(ends)
			if ends = (time.Time{}); cut {
				shared.notify(key, ErrCut)
			}
			if cut || failed {
				back, err := isSetBack(ctx, resource, o)
				if failed = true; err != nil {
					shared.notify(key, ErrLost)
					return nil, err
				}
				if back {
					abandon()
					shared.notify(key, ErrSetBack)
				}
			}
			begun := time.Now() // the API server's own time begins later
			events, err := resource.Watch(ctx, o)
			if failed = err != nil; failed {
				shared.notify(key, ErrLost)
				return nil, err
			}
			shared.notify(key, nil)
			if o.TimeoutSeconds != nil {
				ends = begun.Add(time.Duration(*o.TimeoutSeconds) * time.Second)
			}
			if shared.filter != nil {
				w := &filtered{from: events, asked: asked, lists: o.SendInitialEvents != nil && *o.SendInitialEvents}
				return shared.filterEvents(w, changed, func() { narrowed.Store(true) }), nil
			}
			return events, nil
		},
	}
}

var (
	// ErrLost is a watch that was interrupted; the informer says why, and retries.
	ErrLost = errors.New("watch interrupted")
	// ErrCut is a watch that ended before its timeout: the API server ends those of a kind whose definition has changed,
	// and all when it stops.
	ErrCut = errors.New("the watch ended early")
	// ErrUnfiltered is a watch of some shards in which the API server showed objects of others, too: it does not know
	// shardSelector.
	ErrUnfiltered = errors.New("the API server does not filter by shard")
	// ErrSetBack is a watch of a later version than the API server has.
	ErrSetBack = errors.New("the cluster was restored to an older state")
)

// isSetBack reports whether the API server's data are older than the version from which a watch is to go on.
func isSetBack(ctx context.Context, resource dynamic.ResourceInterface, o metav1.ListOptions) (bool, error) {
	if o.ResourceVersion == "" || o.ResourceVersion == "0" {
		return false, nil
	}
	list, err := resource.List(ctx, metav1.ListOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector,
		ShardSelector: o.ShardSelector, Limit: 1})
	if err != nil {
		return false, err
	}
	return memory.Newer(o.ResourceVersion, list.GetResourceVersion()), nil
}

// abandon makes later subscribers start a new watch. The users of the old one leave it, which stops it.
func (w *Factory) abandon(key Key, shared *sharedWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.live[key] == shared {
		delete(w.live, key)
	}
}

// Abandon makes later subscribers start a new watch of a kind whose definition has changed: objects that nobody has
// written since then would be shown as they were before.
func (w *Factory) Abandon(kind schema.GroupResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.live, func(key Key, _ *sharedWatch) bool { return key.GVR.GroupResource() == kind })
}

// notify calls every user with the result of a list or watch; nil is success.
func (s *sharedWatch) notify(key Key, err error) {
	s.mu.Lock()
	switch {
	case err == nil:
		s.failing = time.Time{}
	case s.failing.IsZero() && !errors.Is(err, ErrUnfiltered):
		s.failing = time.Now()
	}
	users := make([]*subscription, 0, len(s.users))
	for u := range s.users {
		users = append(users, u)
	}
	s.mu.Unlock()
	for _, u := range users {
		if u.onResult(key, err); err != nil && u.left.Load() {
			u.onResult(key, nil)
		}
	}
}

// leave is close for a watch whose user goes on without it: no failure of it is left, as if it had succeeded.
func (s *subscription) leave() {
	s.left.Store(true)
	s.close()
	s.onResult(s.key, nil)
}

// close leaves the watch; the last user stops it.
func (s *subscription) close() {
	s.released.Do(func() {
		s.owner.mu.Lock()
		defer s.owner.mu.Unlock()
		s.owner.releaseLocked(s)
	})
}

func (w *Factory) releaseLocked(s *subscription) {
	if s.handle != nil {
		// The only error is that the informer has stopped.
		_ = s.shared.informer.RemoveEventHandler(s.handle)
	}
	s.shared.mu.Lock()
	delete(s.shared.users, s)
	last := len(s.shared.users) == 0
	s.shared.mu.Unlock()
	if last {
		s.shared.stop()
		if w.live[s.key] == s.shared {
			delete(w.live, s.key)
		}
	}
}

func (s *subscription) synced() bool { return s.handle.HasSynced() }

func (s *subscription) indexer() cache.Indexer { return s.shared.informer.GetIndexer() }

// get returns the object with a key of the cache; nil for none.
func (s *subscription) get(key string) any {
	if obj, _, _ := s.indexer().GetByKey(key); obj != nil && s.holds(obj) { // an in-memory store gives no errors
		return obj
	}
	return nil
}

// list lists the objects, indexed those in an index under a value.
func (s *subscription) list() []any { return s.held(s.indexer().List()) }

func (s *subscription) indexed(index, value string) []any {
	objects, _ := s.indexer().ByIndex(index, value) // the only error is an index that does not exist
	return s.held(objects)
}

// held removes the objects of shards that were dropped.
func (s *subscription) held(objects []any) []any {
	if s.shared.filter == nil {
		return objects
	}
	return slices.DeleteFunc(objects, func(obj any) bool { return !s.holds(obj) })
}

// holds reports whether an object of the cache belongs to the shards: a list that was under way when one was dropped
// still brings it.
func (s *subscription) holds(obj any) bool {
	o, ok := obj.(runtime.Object)
	return s.shared.filter == nil || ok && s.shared.filter.has(o)
}

// fails reports whether the watch has no first list, and lists and watches have failed for that long.
func (s *subscription) fails(d time.Duration) bool {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return !s.shared.failing.IsZero() && time.Since(s.shared.failing) >= d && !s.synced()
}

// downstreamView begins the views of downstreams.
const downstreamView = "downstream "

// wholeView is the view of Namespaces, whose labels are read: everything but managedFields.
const wholeView = "whole"

// keepWhole is the transform of wholeView. It may change the object in place: nobody else has it yet.
func keepWhole(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
	}
	return obj, nil
}

// stores are the informers of one kind: one for all namespaces, or one for each; with shards, those for each set of
// them.
type stores map[part]*subscription

// part is what one informer of a kind shows: the objects of a namespace, "" for all, in some shards, nil for all.
type part struct {
	namespace string
	shards    *ShardSet
}

func (s stores) get(ref operator.Ref) any {
	key := ref.Name
	if ref.Namespace != "" {
		key = ref.Namespace + "/" + ref.Name
	}
	find := func(sub *subscription) any {
		if sub == nil {
			return nil
		}
		return sub.get(key)
	}
	if sub := s[part{}]; sub != nil {
		return find(sub)
	}
	if sub := s[part{namespace: ref.Namespace}]; sub != nil {
		return find(sub)
	}
	for at, sub := range s {
		if at.shards == nil || at.namespace != "" && at.namespace != ref.Namespace {
			continue
		}
		if obj := find(sub); obj != nil {
			return obj
		}
	}
	return nil
}

// of are the stores without those of other sets of shards.
func (s stores) of(set *ShardSet) stores {
	some := maps.Clone(s)
	maps.DeleteFunc(some, func(at part, _ *subscription) bool { return at.shards != set })
	return some
}

// indexed lists the live objects in an index under a value.
func (s stores) indexed(index, value string) []*drift.Live {
	var list []*drift.Live
	for _, sub := range s {
		for _, obj := range sub.indexed(index, value) {
			if live, ok := obj.(*drift.Live); ok {
				list = append(list, live)
			}
		}
	}
	return list
}

// unsynced lists the watches without their first list.
func (s stores) unsynced() []string {
	var waiting []string
	for _, sub := range s {
		if !sub.synced() {
			waiting = append(waiting, sub.key.String())
		}
	}
	return waiting
}

func (s stores) close() {
	for _, sub := range s {
		sub.close()
	}
}
