package informers

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// Priorities: what a person or another controller just did goes before what a start or a resync lists. An upstream that
// waits for its time and is queued once more keeps the higher of the two.
const (
	PriorityNow     = 0
	PriorityAgain   = -25 // its time has come
	PriorityReaders = -50 // of a changed input, which may be many
	PriorityBulk    = -100
)

// Queue takes in the upstreams that events are about.
type Queue interface {
	// Add queues upstreams, after a time or at once.
	Add(priority int, after time.Duration, refs ...pipeline.Ref)
	// Join is called before Add with upstreams that one event concerns together: guard counts them.
	Join(refs []pipeline.Ref)
}

// Feed is where the events of a cache's watches go.
type Feed struct {
	Reconciler *reconcile.Reconciler
	Queue      Queue
	// AfterDelete is how long a deleted downstream waits: where it went with its upstream, which is another watch's news, it
	// must not be made once more.
	AfterDelete time.Duration
	// OnWatchResult is called with the result of every list and watch: nil for one that went well.
	OnWatchResult func(Key, error)
}

// upstreams queues the upstream itself.
func (f Feed) upstreams() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			f.onUpstream(obj)
			if initial {
				f.Queue.Add(PriorityBulk, 0, refsOf(obj)...)
				return
			}
			f.Queue.Add(PriorityNow, 0, refsOf(obj)...)
		},
		UpdateFunc: func(_, after any) {
			p, ok := after.(*packed)
			if !ok {
				return
			}
			f.onUpstream(p)
			ref := pipeline.Ref{Namespace: p.Namespace, Name: p.Name}
			if !f.Reconciler.IsEcho(ref, p.UID, p.ResourceVersion) {
				f.Queue.Add(PriorityNow, 0, ref)
			}
		},
		DeleteFunc: func(obj any) {
			if f.Reconciler.Pipeline.Config.Watch.LabelSelector != nil { // it may exist without its labels
				f.left(obj)
			} else if p, ok := unwrapTombstone(obj).(*packed); ok {
				f.Reconciler.NoteUpstreamGone(p.UID)
			}
			f.Queue.Add(PriorityNow, 0, refsOf(obj)...)
		},
	}
}

// downstreams queues the upstreams that an object's marks name, before and after the change: who lost a mark
// must hear of it.
func (f Feed) downstreams() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if live, ok := obj.(*drift.Live); ok {
				f.Reconciler.NoteOwner(nil, live)
			}
			if initial {
				f.Queue.Add(PriorityBulk, 0, f.Reconciler.OwnersOf(obj)...)
				return
			}
			f.news(obj, f.Reconciler.OwnersOf(obj))
		},
		UpdateFunc: func(before, after any) {
			if live, ok := after.(*drift.Live); ok {
				old, _ := before.(*drift.Live)
				f.Reconciler.NoteOwner(old, live)
			}
			owners := f.Reconciler.OwnersOf(after)
			for _, ref := range f.Reconciler.OwnersOf(before) {
				if !slices.Contains(owners, ref) {
					owners = append(owners, ref)
				}
			}
			f.news(after, owners)
		},
		DeleteFunc: func(obj any) {
			live, ok := unwrapTombstone(obj).(*drift.Live)
			if !ok {
				return
			}
			f.Reconciler.NoteObjectGone(live.UID)
			for _, ref := range f.Reconciler.OwnersOf(live) {
				f.Reconciler.NoteDownstreamGone(ref, live.UID)
				f.Queue.Add(PriorityNow, f.AfterDelete, ref)
			}
		},
	}
}

// news queues the owners of a downstream, but for those whose own write it was.
func (f Feed) news(obj any, owners []pipeline.Ref) {
	live, ok := obj.(*drift.Live)
	if !ok {
		return
	}
	for _, ref := range owners {
		if !f.Reconciler.IsEchoOf(ref, live) {
			f.Queue.Add(PriorityNow, 0, ref)
		}
	}
}

// namespaces queues every upstream in a namespace that is selected now and was not, or the other way round. A new
// namespace may be heard of after what was made in it.
func (f Feed) namespaces(c *Cache) cache.ResourceEventHandler {
	matches := func(obj any) bool {
		ns, ok := obj.(*unstructured.Unstructured)
		return ok && f.Reconciler.NamespaceSelector.Matches(labels.Set(ns.GetLabels()))
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial && matches(obj) { // nobody works before the first lists are in
				f.enqueueNamespace(c, obj)
			}
		},
		UpdateFunc: func(before, after any) {
			if was, is := matches(before), matches(after); was != is {
				f.Reconciler.NoteNamespaceLeft(was, refsOf(after)...)
				f.enqueueNamespace(c, after)
			}
		},
		DeleteFunc: func(obj any) { f.Reconciler.NoteNamespaceLeft(false, refsOf(obj)...) },
	}
}

// enqueueNamespace queues the upstreams in a namespace, which are counted first: whoever labels namespaces may label many. It
// goes through all upstreams: that happens too seldom for an index, which every one of them would pay for.
func (f Feed) enqueueNamespace(c *Cache, namespace any) {
	for _, name := range refsOf(namespace) {
		refs := slices.DeleteFunc(c.Upstreams(), func(ref pipeline.Ref) bool { return ref.Namespace != name.Name })
		f.Queue.Join(refs)
		f.Queue.Add(PriorityNow, 0, refs...)
	}
}

// onUpstream takes in an upstream as a watch brings it.
func (f Feed) onUpstream(obj any) {
	if p, ok := obj.(*packed); ok && len(p.Finalizers) > 0 {
		f.Reconciler.NoteDeleting(p.UID, p.Finalizers)
	}
}

// unwrapTombstone is the object of an event, where it is about one whose end the watch has missed too.
func unwrapTombstone(obj any) any {
	if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tomb.Obj
	}
	return obj
}

func refsOf(obj any) []pipeline.Ref {
	o, ok := unwrapTombstone(obj).(metav1.Object)
	if !ok {
		return nil
	}
	return []pipeline.Ref{{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// inputs queues the upstreams that read an input, behind what a person or another controller has just done to one
// of them: one input may have many readers. Then they are counted first; one is its author's business.
func (f Feed) inputs(i int) cache.ResourceEventHandler {
	wake := func(obj any) {
		refs := f.Reconciler.ReadersOf(i, refsOf(obj)...)
		if len(refs) > 1 {
			f.Queue.Join(refs)
		}
		f.Queue.Add(PriorityReaders, 0, refs...)
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial { // nobody has read anything before the first lists are in
				wake(obj)
			}
		},
		UpdateFunc: func(before, after any) {
			b, ok := before.(*input)
			if a, is := after.(*input); ok && is && a.UID == b.UID && a.digest == b.digest {
				return
			}
			wake(after)
		},
		DeleteFunc: wake,
	}
}

// left takes in that the watch no longer shows an upstream.
func (f Feed) left(obj any) {
	if p, ok := unwrapTombstone(obj).(*packed); ok {
		f.Reconciler.NoteLeft(pipeline.Ref{Namespace: p.Namespace, Name: p.Name}, p.UID)
	}
}
