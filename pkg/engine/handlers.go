package engine

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// Priorities: what a person or another controller just did goes before what a start or a resync lists. An upstream that
// waits for its time and is queued once more keeps the higher of the two.
const (
	priorityNow     = 0
	priorityAgain   = -25 // its time has come
	priorityReaders = -50 // of a changed input, which may be many
	priorityBulk    = -100
)

// afterDelete is AfterDelete where no other one is asked for.
const afterDelete = 300 * time.Millisecond

func (s *session) enqueue(priority int, refs ...pipeline.Ref) { s.enqueueAfter(0, priority, refs...) }

func (s *session) enqueueAfter(after time.Duration, priority int, refs ...pipeline.Ref) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, refs...)
}

// upstreamHandler queues the upstream itself.
func (s *session) upstreamHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			s.see(obj)
			if initial {
				s.enqueue(priorityBulk, refsOf(obj)...)
				return
			}
			s.enqueue(priorityNow, refsOf(obj)...)
		},
		UpdateFunc: func(_, after any) {
			p, ok := after.(*packed)
			if !ok {
				return
			}
			s.see(p)
			ref := pipeline.Ref{Namespace: p.Namespace, Name: p.Name}
			if !s.IsEcho(ref, p.UID, p.ResourceVersion) {
				s.enqueue(priorityNow, ref)
			}
		},
		DeleteFunc: func(obj any) {
			if s.Pipeline.Config.Watch.LabelSelector != nil { // it may exist without its labels
				s.left(obj)
			} else if p, ok := withoutTomb(obj).(*packed); ok {
				s.Gone(p.UID)
			}
			s.enqueue(priorityNow, refsOf(obj)...)
		},
	}
}

// downstreamHandler queues the upstreams that an object's marks name, before and after the change: who lost a mark
// must hear of it.
func (s *session) downstreamHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if live, ok := obj.(*drift.Live); ok {
				s.NoteOwner(nil, live)
			}
			if initial {
				s.enqueue(priorityBulk, s.OwnersOf(obj)...)
				return
			}
			s.news(obj, s.OwnersOf(obj))
		},
		UpdateFunc: func(before, after any) {
			if live, ok := after.(*drift.Live); ok {
				old, _ := before.(*drift.Live)
				s.NoteOwner(old, live)
			}
			owners := s.OwnersOf(after)
			for _, ref := range s.OwnersOf(before) {
				if !slices.Contains(owners, ref) {
					owners = append(owners, ref)
				}
			}
			s.news(after, owners)
		},
		DeleteFunc: func(obj any) {
			live, ok := withoutTomb(obj).(*drift.Live)
			if !ok {
				return
			}
			s.NoteGone(live.UID)
			for _, ref := range s.OwnersOf(live) {
				s.Drop(ref, live.UID)
				s.enqueueAfter(s.engine.options.AfterDelete, priorityNow, ref)
			}
		},
	}
}

// news queues the owners of a downstream, but for those whose own write it was.
func (s *session) news(obj any, owners []pipeline.Ref) {
	live, ok := obj.(*drift.Live)
	if !ok {
		return
	}
	for _, ref := range owners {
		if !s.IsEchoOf(ref, live) {
			s.enqueue(priorityNow, ref)
		}
	}
}

// namespaceHandler queues every upstream in a namespace that is selected now and was not, or the other way round. A new
// namespace may be heard of after what was made in it.
func (s *session) namespaceHandler() cache.ResourceEventHandler {
	matches := func(obj any) bool {
		ns, ok := obj.(*unstructured.Unstructured)
		return ok && s.NamespaceSelector.Matches(labels.Set(ns.GetLabels()))
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial && matches(obj) { // nobody works before the first lists are in
				s.enqueueNamespace(obj)
			}
		},
		UpdateFunc: func(before, after any) {
			if was, is := matches(before), matches(after); was != is {
				s.NamespaceLeft(was, refsOf(after)...)
				s.enqueueNamespace(after)
			}
		},
		DeleteFunc: func(obj any) { s.NamespaceLeft(false, refsOf(obj)...) },
	}
}

// enqueueNamespace queues the upstreams in a namespace, which are counted first: whoever labels namespaces may label many. It
// goes through all upstreams: that happens too seldom for an index, which every one of them would pay for.
func (s *session) enqueueNamespace(namespace any) {
	for _, name := range refsOf(namespace) {
		refs := slices.DeleteFunc(s.caches.upstreams.keys(), func(ref pipeline.Ref) bool { return ref.Namespace != name.Name })
		s.batch.join(refs)
		s.enqueue(priorityNow, refs...)
	}
}

// see takes in an upstream as a watch brings it.
func (s *session) see(obj any) {
	if p, ok := obj.(*packed); ok && len(p.Finalizers) > 0 {
		s.Deleting(p.UID, p.Finalizers)
	}
}

// withoutTomb is the object of an event, where it is about one whose end the watch has missed too.
func withoutTomb(obj any) any {
	if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tomb.Obj
	}
	return obj
}

func refsOf(obj any) []pipeline.Ref {
	o, ok := withoutTomb(obj).(metav1.Object)
	if !ok {
		return nil
	}
	return []pipeline.Ref{{Namespace: o.GetNamespace(), Name: o.GetName()}}
}
