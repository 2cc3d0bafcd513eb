package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// session is an operator at work: one compiled pipeline, its watches, its queue and its memory.
type session struct {
	*generation
	pipeline    *pipeline.Pipeline
	memory      *memory
	queue       priorityqueue.PriorityQueue[pipeline.Ref]
	upstreams   stores
	namespaces  stores
	downstreams []stores
	inputs      []stores
	hook        stores // the objects of deletion.before
	readers     readers
	places      chan struct{} // for upstreams that need much; nil: as many as there are
	removals    removals
	unstorable  unstorable
	shared      shared
	nsSelector  labels.Selector
	selector    labels.Selector
	crew
	elder       elder // while it counts
	heritage    heritage
	lost        lostWatches
	cascades    cascades
	batch       batch
	leaving     leaving
	tells       bool // it is a survey, which tells of what is left over too
	droppedTold sync.Once
	ended       sync.Once
	counted     atomic.Bool // metrics count its objects
	// doubts holds a sign that a kind may have changed or gone.
	doubts chan struct{}
}

func newSession(g *generation, p *pipeline.Pipeline) *session {
	return &session{generation: g, pipeline: p, memory: newMemory(), downstreams: make([]stores, len(p.Downstreams)),
		inputs: make([]stores, len(p.Inputs)), doubts: make(chan struct{}, 1)}
}

// serve watches and works until ctx is done or a kind goes; then it returns the reason.
func (g *generation) serve(ctx context.Context, p *pipeline.Pipeline) error {
	s, before := newSession(g, p), !g.engine.electedAlready()
	s.places = g.engine.places
	g.begins(s)
	s.queue = priorityqueue.New[pipeline.Ref](g.name)
	defer s.shutDown()
	defer s.forgetObjects()
	live, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	defer s.closeWatches()
	defer s.dismiss()
	g.calm()
	s.say(reasonSyncing, "")
	if err := s.openWatches(gone); err != nil {
		return err
	}
	go s.followKinds(live, gone)
	go s.awaitKinds(live, gone)
	go s.awaitConfig(live, gone)
	if !s.waitForSync(live) || !s.passGuard(live) || !s.succeed() {
		return cause(ctx, live)
	}
	s.shared.begin(s.name)
	waited, elected := s.waitForElection(live)
	if !elected || waited && !s.passGuard(live) { // much may have happened since it was passed
		return cause(ctx, live)
	}
	if before {
		s.takeOver(live)
	}
	s.say(atWork(s.pipeline), "")
	s.work(live)
	return cause(ctx, live)
}

// waitForElection waits, with every informer warm, until this process may write. waited tells that it had to; ok is false
// when live is done.
func (s *session) waitForElection(live context.Context) (waited, ok bool) {
	if s.engine.electedAlready() {
		return false, true
	}
	s.say(reasonStandby, "")
	select {
	case <-live.Done():
		return true, false
	case <-s.engine.elected:
		return true, true
	}
}

// cause is why live ended; nil where the whole process is stopping.
func cause(ctx, live context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return context.Cause(live)
	}
}

// work has the workers act until live is done and what they hold is finished.
func (s *session) work(live context.Context) {
	defer queues.begin(s.name, s.queue.Len)()
	s.beginActing()
	if s.pipeline.Config.Guard != nil && !s.pipeline.Observing() {
		s.workers.Go(func() { s.watchBatches(live) })
	}
	s.hire(live)
	s.resync(live)
	<-live.Done()
	s.dismiss()
}

// shutDown ends the queue, which takes it once only.
func (s *session) shutDown() { s.ended.Do(s.queue.ShutDown) }

// resync looks at every upstream again from time to time, behind everything else. It finds what no event announced, and
// costs no request where there is nothing to find.
func (s *session) resync(live context.Context) {
	period := time.Duration(s.pipeline.Config.ResyncPeriod)
	for period > 0 {
		pause(live, period+rand.N(period/10+1))
		if live.Err() != nil {
			return
		}
		s.enqueue(priorityBulk, s.upstreams.keys()...)
	}
}

func (s *session) one(live context.Context, ref pipeline.Ref) {
	defer s.queue.Done(ref)
	if live.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(live), s.engine.options.DrainTimeout)
	defer cancel()
	start := time.Now()
	after := s.guarded(ctx, ref)
	observeReconcile(s.name, time.Since(start))
	if after > 0 {
		s.enqueueAfter(after, priorityAgain, ref)
	}
}

// afterPanic is how long an upstream waits on which this program has failed.
const afterPanic = time.Minute

// guarded is reconcile that survives a mistake of this program: one object must not take everybody else's operator down.
func (s *session) guarded(ctx context.Context, ref pipeline.Ref) (after time.Duration) {
	defer func() {
		if r := recover(); r != nil {
			countFailure(s.name, "", "Panic")
			s.log.Error(fmt.Errorf("%v", r), "a mistake of this program; the upstream is tried again later", "upstream", ref.String(), "stack", string(debug.Stack()))
			after = afterPanic
		}
	}()
	if s.counting.Load() {
		return s.assess(ctx, ref)
	}
	return s.reconcile(ctx, ref)
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
	waiting := append(s.upstreams.unsynced(), s.namespaces.unsynced()...)
	for _, d := range slices.Concat(s.downstreams, s.inputs, []stores{s.hook}) {
		waiting = append(waiting, d.unsynced()...)
	}
	slices.Sort(waiting)
	return slices.Compact(waiting)
}

// syncPoll is how often first lists are looked for: they take as long as the API server needs, not shorter.
const syncPoll = 50 * time.Millisecond

func (s *session) openWatches(gone context.CancelCauseFunc) error {
	heard := func(key watchKey, err error) { s.heard(key, err, gone) }
	watch := s.pipeline.Config.Watch
	var err error
	if s.selector, err = selectorOf(watch.LabelSelector); err != nil {
		return err
	}
	s.upstreams = stores{}
	for _, ns := range namespacesOf(watch.Namespaces, s.pipeline.Upstream.Namespaced) {
		key := watchKey{Identity: s.acting, GVR: s.pipeline.Upstream.GVR, Namespace: ns, Selector: s.selector.String(), View: packedView}
		sub, err := s.engine.watches.subscribe(key, pack, s.upstreamHandler(), heard)
		if err != nil {
			return err
		}
		s.upstreams[ns] = sub
	}
	if err := s.openNamespaces(heard); err != nil {
		return err
	}
	for i, d := range s.pipeline.Downstreams {
		if s.downstreams[i], err = s.openObjects(d, heard); err != nil {
			return err
		}
	}
	if h := s.pipeline.Hook; h != nil && !s.pipeline.Observing() {
		if s.hook, err = s.openObjects(h.Object, heard); err != nil {
			return err
		}
	}
	for i, source := range s.pipeline.Inputs {
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
	if s.pipeline.Observing() {
		selector = "" // what another writer made bears other labels, or none
	}
	for _, ns := range namespacesOf(targetNamespaces(s.pipeline, d), d.Kind.Namespaced) {
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
	selector := s.pipeline.Config.Watch.NamespaceSelector
	if selector == nil {
		return nil
	}
	var err error
	if s.nsSelector, err = metav1.LabelSelectorAsSelector(selector); err != nil {
		return fmt.Errorf("reading watch.namespaceSelector: %w", err)
	}
	s.namespaces = stores{}
	for _, name := range namespacesOf(s.pipeline.Config.Watch.Namespaces, s.pipeline.Upstream.Namespaced) {
		key := watchKey{Identity: s.acting, GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, View: wholeView}
		if name != "" {
			key.Fields = "metadata.name=" + name
		}
		sub, err := s.engine.watches.subscribe(key, keepWhole, s.namespaceHandler(), heard)
		if err != nil {
			return err
		}
		s.namespaces[name] = sub
	}
	return nil
}

func (s *session) closeWatches() {
	s.upstreams.close()
	s.namespaces.close()
	for _, d := range slices.Concat(s.downstreams, s.inputs, []stores{s.hook}) {
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
