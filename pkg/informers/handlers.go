package informers

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/informers/kept"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
	"github.com/corollary-dev/corollary/pkg/source"
)

// Priorities: what a person or another controller just did goes before what a start or a resync lists. An upstream that
// is queued twice keeps the higher one.
const (
	PriorityNow     = 0
	PriorityAgain   = -25 // its time has come
	PriorityReaders = -50 // of a changed input, which may be many
	PriorityBulk    = -100
)

// Queue is the queue of upstreams to reconcile.
type Queue interface {
	// Add queues upstreams, after a delay or at once.
	Add(priority int, after time.Duration, refs ...operator.Ref)
	// Join is called before Add with upstreams that one event concerns together: guard counts them.
	Join(refs []operator.Ref)
	// JoinRows is Join for the rows that a result of count rows lacks. A doubt is why they may exist nevertheless.
	JoinRows(count int, goneRows []operator.Ref, doubt source.Doubt)
	// NoteInputRows is called with how many rows a result of an input has.
	NoteInputRows(input string, count int)
}

// Feed receives the events of a cache's watches.
type Feed struct {
	Reconciler *reconcile.Reconciler
	Queue      Queue
	// AfterDelete is how long the owner of a deleted downstream waits: if the owner is gone, too, which another watch
	// shows, the downstream must not be created again.
	AfterDelete time.Duration
	// OnWatchResult is called with the result of every list and watch: nil for success.
	OnWatchResult func(Key, error)
}

// upstreams queues the upstream itself.
func (f Feed) upstreams() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			f.onUpstream(obj, f.Reconciler.Cascades.NoteFirst)
			if initial {
				f.Queue.Add(PriorityBulk, 0, refsOf(obj)...)
				return
			}
			f.Queue.Add(PriorityNow, 0, refsOf(obj)...)
		},
		UpdateFunc: func(_, after any) {
			p, ok := after.(*kept.Packed)
			if !ok {
				return
			}
			f.onUpstream(p, f.Reconciler.Cascades.Note)
			if !f.Reconciler.IsEcho(p.Ref(), p.UID, p.ResourceVersion) {
				f.Queue.Add(PriorityNow, 0, p.Ref())
			}
		},
		DeleteFunc: func(obj any) {
			// it may exist without its labels
			if p := f.Reconciler.Pipeline; p.Config.Watch.LabelSelector != nil || p.HasRows() {
				f.noteLeft(obj)
			} else if p, ok := unwrapTombstone(obj).(*kept.Packed); ok {
				f.Reconciler.Cascades.Forget(p.UID)
				f.noteLastState(obj)
			}
			f.Queue.Add(PriorityNow, 0, refsOf(obj)...)
		},
	}
}

// matching passes on the events of upstreams that meet watch.matchConditions. One that meets them no longer is as one
// that lost the label of the watch.
func (f Feed) matching(upstreams cache.ResourceEventHandler) cache.ResourceEventHandler {
	if !f.Reconciler.Pipeline.HasMatchConditions() {
		return upstreams
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if p, ok := obj.(*kept.Packed); !ok || f.isShown(p) {
				upstreams.OnAdd(obj, initial)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(*kept.Packed)
			packed, isPacked := after.(*kept.Packed)
			switch {
			case !ok || !isPacked || f.isShown(packed):
				upstreams.OnUpdate(before, after)
			case packed.MatchResult().Unmet != "" && old.MatchResult().Unmet == "":
				f.noteLeft(old)
				f.Queue.Add(PriorityNow, 0, old.Ref())
			case packed.MatchResult().Err != nil && old.MatchResult().Err == nil: // guard may hold what is not done any more
				f.Queue.Add(PriorityNow, 0, packed.Ref())
			}
		},
		DeleteFunc: func(obj any) {
			p, ok := unwrapTombstone(obj).(*kept.Packed)
			if !ok || p.MatchResult().Unmet == "" || f.Reconciler.Deselected.Some(p.Ref()) {
				upstreams.OnDelete(obj)
			}
		},
	}
}

// isShown reports whether an upstream is to be looked at: not if it does not meet the conditions. Where that is not
// known, only a deletion is carried out, and what it would lose is saved: of one that has nothing, no event costs a
// request.
func (f Feed) isShown(p *kept.Packed) bool {
	if p.MatchResult().Err != nil && len(p.Finalizers()) == 0 && (!decide.MayLose(f.Reconciler.Pipeline.Settings) ||
		!f.Reconciler.HasObjects(p.UID)) {
		f.Reconciler.NoteUnknown(p.Ref(), p.MatchResult().Err)
		return false
	}
	return p.MatchResult().Unmet == ""
}

// nextTurn is how long each further upstream that waits for the name of a deleted object waits after the one before it:
// usually the first one creates the object, whose event wakes the others.
const nextTurn = time.Second

// downstreams queues the upstreams in the owner marks of an object of downstream i, or BeforeIndex, before and after
// the change: whoever lost a mark must be reconciled, too. It also queues those that wait for this object of others.
func (f Feed) downstreams(i int) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if live, ok := obj.(*drift.Live); ok && !initial {
				f.enqueueConcerned(i, nil, live)
			} else if ok {
				f.Reconciler.NoteOwner(nil, live)
				f.Queue.Add(PriorityBulk, 0, marks.UpstreamsOf(f.Reconciler.Pipeline.Settings, live)...)
			}
		},
		UpdateFunc: func(before, after any) {
			if live, ok := after.(*drift.Live); ok {
				old, _ := before.(*drift.Live)
				f.enqueueConcerned(i, old, live)
			}
		},
		DeleteFunc: func(obj any) {
			live, ok := unwrapTombstone(obj).(*drift.Live)
			if !ok {
				return
			}
			f.Reconciler.NoteObjectGone(live.UID)
			for _, ref := range marks.UpstreamsOf(f.Reconciler.Pipeline.Settings, live) {
				f.Reconciler.NoteDownstreamGone(i, ref, live.UID)
				f.Queue.Add(PriorityNow, f.AfterDelete, ref)
			}
			for n, ref := range f.Reconciler.Awaiting(live) {
				f.Reconciler.NoteDownstreamGone(i, ref, live.UID)
				f.Queue.Add(PriorityNow, f.AfterDelete+time.Duration(n)*nextTurn, ref)
			}
		},
	}
}

// enqueueConcerned queues the owners of an object before and after a change, and the upstreams that wait for it, except
// for those whose own write the event is about, and those in sync if nothing of the object has changed that is kept,
// such as with a label of another manager.
func (f Feed) enqueueConcerned(i int, old, live *drift.Live) {
	f.Reconciler.NoteOwner(old, live)
	isSame := sync.OnceValue(func() bool { return old.EqualsExceptVersion(live) })
	var seen []operator.Ref
	s := f.Reconciler.Pipeline.Settings
	for _, ref := range slices.Concat(marks.UpstreamsOf(s, live), marks.UpstreamsOf(s, old), f.Reconciler.Awaiting(live)) {
		if slices.Contains(seen, ref) {
			continue
		}
		seen = append(seen, ref)
		if !f.Reconciler.IsEchoOf(i, ref, live) && (!f.Reconciler.IsUnaffected(ref) || !isSame()) {
			f.Queue.Add(PriorityNow, 0, ref)
		}
	}
}

// namespaces queues every upstream in a namespace that is selected now and was not, or the other way round. The event
// of a new namespace may come after those of the upstreams in it.
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
			if matched, matchesNow := matches(before), matches(after); matched != matchesNow {
				f.Reconciler.Deselected.Namespace(refsOf(after), matched)
				f.enqueueNamespace(c, after)
			}
		},
		DeleteFunc: func(obj any) { f.Reconciler.Deselected.Namespace(refsOf(obj), false) },
	}
}

// enqueueNamespace queues the upstreams in a namespace, which guard counts first: whoever labels namespaces may label
// many. It iterates over all upstreams: that happens too rarely for an index, which would cost memory for each of them.
func (f Feed) enqueueNamespace(c *Cache, namespace any) {
	for _, name := range refsOf(namespace) {
		refs := slices.DeleteFunc(c.Upstreams(), func(ref operator.Ref) bool { return ref.Namespace != name.Name })
		f.Queue.Join(refs)
		f.Queue.Add(PriorityNow, 0, refs...)
	}
}

// onUpstream notes what the deletion of an upstream that a watch shows asks for.
func (f Feed) onUpstream(obj any, note func(types.UID, []string)) {
	if p, ok := obj.(*kept.Packed); ok && len(p.Finalizers()) > 0 {
		note(p.UID, p.Finalizers())
	}
}

// unwrapTombstone is the object of an event, also if the watch has missed its deletion.
func unwrapTombstone(obj any) any {
	if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tomb.Obj
	}
	return obj
}

func refsOf(obj any) []operator.Ref {
	o, ok := unwrapTombstone(obj).(metav1.Object)
	if !ok {
		return nil
	}
	return []operator.Ref{{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// inputs queues the upstreams that read an input, behind what a person or another controller has just done to one of
// them: one input may have many readers. Guard counts them first: many inputs that each have one reader may change at
// once, such as all objects of a kind. Those that read a list are queued if the object was in it before the change, or
// is after it.
func (f Feed) inputs(i int) cache.ResourceEventHandler {
	wake := func(states ...any) {
		var seen []observe.Input
		for _, state := range states {
			if one, ok := unwrapTombstone(state).(*kept.Input); ok {
				seen = append(seen, one)
			}
		}
		refs := f.Reconciler.ReadersOf(i, seen)
		f.Queue.Join(refs)
		f.Queue.Add(PriorityReaders, 0, refs...)
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial { // nobody has read anything before the first lists are in
				wake(obj)
			}
		},
		UpdateFunc: func(before, after any) {
			b, ok := before.(*kept.Input)
			if a, isInput := after.(*kept.Input); ok && isInput && a.UID == b.UID && a.Digest() == b.Digest() {
				return
			}
			wake(before, after)
		},
		DeleteFunc: func(obj any) { wake(obj) },
	}
}

// noteLastState reports the last state of an upstream that was deleted without a deletionTimestamp.
func (f Feed) noteLastState(obj any) {
	p, ok := obj.(*kept.Packed) // not one whose deletion the watch has missed
	if !ok || !p.MatchResult().IsMet() || len(p.Finalizers()) > 0 ||
		f.Reconciler.Pipeline.Config.Conventions.Finalizer == "" {
		return
	}
	if last, err := p.Unpack(); err == nil {
		f.Reconciler.NoteDeletedWithFinalizer(last)
	}
}

// noteLeft reports that the watch no longer shows an upstream.
func (f Feed) noteLeft(obj any) {
	if p, ok := unwrapTombstone(obj).(*kept.Packed); ok {
		f.Reconciler.Deselected.Upstream(p.Ref(), p.UID)
	}
}
