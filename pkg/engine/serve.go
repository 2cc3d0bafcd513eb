package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// session is an operator at work: one compiled pipeline, its watches, its queue and its memory.
type session struct {
	*generation
	*reconcile.Reconciler
	caches *caches
	queue  priorityqueue.PriorityQueue[pipeline.Ref]
	workerPool
	batch batch
	ended sync.Once
	// kindChecks holds a sign that a kind may have changed or gone.
	kindChecks chan struct{}
}

func newSession(g *generation, p *pipeline.Pipeline) *session {
	observe := apply.WithObserver(func(verb, resource string, code int) { countRequest(g.name, verb, resource, code) })
	s := &session{generation: g, caches: newCaches(p), kindChecks: make(chan struct{}, 1)}
	s.Reconciler = &reconcile.Reconciler{
		Name: g.name, Pipeline: p, Cache: s.caches, Host: s, Log: g.log, Recorder: g.recorder,
		Client:   apply.New(g.engine.connections.as(g.acting).objects, p.Config.Conventions.FieldManager, observe),
		SlotWait: g.engine.options.DrainTimeout,
	}
	return s
}

// Enqueue implements reconcile.Host.
func (s *session) Enqueue(ref pipeline.Ref) { s.enqueue(priorityNow, ref) }

// Absent implements reconcile.Host.
func (s *session) Absent(ctx context.Context, gvk schema.GroupVersionKind) error {
	return s.engine.absent(ctx, gvk)
}

// Served implements reconcile.Host.
func (s *session) Served(ctx context.Context, gvk schema.GroupVersionKind) (*kinds.Kind, error) {
	return s.engine.cluster.Served(ctx, gvk)
}

// Kind implements reconcile.Host.
func (s *session) Kind(gvk schema.GroupVersionKind) (*kinds.Kind, error) {
	return s.engine.cluster.Kind(gvk)
}

// ReportShared implements reconcile.Host.
func (s *session) ReportShared(note, upstream string) {
	s.operator.event(eventsOf(s.file), true, EventSharedConventions, "Reconcile", note+" ("+upstream+")")
}

// serve watches and works until ctx is done or a kind goes; then it returns the reason.
func (g *generation) serve(ctx context.Context, p *pipeline.Pipeline) error {
	s, before := newSession(g, p), !g.engine.electedAlready()
	s.RenderSlots = g.engine.places
	last := g.begins(s)
	s.queue = priorityqueue.New[pipeline.Ref](g.name)
	defer s.shutDown()
	defer s.ForgetObjects()
	live, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	defer s.closeWatches()
	defer s.stopWorkers()
	g.calm()
	s.say(reasonSyncing, "")
	if err := s.openWatches(gone); err != nil {
		return err
	}
	go s.followKinds(live, gone)
	go s.awaitKinds(live, gone)
	go s.awaitConfig(live, gone)
	if !s.waitForSync(live) {
		return endReason(ctx, live)
	}
	if s.follow(last); !s.passGuard(live) || !s.succeed() {
		return endReason(ctx, live)
	}
	s.ShowShared()
	waited, elected := s.waitForElection(live)
	if !elected || waited && !s.passGuard(live) { // much may have happened since it was passed
		return endReason(ctx, live)
	}
	if before {
		s.takeOver(live)
	}
	s.say(atWork(s.Pipeline), "")
	s.work(live)
	return endReason(ctx, live)
}

// waitForElection waits, with every informer warm, until this process may write. waited tells that it had to; ok is false
// when live is done.
func (s *session) waitForElection(live context.Context) (waited, ok bool) {
	if s.engine.electedAlready() {
		return false, true
	}
	s.say(reasonStandby, "")
	s.beginStandingBy(live)
	select {
	case <-live.Done():
		return true, false
	case <-s.engine.elected:
		s.pauseWorkers()
		return true, true
	}
}

// endReason is why live ended; nil where the whole process is stopping.
func endReason(ctx, live context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return context.Cause(live)
	}
}

// work has the workers act until live is done and what they hold is finished.
func (s *session) work(live context.Context) {
	defer queues.begin(s.Name, s.queue.Len)()
	s.beginActing()
	if s.Pipeline.Config.Guard != nil && !s.Pipeline.Observing() {
		s.workers.Go(func() { s.watchBatches(live) })
	}
	s.startWorkers(live)
	s.resync(live)
	<-live.Done()
	s.stopWorkers()
}

// shutDown ends the queue, which takes it once only.
func (s *session) shutDown() { s.ended.Do(s.queue.ShutDown) }

// resync looks at every upstream again from time to time, behind everything else. It finds what no event announced, such as the
// deletion of one that is not watched for lack of its label. Where nothing is left over it costs no request if there is nothing
// to find.
func (s *session) resync(live context.Context) {
	period := time.Duration(s.Pipeline.Config.ResyncPeriod)
	for period > 0 {
		pause(live, period+rand.N(period/10+1))
		if live.Err() != nil {
			return
		}
		s.enqueue(priorityBulk, s.everyone()...)
	}
}

func (s *session) processItem(live context.Context, ref pipeline.Ref) {
	defer s.queue.Done(ref)
	if live.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(live), s.engine.options.DrainTimeout)
	defer cancel()
	start := time.Now()
	after := s.reconcileRecovering(ctx, ref)
	observeReconcile(s.Name, time.Since(start))
	if after > 0 {
		s.enqueueAfter(after, priorityAgain, ref)
	}
}

// afterPanic is how long an upstream waits on which this program has failed.
const afterPanic = time.Minute

// reconcileRecovering is reconcile that survives a mistake of this program: one object must not take everybody else's operator down.
func (s *session) reconcileRecovering(ctx context.Context, ref pipeline.Ref) (after time.Duration) {
	defer func() {
		if r := recover(); r != nil {
			reconcile.CountFailure(s.Name, "", "Panic")
			s.Log.Error(fmt.Errorf("%v", r), "internal error (recovered from a panic); will retry the upstream", "upstream", ref.String(), "stack", string(debug.Stack()))
			after = afterPanic
		}
	}()
	switch {
	case s.Counting.Load():
		return s.assess(ctx, ref)
	case s.standingBy.Load():
		return s.StandBy(ctx, ref)
	}
	return s.Reconcile(ctx, ref)
}

// waitForSync waits for the first lists of every watch, and says which ones keep it waiting.
func (s *session) waitForSync(ctx context.Context) bool {
	for ctx.Err() == nil {
		waiting := s.unsynced()
		if len(waiting) == 0 {
			return true
		}
		s.say(reasonSyncing, "waiting for the first list of "+strings.Join(waiting, ", "))
		pause(ctx, syncPoll)
	}
	return false
}

// unsynced lists the watches whose first list has not been taken in yet, each once.
func (s *session) unsynced() []string {
	var waiting []string
	for _, d := range s.caches.all() {
		waiting = append(waiting, d.unsynced()...)
	}
	slices.Sort(waiting)
	return slices.Compact(waiting)
}

// syncPoll is how often first lists are looked for: they take as long as the API server needs, not shorter.
const syncPoll = 50 * time.Millisecond

func (s *session) openWatches(gone context.CancelCauseFunc) error {
	heard := func(key watchKey, err error) { s.onWatchEvent(key, err, gone) }
	watch := s.Pipeline.Config.Watch
	var err error
	if s.Selector, err = selectorOf(watch.LabelSelector); err != nil {
		return err
	}
	s.caches.upstreams = stores{}
	for _, ns := range namespacesOf(watch.Namespaces, s.Pipeline.Upstream.Namespaced) {
		key := watchKey{Identity: s.acting, GVR: s.Pipeline.Upstream.GVR, Namespace: ns, Selector: s.Selector.String(), View: packedView}
		sub, err := s.engine.watches.subscribe(key, pack, s.upstreamHandler(), heard)
		if err != nil {
			return err
		}
		s.caches.upstreams[ns] = sub
	}
	if err := s.openNamespaces(heard); err != nil {
		return err
	}
	for i, d := range s.Pipeline.Downstreams {
		if s.caches.downstreams[i], err = s.openObjects(d, heard); err != nil {
			return err
		}
	}
	if h := s.Pipeline.Before; h != nil && !s.Pipeline.Observing() {
		if s.caches.before, err = s.openObjects(h.Object, heard); err != nil {
			return err
		}
	}
	for i, source := range s.Pipeline.Inputs {
		if err := s.openInput(i, source, heard); err != nil {
			return err
		}
	}
	return nil
}

// openObjects watches the objects that are made of a downstream, if its kind is there. What it returns beside an error is to
// be closed too.
func (s *session) openObjects(d *pipeline.Downstream, heard func(watchKey, error)) (stores, error) {
	open := stores{}
	if d.Kind.Missing != nil {
		return open, nil //nolint:nilerr // the watches of the kind are opened once it is there
	}
	selector := d.Selector.String()
	if s.Pipeline.Observing() {
		selector = "" // what another writer made bears other labels, or none
	}
	for _, ns := range namespacesOf(targetNamespaces(s.Pipeline, d), d.Kind.Namespaced) {
		key := watchKey{Identity: s.acting, GVR: d.Kind.GVR, Namespace: ns, Selector: selector, View: d.View.ID()}
		sub, err := s.engine.watches.subscribe(key, d.View.Transform(), s.downstreamHandler(), heard)
		if err != nil {
			return open, err
		}
		open[ns] = sub
	}
	return open, nil
}

// openNamespaces watches Namespaces where the config selects upstreams by their namespace's labels: those of watch.namespaces,
// each by its name, so that a right to that one will do; else all.
func (s *session) openNamespaces(heard func(watchKey, error)) error {
	selector := s.Pipeline.Config.Watch.NamespaceSelector
	if selector == nil {
		return nil
	}
	var err error
	if s.NamespaceSelector, err = metav1.LabelSelectorAsSelector(selector); err != nil {
		return fmt.Errorf("reading watch.namespaceSelector: %w", err)
	}
	s.caches.namespaces = stores{}
	for _, name := range namespacesOf(s.Pipeline.Config.Watch.Namespaces, s.Pipeline.Upstream.Namespaced) {
		key := watchKey{Identity: s.acting, GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, View: wholeView}
		if name != "" {
			key.Fields = "metadata.name=" + name
		}
		sub, err := s.engine.watches.subscribe(key, keepWhole, s.namespaceHandler(), heard)
		if err != nil {
			return err
		}
		s.caches.namespaces[name] = sub
	}
	return nil
}

func (s *session) closeWatches() {
	for _, d := range s.caches.all() {
		d.close()
	}
}

// selectorOf is what the config's selector matches; everything where there is none.
func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("reading watch.labelSelector: %w", err)
	}
	return parsed, nil
}

// namespacesOf lists the namespaces to watch; "" is all of them.
func namespacesOf(names []string, namespaced bool) []string {
	if len(names) == 0 || !namespaced {
		return []string{""}
	}
	return names
}

// targetNamespaces is where a downstream may stand: no more is watched, so that no more rights are needed.
func targetNamespaces(p *pipeline.Pipeline, d *pipeline.Downstream) []string {
	switch d.Config.TargetNamespaces.From {
	case config.NamespacesList:
		return d.Config.TargetNamespaces.Names
	case config.NamespacesSame:
		return p.Config.Watch.Namespaces
	}
	return nil
}
