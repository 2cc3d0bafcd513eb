package store

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
)

// Watch describes an open watch.
type Watch struct {
	GVR       schema.GroupVersionResource
	Namespace string // "" for all
	Labels    labels.Selector
	Fields    fields.Selector
	UserAgent string
}

// Event is an event of a watch. The object must not be changed.
type Event struct {
	Type   watch.EventType
	Object *unstructured.Unstructured
}

// Delivery says when a watch delivers an event: once After has passed and Held, unless nil, is closed. The events of
// one watch stay in order, so a late one delays those that follow.
type Delivery struct {
	After time.Duration
	Held  <-chan struct{}
}

// Stream is the body of the response to a watch: Read waits for the next event.
type Stream struct {
	store     *Store
	selection *Selection
	info      Watch                           // for WithDelivery
	form      func(object map[string]any) any // of the objects
	ctx       context.Context
	closed    chan struct{} // by end
	deadline  <-chan time.Time
	woken     chan struct{} // has room for one: something was queued

	// queued is guarded by the store's lock, rest belongs to the reader.
	queued []queued
	rest   []byte
}

type queued struct {
	line []byte
	due  time.Time
	held <-chan struct{}
}

// Watch starts a watch of what is selected. form makes of an object what is sent.
func (s *Store) Watch(
	ctx context.Context, selected *Selection, o *internalversion.ListOptions, userAgent string,
	form func(object map[string]any) any,
) (*Stream, error) {
	version, err := s.ParseVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &Stream{store: s, selection: selected, form: form, ctx: ctx,
		closed: make(chan struct{}), woken: make(chan struct{}, 1),
		info: Watch{GVR: selected.Resource.GVR, Namespace: selected.Namespace,
			Labels: selected.Labels, Fields: selected.Fields,
			UserAgent: userAgent}}
	if seconds := o.TimeoutSeconds; seconds != nil && *seconds > 0 {
		w.deadline = time.After(time.Duration(*seconds) * time.Second)
	}
	sendInitial := o.SendInitialEvents != nil && *o.SendInitialEvents
	switch {
	case version == 0 || sendInitial:
		objects, err := s.At(selected, s.Version)
		if err != nil {
			return nil, err
		}
		for _, u := range objects {
			s.queue(w, watch.Added, u)
		}
		if sendInitial && o.AllowWatchBookmarks {
			s.queue(w, watch.Bookmark, bookmark(selected.Resource, s.Version))
		}
	case version < s.forgotten:
		status := answers.StatusOf(
			apierrors.NewResourceExpired("too old resource version: " + o.ResourceVersion + " (" +
				strconv.FormatUint(s.forgotten, 10) + ")"),
		)
		w.queued = []queued{{line: line(watch.Error, status)}}
		w.wake()
		return w, nil
	default:
		for _, ch := range s.history {
			if ch.version > version {
				s.notify(w, ch)
			}
		}
	}
	s.watches[w] = struct{}{}
	return w, nil
}

// bookmark marks the end of the initial events.
func bookmark(r *resource.Resource, version uint64) *unstructured.Unstructured {
	u := resource.Blank(r.GVK)
	u.SetResourceVersion(strconv.FormatUint(version, 10))
	u.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return u
}

// notify queues the event for one watch: an object that is selected now is ADDED, one that is not selected any more
// DELETED.
func (s *Store) notify(w *Stream, ch change) {
	if ch.resource != w.selection.Resource.Stored() {
		return
	}
	before, err := w.selection.view(ch.old)
	after, failed := w.selection.view(ch.new)
	kind, u := watch.Modified, after
	switch {
	case err != nil || failed != nil:
		w.queued = append(w.queued, queued{line: line(watch.Error, answers.StatusOf(cmp.Or(failed, err)))})
		w.wake()
		return
	case before == nil && after == nil:
		return
	case before == nil:
		kind = watch.Added
	case after == nil:
		kind, u = watch.Deleted, before.DeepCopy()
		u.SetResourceVersion(strconv.FormatUint(ch.version, 10))
	}
	s.queue(w, kind, u)
}

func (s *Store) queue(w *Stream, kind watch.EventType, u *unstructured.Unstructured) {
	delivery := s.Deliver(w.info, Event{Type: kind, Object: u})
	q := queued{held: delivery.Held}
	if delivery.After > 0 {
		q.due = time.Now().Add(delivery.After)
	}
	q.line = line(kind, w.form(u.Object))
	w.queued = append(w.queued, q)
	w.wake()
}

func line(kind watch.EventType, object any) []byte {
	return append(answers.Encode(map[string]any{"type": kind, "object": object}), '\n')
}

func (w *Stream) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// WatchResponse is the response to a watch, whose body is the stream.
func WatchResponse(request *http.Request, w *Stream) *http.Response {
	answer := answers.Response(request, http.StatusOK, answers.AsJSON, nil)
	answer.Body, answer.ContentLength = w, -1
	return answer
}

// Read implements io.Reader: it waits for the next event and for its delivery.
func (w *Stream) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		next, ok := w.next()
		if !ok {
			if err := w.wait(w.woken, nil); err != nil {
				return 0, err
			}
			continue
		}
		if next.held != nil {
			if err := w.wait(next.held, nil); err != nil {
				return 0, err
			}
		}
		if left := time.Until(next.due); left > 0 {
			timer := time.NewTimer(left)
			err := w.wait(nil, timer.C)
			timer.Stop()
			if err != nil {
				return 0, err
			}
		}
		w.rest = next.line
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// wait returns when one of the channels is ready, or with an error after the watch has ended.
func (w *Stream) wait(ready <-chan struct{}, at <-chan time.Time) error {
	select {
	case <-ready:
		return nil
	case <-at:
		return nil
	case <-w.deadline:
		return io.EOF
	case <-w.closed:
		return io.EOF
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

func (w *Stream) next() (next queued, ok bool) {
	w.store.Lock()
	defer w.store.Unlock()
	if len(w.queued) == 0 {
		return queued{}, false
	}
	next, w.queued = w.queued[0], w.queued[1:]
	return next, true
}

// Close implements io.Closer. It may be called more than once.
func (w *Stream) Close() error {
	w.store.Lock()
	defer w.store.Unlock()
	w.store.end(w)
	return nil
}

// end ends a watch. What is queued can still be read.
func (s *Store) end(w *Stream) {
	if _, open := s.watches[w]; open {
		delete(s.watches, w)
		close(w.closed)
	}
}

// EndAll ends the watches of a resource.
func (s *Store) EndAll(gr schema.GroupResource) {
	for w := range s.watches {
		if w.selection.Resource.Stored() == gr {
			s.end(w)
		}
	}
}
