// Package writeback writes the states of rows to their database. It never makes a reconciliation wait.
package writeback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/leadership"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/source"
	"github.com/corollary-dev/corollary/pkg/sqltext"
)

// Options are whose rows a Writer is for, and when it may write.
type Options struct {
	Operator string
	Source   *query.Source
	Retry    config.Retry
	// Objects read the connection string.
	Objects dynamic.Interface
	// Enter returns a context for the write of a row, until leave is called; ok is false if the row is another process's.
	Enter func(ctx context.Context, ref operator.Ref) (acting context.Context, leave func(), ok bool)
	// Tenures are those during which this process may write; nil ones do not count.
	Tenures []*leadership.Tenure
	// Show is called with why states cannot be written; empty once they can.
	Show func(failure string)
	Log  logr.Logger
}

// Writer writes the states of rows by source.writeBack, one after the other, while this process may write. A nil one
// does nothing.
type Writer struct {
	Options
	writer *source.Writer
	// of identifies the statement and the database.
	of string

	mu     sync.Mutex
	states map[operator.Ref]*rowState
	// queue has the rows to write; nil while nothing may be written.
	queue workqueue.TypedDelayingInterface[operator.Ref]
	// failing is the row whose failure is shown; zero for none.
	failing operator.Ref
}

// rowState is what is known of the state of one row.
type rowState struct {
	key           any
	want, written report.RowState
	// desired and writtenDesired are digests of what is desired of the row now, and when it was last written.
	desired, writtenDesired canonical.Sum
	at                      time.Time // of the last write
	spacing                 time.Duration
	retry                   time.Duration // after the last failure; 0 for none
	failure                 string
}

// A row is written at most once in minSpacing. If what is desired of it changes between two writes within
// spacingWindow, the time to the next one doubles, up to maxSpacing: a write may change the row that it is about, and
// so what follows from it, without end.
const (
	minSpacing    = time.Second
	maxSpacing    = time.Minute
	spacingWindow = 10 * time.Minute
)

// New returns what writes back the states of rows; nil if the config does not.
func New(o Options) *Writer {
	src := o.Source
	if src == nil || src.WriteBack == "" {
		return nil
	}
	statement, err := sqltext.Parse(src.WriteBack)
	if err != nil { // cannot happen: it was checked
		panic("reading source.writeBack: " + err.Error())
	}
	to := source.WriterOptions{Statement: statement, Timeout: time.Duration(src.Timeout)}
	if src.SQLite != nil {
		to.Driver, to.DSN = source.SQLiteWriter, func(context.Context) (string, error) { return src.SQLite.Path, nil }
	} else {
		server, _ := src.Server()
		from := server.DSNFrom
		if src.WriteDSNFrom != nil {
			from = *src.WriteDSNFrom
		}
		to.DSN = func(ctx context.Context) (string, error) { return informers.ReadDSN(ctx, from, o.Objects) }
		if to.Driver = source.PostgresWriter; src.MySQL != nil {
			to.Driver = source.MySQLWriter
		}
	}
	return &Writer{Options: o, writer: source.NewWriter(to), of: identityOf(src), states: map[operator.Ref]*rowState{}}
}

// identityOf is the same for configs that write the same states to the same place.
func identityOf(src *query.Source) string {
	text, err := json.Marshal([]any{src.WriteBack, src.WriteDSNFrom, src.Query, src.SQLite, src.Postgres, src.MySQL})
	if err != nil {
		panic("writing a source as JSON: " + err.Error()) // its values came from JSON: cannot happen
	}
	return string(text)
}

// Inherit takes over what another session has written by the same statement.
func (w *Writer) Inherit(from *Writer) {
	if w == nil || from == nil || w.of != from.of {
		return
	}
	from.mu.Lock()
	states := maps.Clone(from.states)
	from.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states = states
}

// Report implements reconcile.RowStates.
func (w *Writer) Report(ref operator.Ref, key any, state report.RowState, desired canonical.Sum) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.states[ref]
	if r == nil {
		r = &rowState{spacing: minSpacing}
		w.states[ref] = r
	}
	r.key, r.want, r.desired = key, state, desired
	if r.want == r.written {
		w.recovered(ref, r)
		return
	}
	w.enqueue(ref, r)
}

// enqueue lets a row be written when its time has come. mu is held.
func (w *Writer) enqueue(ref operator.Ref, r *rowState) {
	if w.queue == nil || r.retry > 0 {
		return
	}
	spacing := minSpacing
	if r.desired != r.writtenDesired {
		spacing = r.spacing
	}
	w.queue.AddAfter(ref, time.Until(r.at.Add(spacing)))
}

// Forget implements reconcile.RowStates.
func (w *Writer) Forget(ref operator.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.states[ref]; r != nil {
		delete(w.states, ref)
		w.recovered(ref, r)
	}
}

// Run writes states until ctx is done.
func (w *Writer) Run(ctx context.Context) {
	defer w.writer.Close()
	queue := workqueue.NewTypedDelayingQueue[operator.Ref]()
	defer context.AfterFunc(ctx, queue.ShutDown)()
	w.mu.Lock()
	w.queue = queue
	for ref, r := range w.states {
		if r.retry = 0; r.want != r.written {
			w.enqueue(ref, r)
		}
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = nil
	}()
	defer metrics.Unwritten.Begin(w.Operator, func(set func(n int, labels ...string)) { set(w.pending()) })()
	lost := minSpacing
	for {
		ref, shutDown := queue.Get()
		if shutDown || ctx.Err() != nil {
			return
		}
		connected := w.write(ctx, ref)
		queue.Done(ref)
		if connected {
			lost = minSpacing
			continue
		}
		work.Pause(ctx, lost) // the others would fail as well
		lost = min(2*lost, maxSpacing)
	}
}

// pending is how many rows have another state than was written.
func (w *Writer) pending() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.states {
		if r.want != r.written {
			n++
		}
	}
	return n
}

// write writes the state of one row. It returns false if the database cannot be reached.
func (w *Writer) write(ctx context.Context, ref operator.Ref) (connected bool) {
	w.mu.Lock()
	r := w.states[ref]
	if r == nil || r.want == r.written {
		w.mu.Unlock()
		return true
	}
	key, state, desired := r.key, r.want, r.desired
	w.mu.Unlock()
	acting, leave, ok := w.Enter(ctx, ref)
	if !ok {
		return true // the row is another process's now
	}
	defer leave()
	err := whileMayWrite(acting, w.Tenures, func(ctx context.Context, allowed func() error) error {
		return w.writer.Write(ctx, func(name string) any { return parameter(name, key, state) }, allowed)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	var refused *source.RefusedError
	switch {
	case err == nil:
		w.noteWritten(ref, r, state, desired)
	case ctx.Err() != nil: // nothing more is to be written
	case errors.Is(err, errNotNow):
		w.queue.AddAfter(ref, minSpacing)
	case errors.As(err, &refused):
		conf := w.Retry
		r.retry = min(max(2*r.retry, time.Duration(conf.MinDelay)), time.Duration(conf.MaxDelay))
		w.noteFailed(ref, r, err)
	default:
		w.noteFailed(ref, r, err)
		return false
	}
	return true
}

// parameter is the value of a parameter of source.writeBack.
func parameter(name string, key any, state report.RowState) any {
	if value, ok := state.Parameters()[name]; ok {
		return value
	}
	return key
}

// noteWritten notes a write. mu is held.
func (w *Writer) noteWritten(ref operator.Ref, r *rowState, state report.RowState, desired canonical.Sum) {
	metrics.CountWriteBack(w.Operator, metrics.Written)
	now := time.Now()
	switch before := r.spacing; {
	case r.at.IsZero() || r.writtenDesired == desired:
	case now.Sub(r.at) > spacingWindow:
		r.spacing = minSpacing
	default:
		r.spacing = min(2*r.spacing, maxSpacing)
		if r.spacing == maxSpacing && before < maxSpacing {
			w.Log.Info("the state of a row is written again and again, and what follows from the row changes each time: "+
				"does a template read a column that source.writeBack changes?", "upstream", ref.String())
		}
	}
	r.written, r.writtenDesired, r.at = state, desired, now
	w.recovered(ref, r)
	if r.want != r.written {
		w.enqueue(ref, r)
	}
}

// noteFailed notes a failure, and lets the row be written again: after its retry, or when the others are. mu is held.
func (w *Writer) noteFailed(ref operator.Ref, r *rowState, err error) {
	metrics.CountWriteBack(w.Operator, metrics.Failed)
	r.failure = err.Error()
	w.queue.AddAfter(ref, r.retry)
	if w.failing.Name == "" || w.failing == ref {
		w.show(ref, r)
	}
}

// recovered notes that a row does not fail any more. mu is held.
func (w *Writer) recovered(ref operator.Ref, r *rowState) {
	r.retry, r.failure = 0, ""
	if w.failing != ref {
		return
	}
	w.failing = operator.Ref{}
	for _, other := range slices.SortedFunc(maps.Keys(w.states), operator.Ref.Compare) {
		if w.states[other].failure != "" {
			w.show(other, w.states[other])
			return
		}
	}
	w.Show("")
}

// show makes the failure of a row the one in the operator's state. mu is held.
func (w *Writer) show(ref operator.Ref, r *rowState) {
	w.failing = ref
	w.Show(fmt.Sprintf("the state of row %s cannot be written: %s", ref.Name, r.failure))
}

// errNotNow is why nothing is written while the lock that this process needs for that is not renewed.
var errNotNow = errors.New("this process may not write now")

// whileMayWrite calls write with a context that ends when this process may no longer write, and with a function that
// returns why it may not write now. The context has a deadline that no renewal prolongs: a database obeys it even if
// this process is frozen.
func whileMayWrite(
	ctx context.Context, tenures []*leadership.Tenure, write func(ctx context.Context, allowed func() error) error,
) error {
	acting, needed := ctx, []*leadership.Tenure(nil)
	for _, t := range tenures {
		if t == nil {
			continue
		}
		inner, done, ok := t.Act(acting)
		if !ok {
			return errNotNow
		}
		defer done()
		acting, needed = inner, append(needed, t)
	}
	bounded := acting
	for _, t := range needed {
		inner, cancel := context.WithTimeout(bounded, t.Left())
		defer cancel()
		bounded = inner
	}
	allowed := func() error {
		for _, t := range needed {
			if t.MayWrite() != nil {
				return errNotNow
			}
		}
		return acting.Err()
	}
	err := write(bounded, allowed)
	if err != nil && allowed() != nil {
		return errNotNow
	}
	return err
}
