package memcluster

import (
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

// Delivery says when a watch delivers an event: once After has passed and Held, unless nil, is closed. The events of one watch
// stay in order, so a late one delays those that follow.
type Delivery struct {
	After time.Duration
	Held  <-chan struct{}
}

// change is a write. old is nil if it created the object, new is nil if it deleted it.
type change struct {
	version  uint64
	resource schema.GroupResource
	old, new *unstructured.Unstructured
}

// record adds a change to the history and notifies the watches.
func (c *Cluster) record(ch change) {
	c.history = append(c.history, ch)
	for s := range c.watches {
		c.notify(s, ch)
	}
}

// Compact drops the history: a watch or a list at an earlier resourceVersion gets 410 Expired from now on.
func (c *Cluster) Compact() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history, c.forgotten = nil, c.version
}

// stream is the body of the response to a watch: Read waits for the next event.
type stream struct {
	cluster   *Cluster
	selection *selection
	info      Watch // for WithDelivery
	slim      bool  // only metadata
	ctx       context.Context
	closed    chan struct{} // by end
	deadline  <-chan time.Time
	woken     chan struct{} // has room for one: something was queued

	// queued is guarded by the cluster's lock, rest belongs to the reader.
	queued []queued
	rest   []byte
}

type queued struct {
	line []byte
	due  time.Time
	held <-chan struct{}
}

// watch starts a watch.
func (c *Cluster) watch(call *call, s *selection, o *internalversion.ListOptions) (*stream, error) {
	version, err := c.parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &stream{cluster: c, selection: s, slim: metadataOnly(call.http), ctx: call.http.Context(),
		closed: make(chan struct{}), woken: make(chan struct{}, 1),
		info: Watch{GVR: s.resource.GVR, Namespace: s.namespace, Labels: s.labels, Fields: s.fields, UserAgent: call.http.UserAgent()}}
	if seconds := o.TimeoutSeconds; seconds != nil && *seconds > 0 {
		w.deadline = time.After(time.Duration(*seconds) * time.Second)
	}
	sendInitial := o.SendInitialEvents != nil && *o.SendInitialEvents
	switch {
	case version == 0 || sendInitial:
		objects, err := c.at(s, c.version)
		if err != nil {
			return nil, err
		}
		for _, u := range objects {
			c.queue(w, watch.Added, u)
		}
		if sendInitial && o.AllowWatchBookmarks {
			c.queue(w, watch.Bookmark, s.resource.bookmark(c.version))
		}
	case version < c.forgotten:
		status := statusOf(
			apierrors.NewResourceExpired("too old resource version: " + o.ResourceVersion + " (" + strconv.FormatUint(c.forgotten, 10) + ")"),
		)
		w.queued = []queued{{line: line(watch.Error, status)}}
		w.wake()
		return w, nil
	default:
		for _, ch := range c.history {
			if ch.version > version {
				c.notify(w, ch)
			}
		}
	}
	c.watches[w] = struct{}{}
	return w, nil
}

// bookmark marks the end of the initial events.
func (r *resource) bookmark(version uint64) *unstructured.Unstructured {
	u := blank(r.GVK)
	u.SetResourceVersion(strconv.FormatUint(version, 10))
	u.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return u
}

// notify queues the event for one watch: an object that is selected now is ADDED, one that is not selected any more DELETED.
func (c *Cluster) notify(w *stream, ch change) {
	if ch.resource != w.selection.resource.GVR.GroupResource() {
		return
	}
	before, after := w.selection.has(ch.old), w.selection.has(ch.new)
	kind, u := watch.Modified, ch.new
	switch {
	case !before && !after:
		return
	case !before:
		kind = watch.Added
	case !after:
		kind, u = watch.Deleted, ch.old.DeepCopy()
		u.SetResourceVersion(strconv.FormatUint(ch.version, 10))
	}
	u, err := w.selection.resource.view(u)
	if err != nil {
		w.queued = append(w.queued, queued{line: line(watch.Error, statusOf(err))})
		w.wake()
		return
	}
	c.queue(w, kind, u)
}

func (c *Cluster) queue(w *stream, kind watch.EventType, u *unstructured.Unstructured) {
	delivery := c.deliver(w.info, Event{Type: kind, Object: u})
	q := queued{held: delivery.Held}
	if delivery.After > 0 {
		q.due = time.Now().Add(delivery.After)
	}
	shape := any(u.Object)
	if w.slim {
		shape = metadataOf(u.Object)
	}
	q.line = line(kind, shape)
	w.queued = append(w.queued, q)
	w.wake()
}

func line(kind watch.EventType, object any) []byte {
	return append(encode(map[string]any{"type": kind, "object": object}), '\n')
}

func (w *stream) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func watchResponse(request *http.Request, w *stream) *http.Response {
	answer := response(request, http.StatusOK, asJSON, nil)
	answer.Body, answer.ContentLength = w, -1
	return answer
}

// Read implements io.Reader: it waits for the next event and for its delivery.
func (w *stream) Read(p []byte) (int, error) {
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
func (w *stream) wait(ready <-chan struct{}, at <-chan time.Time) error {
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

func (w *stream) next() (next queued, ok bool) {
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	if len(w.queued) == 0 {
		return queued{}, false
	}
	next, w.queued = w.queued[0], w.queued[1:]
	return next, true
}

// Close implements io.Closer. It may be called more than once.
func (w *stream) Close() error {
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	w.cluster.end(w)
	return nil
}

// end ends a watch. What is queued can still be read.
func (c *Cluster) end(w *stream) {
	if _, open := c.watches[w]; open {
		delete(c.watches, w)
		close(w.closed)
	}
}
