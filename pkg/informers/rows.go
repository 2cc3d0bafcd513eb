package informers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/informers/kept"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/source"
)

// rowsWatch shows the rows of a query as a watch shows objects: what differs from the result before are its events.
type rowsWatch struct {
	key    Key
	source *source.Source
	shared *sharedWatch
	// object makes an object of a row, of which keep keeps what is read.
	object func(name string, columns map[string]any) *unstructured.Unstructured
	keep   cache.TransformFunc
	// maxRows is how many rows there may be.
	maxRows int

	mu sync.Mutex
	// hasForeign is true once a result had rows of other shards.
	hasForeign bool
	// rows are those of the last result, by name; nil before the first.
	rows map[string]keptRow
	// doubt is why the last result does not prove that a row which it lacks is gone.
	doubt source.Doubt
	// doubted are the rows that were missing when doubt was lasting, until they are there again.
	doubted map[string]source.Doubt
}

// keptRow is what is kept of a row.
type keptRow interface {
	runtime.Object
	GetName() string
	GetResourceVersion() string
}

// doubtEmpty is the doubt about a result without rows.
var doubtEmpty = source.Doubt{Why: "the query returned no rows, which may be a mistake"}

// rowsView is the view of rows that are upstreams, inputRowsView that of rows that are an input.
const (
	rowsView      = "rows "
	inputRowsView = "input rows "
)

// IsRows reports whether a watch shows the rows of a query.
func (k Key) IsRows() bool {
	return strings.HasPrefix(k.View, rowsView) || strings.HasPrefix(k.View, inputRowsView)
}

// openRows reads the rows of the config's query.
func (w *watcher) openRows(filter *shardFilter) (*subscription, error) {
	p := w.pipeline
	key := w.rowsKey(rowsView, p.Name, p.Config.Source)
	if filter != nil {
		key.Shards = filter.set
	}
	s := &subscription{key: key, onResult: w.feed.OnWatchResult, onRows: w.feed.Queue.JoinRows}
	// The pipeline is that of the first user: what others read of it is equal.
	return w.joinRows(s, w.feed.upstreams(), w.sourceOptions("source", &p.Config.Source.Rows), p.Row,
		&kept.Packed{}, w.texts().Pack, filter)
}

// openInputRows reads the rows of an input's query.
func (w *watcher) openInputRows(i int, in *desired.InputSource) (*subscription, error) {
	s := &subscription{key: w.rowsKey(inputRowsView, in.Name, in.Config.SQL, in.View.ID()), onResult: w.feed.OnWatchResult}
	s.onRows = func(count int, _ []operator.Ref, _ source.Doubt) { w.feed.Queue.NoteInputRows(in.Name, count) }
	return w.joinRows(s, w.feed.inputs(i), w.sourceOptions(fmt.Sprintf("inputs[%d].sql", i),
		in.Config.SQL), in.Row, &kept.Input{},
		w.texts().KeepInput(in.View), nil)
}

// rowsKey identifies the rows of a query.
func (w *watcher) rowsKey(view string, parts ...any) Key {
	text, err := json.Marshal(parts)
	if err != nil {
		panic("writing a query as JSON: " + err.Error()) // its values came from JSON: cannot happen
	}
	return Key{Identity: w.as, GVR: desired.RowKind().GVR, View: view + string(text)}
}

func (w *watcher) joinRows(
	s *subscription, handler cache.ResourceEventHandler, o source.Options,
	object func(string, map[string]any) *unstructured.Unstructured, example runtime.Object, keep cache.TransformFunc,
	filter *shardFilter,
) (*subscription, error) {
	s.owner = w.factory
	return w.factory.join(s, handler, func(shared *sharedWatch) error {
		shared.filter = filter
		shared.rows = &rowsWatch{
			key:     s.key,
			source:  source.New(o),
			shared:  shared,
			object:  object,
			keep:    keep,
			doubted: map[string]source.Doubt{},
			maxRows: o.MaxRows,
		}
		return w.factory.prepare(s.key, shared, shared.rows.listWatch(), example, keep)
	})
}

// sourceOptions are those of a query, which is at a path of the config.
func (w *watcher) sourceOptions(at string, r *query.Rows) source.Options {
	o := source.Options{
		At:      at,
		Driver:  source.SQLite,
		Query:   r.Query,
		Key:     r.Key,
		Poll:    time.Duration(r.Changes.Poll),
		Timeout: time.Duration(r.Timeout),
		MaxRows: *r.MaxRows,
		Listen:  r.Changes.Listen,
		Cursor:  r.Changes.Cursor,
		Overlap: time.Duration(r.Changes.Overlap),
		Full:    time.Duration(r.Changes.Full),
	}
	if r.SQLite != nil {
		o.DSN = func(context.Context) (string, error) { return r.SQLite.Path, nil }
		return o
	}
	if o.Driver = source.Postgres; r.MySQL != nil {
		o.Driver = source.MySQL
	}
	server, _ := r.Server()
	objects := w.factory.connections.Objects(w.as)
	o.DSN = func(ctx context.Context) (string, error) { return ReadDSN(ctx, server.DSNFrom, objects) }
	return o
}

// ReadDSN reads a connection string. Its errors do not contain it.
func ReadDSN(ctx context.Context, from query.DSNFrom, objects dynamic.Interface) (string, error) {
	var text, where string
	switch {
	case from.Secret != nil:
		at := from.Secret
		where = fmt.Sprintf("key %s of Secret %s/%s", at.Key, at.Namespace, at.Name)
		u, err := objects.Resource(
			schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		).Namespace(
			at.Namespace,
		).Get(
			ctx,
			at.Name,
			metav1.GetOptions{},
		)
		if err != nil {
			return "", fmt.Errorf("reading %s: %s", where, apply.Classify(err).Message)
		}
		encoded, _, _ := unstructured.NestedString(u.Object, "data", at.Key)
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return "", fmt.Errorf("reading %s: it is not base64", where)
		}
		text = string(decoded)
	case from.File != "":
		where = "file " + from.File
		data, err := os.ReadFile(from.File)
		if err != nil {
			return "", err // which names only the file
		}
		text = string(data)
	default:
		where = "variable " + from.Env
		text = os.Getenv(from.Env)
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("%s, which the config names for a connection string, is missing or empty", where)
	}
	return text, nil
}

// rowList is a list of rows.
type rowList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []runtime.Object
}

// DeepCopyObject returns the list itself, which never changes.
func (l *rowList) DeepCopyObject() runtime.Object { return l }

// listWatch lists the rows of a first result and watches for those of the next ones.
func (w *rowsWatch) listWatch() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			rows, doubt, err := w.read(ctx)
			if err != nil {
				w.shared.notify(w.key, err)
				return nil, err
			}
			w.accept(rows, doubt)
			w.shared.notify(w.key, nil)
			list := &rowList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: make([]runtime.Object, 0, len(w.rows))}
			for _, name := range slices.Sorted(maps.Keys(w.rows)) { // the result may have only those that changed
				list.Items = append(list.Items, w.rows[name])
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			ctx, cancel := context.WithCancel(ctx)
			events := &rowEvents{stop: cancel, channel: make(chan watch.Event)}
			go w.follow(ctx, events)
			return events, nil
		},
	}, noWatchList{})
}

// noWatchList makes reflectors list before they watch.
type noWatchList struct{}

// IsWatchListSemanticsUnSupported implements what client-go asks for.
func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// rowEvents is a watch of rows.
type rowEvents struct {
	stop    context.CancelFunc
	channel chan watch.Event
}

// Stop ends the watch.
func (e *rowEvents) Stop() { e.stop() }

// ResultChan has the events.
func (e *rowEvents) ResultChan() <-chan watch.Event { return e.channel }

// retryRows are the delays after failed queries.
const (
	firstRowsRetry = time.Second
	maxRowsRetry   = time.Minute
)

// follow executes the query again and again, and sends what has changed, until ctx is done.
func (w *rowsWatch) follow(ctx context.Context, events *rowEvents) {
	defer close(events.channel)
	defer w.source.Close()
	retry := firstRowsRetry
	for w.source.Wait(ctx) == nil {
		rows, doubt, err := w.read(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.shared.notify(w.key, err)
			pauseFor(ctx, retry)
			retry = min(2*retry, maxRowsRetry)
			continue
		}
		retry = firstRowsRetry
		changes := w.accept(rows, doubt)
		w.shared.notify(w.key, nil)
		for _, event := range changes {
			select {
			case events.channel <- event:
			case <-ctx.Done():
				return
			}
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// read executes the query and returns the rows by name.
func (w *rowsWatch) read(ctx context.Context) (map[string]keptRow, source.Doubt, error) {
	rows := map[string]keptRow{}
	all := len(w.rows) // which only this goroutine changes
	doubt, err := w.source.Read(ctx, func(row source.Row) error {
		object := w.object(desired.RowName(row.Key), row.Columns)
		if w.shared.filter != nil && !w.shared.filter.has(object) {
			w.hasForeign = true
			return nil
		}
		made, err := w.keep(object)
		if kept, ok := made.(keptRow); ok {
			rows[kept.GetName()] = kept
			if w.rows[kept.GetName()] == nil {
				all++
			}
		}
		if w.source.Partial() && all > w.maxRows {
			return fmt.Errorf("there are more than %d rows", w.maxRows) // then all are read, which says what to do
		}
		return err
	})
	if err != nil {
		return nil, source.Doubt{}, &SourceError{err}
	}
	return rows, doubt, nil
}

// SourceError is why rows could not be read. Those of the last result stay.
type SourceError struct{ cause error }

func (e *SourceError) Error() string { return e.cause.Error() }

func (e *SourceError) Unwrap() error { return e.cause }

// accept makes a result the last one, and returns what has changed. Before any event, users learn which rows are gone.
func (w *rowsWatch) accept(rows map[string]keptRow, doubt source.Doubt) (events []watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.shared.filter; f != nil { // rows of dropped shards are not gone
		w.rows = maps.Clone(w.rows)
		maps.DeleteFunc(w.rows, func(_ string, row keptRow) bool { return !f.has(row) })
	}
	before := w.rows
	if w.source.Partial() {
		rows, doubt = w.merged(rows), w.doubt
	}
	w.rows, w.doubt = rows, doubt
	if len(rows) == 0 && !doubt.Lasting && !w.hasForeign {
		w.doubt = doubtEmpty
	}
	var goneRows []operator.Ref
	for name, row := range before {
		if rows[name] == nil {
			goneRows = append(goneRows, operator.Ref{Name: name})
			if doubt.Lasting {
				w.doubted[name] = doubt
			}
			events = append(events, watch.Event{Type: watch.Deleted, Object: row})
		}
	}
	for name, row := range rows {
		delete(w.doubted, name)
		switch known := before[name]; {
		case known == nil:
			events = append(events, watch.Event{Type: watch.Added, Object: row})
		case known.GetResourceVersion() != row.GetResourceVersion():
			events = append(events, watch.Event{Type: watch.Modified, Object: row})
		default:
			rows[name] = known // of which the informer has the same copy
		}
	}
	w.shared.notifyRows(len(rows), goneRows, w.doubt)
	return events
}

// merged are the rows of the last result with those that may have changed.
func (w *rowsWatch) merged(changed map[string]keptRow) map[string]keptRow {
	all := maps.Clone(w.rows)
	maps.Copy(all, changed)
	return all
}

// notifyRows notifies every user of a result: how many rows it has, which are gone, and whether that is in doubt.
func (s *sharedWatch) notifyRows(count int, goneRows []operator.Ref, doubt source.Doubt) {
	s.mu.Lock()
	users := slices.Collect(maps.Keys(s.users))
	s.mu.Unlock()
	for _, u := range users {
		u.onRows(count, goneRows, doubt)
	}
}

// GoneRows lists the rows that the query does not return although objects have their marks, and the doubt about that.
func (c *Cache) GoneRows(candidates []operator.Ref) (goneRows []operator.Ref, doubt source.Doubt) {
	if !c.pipeline.HasRows() {
		return nil, source.Doubt{}
	}
	for _, ref := range candidates {
		if c.upstream(ref) == nil {
			goneRows = append(goneRows, ref)
		}
	}
	for _, sub := range c.now().upstreams {
		if d := sub.shared.rows.doubtOf(goneRows); d.Lasting || !doubt.Lasting && d != (source.Doubt{}) {
			doubt = d
		}
	}
	return goneRows, doubt
}

// doubtOf is the doubt about rows that the last result lacks.
func (w *rowsWatch) doubtOf(goneRows []operator.Ref) source.Doubt {
	w.mu.Lock()
	defer w.mu.Unlock()
	doubt := w.doubt
	for _, ref := range goneRows {
		if lasting, ok := w.doubted[ref.Name]; ok {
			doubt = lasting
		}
	}
	return doubt
}
