package informers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/informers/kept"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// object returns a ConfigMap with an owner reference of an upstream with the uid "mine", or without.
func object(name, version string, mine bool) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": name, "namespace": "n", "uid": "of " + name, "resourceVersion": version}}}
	if mine {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "App", Name: "o", UID: "mine"}})
	}
	return u
}

// TestLeavesTheShardsAtOnce: an object that is no longer ours does not stay in the cache, though the cache is late.
func TestLeavesTheShardsAtOnce(t *testing.T) {
	t.Parallel()
	const n = 200
	for _, listed := range []bool{false, true} {
		t.Run(fmt.Sprintf("listed=%t", listed), func(t *testing.T) {
			t.Parallel()
			set, view := NewShardSet(shards.Ring{N: 1}, 0), &drift.View{}
			shared := &sharedWatch{}
			shared.filter = &shardFilter{set: set, keys: set.markedBy(view, ""), view: view, cached: shared.cached, notify: func() {}}
			events := watch.NewFakeWithChanSize(2*n+1, false)
			list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}}
			list.SetResourceVersion("1")
			for i := range n {
				name := fmt.Sprint("o", i)
				if listed {
					list.Items = append(list.Items, *object(name, "1", true))
				} else {
					events.Add(object(name, fmt.Sprint(2*i+10), true))
				}
				events.Modify(object(name, fmt.Sprint(2*i+11), false))
			}
			events.Add(object("last", fmt.Sprint(2*n+10), true))
			lw := &cache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					shared.filter.list(list, set.Shards(), true)
					return list, nil
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					held, changed := set.now()
					return shared.filterEvents(&filtered{from: events, asked: held}, changed, func() {}), nil
				},
			}
			shared.informer = cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, noWatchList{}),
				&unstructured.Unstructured{}, cache.SharedIndexInformerOptions{Indexers: indexers})
			must.Do(t, shared.informer.SetTransform(view.Transform()))
			go shared.informer.RunWithContext(t.Context())
			testkit.Eventually(t, testkit.Patience, func() (bool, string) {
				return shared.cached("n/last") != nil, "the last object does not come"
			})
			if stale := len((&subscription{shared: shared}).list()) - 1; stale > 0 {
				t.Errorf("%d of %d objects that are not ours any more are shown", stale, n)
			}
			if left := len(shared.filter.pending); left > 2*100 {
				t.Errorf("%d keys are kept of objects that the cache has, or will never have", left)
			}
		})
	}
}

// TestFilterForgets: objects that come and go before the cache has them leave nothing, and what is not ours is not
// touched.
func TestFilterForgets(t *testing.T) {
	t.Parallel()
	set, view := NewShardSet(shards.Ring{N: 1}, 0), &drift.View{}
	f := &shardFilter{set: set, keys: set.markedBy(view, ""), view: view, cached: func(string) any { return nil }}
	for i := range 1000 {
		for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			if _, ok := f.event(watch.Event{Type: kind, Object: object(fmt.Sprint(i), "1", true)}, nil, false); !ok {
				t.Fatalf("%s is not passed on", kind)
			}
		}
	}
	if len(f.pending) > 0 {
		t.Errorf("%d objects that are gone are remembered", len(f.pending))
	}
	theirs := object("theirs", "1", false)
	if _, ok := f.event(watch.Event{Type: watch.Modified, Object: theirs}, nil, false); ok {
		t.Error("an object that never was ours is passed on")
	}
	f.event(watch.Event{Type: watch.Added, Object: object("left", "1", true)}, nil, false)
	e, ok := f.event(watch.Event{Type: watch.Modified, Object: object("left", "2", false)}, nil, false)
	if left, is := e.Object.(*unstructured.Unstructured); !ok || !is || e.Type != watch.Deleted || len(left.GetOwnerReferences()) != 1 {
		t.Errorf("an object that leaves is %s: %v", e.Type, e.Object)
	}
}

// TestViewSeesWhatFilterMade: whatever the event, the view sees the owner marks that the filter left on an object.
func TestViewSeesWhatFilterMade(t *testing.T) {
	t.Parallel()
	view := &drift.View{OwnerAnnotation: "example.org/owner"}
	view.Previous.OwnerAnnotation = "example.org/owned-by"
	held, before := NewShardSet(shards.Ring{N: 1}, 0), object("a", "1", true)
	for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		for _, ours := range []bool{false, true} {
			for _, known := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s ours=%t known=%t", kind, ours, known), func(t *testing.T) {
					set := held
					if !ours {
						set = NewShardSet(shards.Ring{N: 1}) // it was dropped while the event came
					}
					f := &shardFilter{set: set, keys: set.markedBy(view, ""), view: view, cached: func(string) any { return nil }}
					if known {
						f.passesOn(before, false)
					}
					written := object("a", "2", true)
					written.SetOwnerReferences(nil)
					written.SetAnnotations(map[string]string{view.OwnerAnnotation: "n/b/other", view.Previous.OwnerAnnotation: "n/c/old"})
					live := view.Live(written)
					e, shown := f.event(watch.Event{Type: kind, Object: decodeWith(t, kept.ObjectCodec{}, textOf(t, written))}, nil, false)
					if shown {
						made := must.Get(view.Transform()(e.Object)).In(t)
						if own := made.(*drift.Live).OwnerMark == live.OwnerMark; own != ours {
							t.Errorf("the view sees the owner mark %q", made.(*drift.Live).OwnerMark)
						}
					}
				})
			}
		}
	}
}

// lateIndexer has an event handled right before it deletes an object.
type lateIndexer struct {
	cache.Indexer
	handle func()
}

// Delete implements cache.Store.
func (l lateIndexer) Delete(obj any) error {
	l.handle()
	return l.Indexer.Delete(obj)
}

type informerOf struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

// GetIndexer implements cache.SharedIndexInformer.
func (i informerOf) GetIndexer() cache.Indexer { return i.indexer }

// TestSweepKeepsWhatCameBack: an object that comes back while objects of dropped shards are taken out stays, whenever
// its event is handled.
func TestSweepKeepsWhatCameBack(t *testing.T) {
	t.Parallel()
	for _, listed := range []bool{false, true} {
		view, ring := &drift.View{}, shards.Ring{N: 1}
		plain := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
		late := lateIndexer{plain, sync.OnceFunc(func() {
			back := &drift.Live{Identity: drift.Identity{Name: "a", Namespace: "n", ResourceVersion: "2"}, Owners: []drift.OwnerRef{{UID: "mine"}}}
			if err := plain.Update(back); err != nil {
				t.Error(err)
			}
		})}
		shared := &sharedWatch{informer: informerOf{indexer: late}}
		shared.filter = &shardFilter{set: NewShardSet(ring, 0), view: view, cached: shared.cached}
		shared.filter.keys = shared.filter.set.markedBy(view, "")
		must.Do(t, plain.Add(&drift.Live{Identity: drift.Identity{Name: "a", Namespace: "n", ResourceVersion: "1"}}))
		shared.filter.event(watch.Event{Type: watch.Modified, Object: object("a", "2", true)}, nil, listed)
		shared.sweep()
		late.handle()
		if len((&subscription{shared: shared}).list()) != 1 {
			t.Errorf("listed=%t: an object of ours was taken out", listed)
		}
	}
}

// TestFilterShowsWhatLeft: whatever happens to objects, however late the cache is and wherever a list comes in between,
// an object is deleted from the shards if and only if it was in them, with the owner marks with which it was shown
// last, and upstreams only if they are gone. Once the cache has all, nothing else is remembered.
func TestFilterShowsWhatLeft(t *testing.T) {
	t.Parallel()
	for _, downstreams := range []bool{true, false} {
		for seed := range uint64(300) {
			filterOf(t, downstreams, seed)
		}
	}
}

func filterOf(t *testing.T, downstreams bool, seed uint64) {
	t.Helper()
	random, ring := rand.New(rand.NewPCG(seed, 7)), shards.Ring{N: 4}
	owners := []string{"u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7"}
	set := NewShardSet(ring, ring.Of("u0"), ring.Of("u1"))
	view := &drift.View{}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	shared := &sharedWatch{informer: informerOf{indexer: indexer}}
	f := &shardFilter{set: set, keys: uidOf, notify: func() {}, cached: shared.cached}
	if shared.filter = f; downstreams {
		f.keys, f.view = set.markedBy(view, ""), view
	}
	world, shown := map[string]*unstructured.Unstructured{}, map[string]*unstructured.Unstructured{}
	var late []func()
	version, missing, lost := 0, false, false // missing: events are missed until the next list
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("downstreams=%t, seed %d, version %d: %s", downstreams, seed, version, fmt.Sprintf(format, args...))
	}
	of := func(name, owner string) *unstructured.Unstructured {
		version++
		u := object(name, fmt.Sprint(version), false)
		if u.SetUID("of " + types.UID(name)); downstreams {
			u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "App", Name: owner, UID: types.UID(owner)}})
		} else {
			u.SetUID(types.UID(owner))
		}
		return u
	}
	show := func(e watch.Event) {
		if missing = missing || random.IntN(40) == 0; missing {
			return
		}
		name := e.Object.(*unstructured.Unstructured).GetName()
		was, had := shown[name], shown[name] != nil
		kept := f.cached("n/"+name) != nil // it may have left in a list that the cache does not have yet
		e, ok := f.event(e, nil, false)
		switch u, _ := e.Object.(*unstructured.Unstructured); {
		case !ok && had && f.has(world[name]):
			fail("%s stays as it was", name)
		case !ok && had && downstreams:
			fail("%s has left, and is still shown", name)
		case !ok:
		case e.Type == watch.Deleted && !had && !kept && !lost:
			fail("%s is deleted, and was never shown", name)
		case e.Type == watch.Deleted && !downstreams && world[name] != nil && world[name].GetUID() == u.GetUID():
			fail("%s is deleted, and exists", name)
		case e.Type == watch.Deleted:
			refs, exists := u.GetOwnerReferences(), world[name] != nil
			if downstreams && had && exists && len(refs) > 0 && !reflect.DeepEqual(refs, was.GetOwnerReferences()) {
				fail("%s was shown as one of %v, and leaves as one of %v", name, was.GetOwnerReferences(), refs)
			}
			delete(shown, name)
			late = append(late, func() { _ = indexer.Delete(u) })
		default:
			shown[name] = u
			late = append(late, func() { _ = indexer.Update(u) })
		}
	}
	for range 200 {
		name, owner := fmt.Sprint("o", random.IntN(4)), owners[random.IntN(len(owners))]
		switch before := world[name]; {
		case random.IntN(3) == 0 && len(late) > 0:
			late[0]()
			late = late[1:]
		case random.IntN(20) == 0:
			f.forgetArrived()
		case random.IntN(60) == 0:
			set.drop(ring.Of("u1"))
			shared.sweep()
			maps.DeleteFunc(shown, func(_ string, u *unstructured.Unstructured) bool { return !f.has(u) })
			lost = true
		case random.IntN(40) == 0: // a list; the cache gets it all at once, later
			missing = false
			list := &unstructured.UnstructuredList{}
			for _, u := range world {
				list.Items = append(list.Items, *u.DeepCopy())
			}
			all := list.Items
			list.Items = slices.Clone(all[:len(all)/2])
			f.list(list, nil, true)
			rest := &unstructured.UnstructuredList{Items: slices.Clone(all[len(all)/2:])}
			f.list(rest, nil, false)
			list.Items = append(list.Items, rest.Items...)
			clear(shown)
			var kept []any
			for i := range list.Items {
				shown[list.Items[i].GetName()] = &list.Items[i]
				kept = append(kept, &list.Items[i])
			}
			late = append(late, func() { _ = indexer.Replace(kept, "") })
		case before == nil:
			world[name] = of(name, owner)
			show(watch.Event{Type: watch.Added, Object: world[name].DeepCopy()})
		case random.IntN(4) == 0:
			gone := of(name, owner)
			gone.SetUID(before.GetUID())
			gone.SetOwnerReferences(before.GetOwnerReferences())
			delete(world, name)
			show(watch.Event{Type: watch.Deleted, Object: gone})
		default:
			if world[name] = of(name, owner); !downstreams {
				world[name].SetUID(before.GetUID())
			}
			show(watch.Event{Type: watch.Modified, Object: world[name].DeepCopy()})
		}
	}
	for _, handle := range late {
		handle()
	}
	if left := f.forgetArrived(); left > 0 && !missing {
		fail("%d objects are remembered", left)
	}
	shared.sweep()
	for name, u := range world {
		if missing {
			break
		}
		key := "n/" + name
		at, ok := f.cached(key).(*unstructured.Unstructured)
		if ok != f.has(u) || ok && at.GetResourceVersion() != u.GetResourceVersion() {
			fail("the cache has %v of %v", at, u)
		}
	}
	if left := f.forgetArrived(); left > 0 && !missing {
		fail("%d objects are remembered that were taken out", left)
	}
}

// TestClosedWatchHasNotFailed: a watch that is closed while it is interrupted, or reports that at this moment, does not
// count as failing.
func TestClosedWatchHasNotFailed(t *testing.T) {
	t.Parallel()
	for _, during := range []bool{false, true} {
		failing := map[Key]bool{}
		shared := &sharedWatch{users: map[*subscription]struct{}{}, stop: func() {},
			informer: cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, &drift.Live{}, cache.SharedIndexInformerOptions{})}
		s := &subscription{shared: shared, owner: &Factory{live: map[Key]*sharedWatch{}}}
		shared.users[s] = struct{}{}
		s.onResult = func(key Key, err error) {
			if during && err != nil {
				s.leave()
			}
			failing[key] = err != nil
		}
		if shared.notify(Key{}, ErrLost); !during {
			s.leave()
		}
		if failing[Key{}] {
			t.Errorf("during=%t: it counts as interrupted", during)
		}
	}
}

func decodeWith(t *testing.T, codec runtime.Decoder, text string) *unstructured.Unstructured {
	t.Helper()
	obj, _, err := codec.Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("decoded %T", obj)
	}
	return u
}

func textOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text := must.Get(json.Marshal(u.Object)).In(t)
	return string(text)
}
