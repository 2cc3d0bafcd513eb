package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	reports "github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// Options are the options of NewSurveyor.
type Options struct {
	// Namespace restricts the survey to the upstreams of one namespace; empty means all. It does not affect cluster-scoped
	// upstreams.
	Namespace string
	// Documents adds the whole objects, before and after, to changes: one more read for each object that would change.
	Documents bool
	// Ages adds the creation time of objects to findings.
	Ages bool
	// Left adds what earlier upstreams have left to findings, also if no upstream of that name exists now.
	Left bool
	// Workers is the number of concurrent previews; at least 1.
	Workers int
	// Progress is called with the progress, from one goroutine at a time; nil: not at all.
	Progress func(Progress)
	// Follow keeps the rows of the last result when a query fails after Open. SourceRead is then called with the error
	// when that changes, and with nil once the query succeeds again. Without it, the error ends the survey.
	Follow     bool
	SourceRead func(operator string, err error)
	// Unconverted says why objects of a resource cannot be read as the config has them; nil: they can. Open returns that
	// as its error.
	Unconverted informers.Unconverted
	Log         logr.Logger
}

// Progress is the progress of a survey.
type Progress struct {
	Operator string
	// Waiting lists the watches without their first list; empty once previews have begun.
	Waiting []string
	// Done and Total count upstreams.
	Done, Total int
}

// Surveyor finds out what operators would do: it watches and reconciles as they do, with dry runs instead of writes.
// Its surveys share watches as operators do.
type Surveyor struct {
	options     Options
	connections *connections.Connections
	informers   *informers.Factory
	cluster     *discovered.Cluster
	absences    *discovered.Absences
	slots       chan struct{}
}

// NewSurveyor prepares surveys of one API server. It sends no requests.
func NewSurveyor(cfg *rest.Config, o Options) (*Surveyor, error) {
	o.Workers = max(o.Workers, 1)
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Log.IsZero() {
		o.Log = logr.Discard()
	}
	c, err := connections.NewConnections(cfg)
	if err != nil {
		return nil, err
	}
	cluster, err := discovered.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing discovery: %w", err)
	}
	factory := informers.NewFactory(c)
	if o.Left {
		factory.IndexByUpstream()
	}
	return &Surveyor{options: o, connections: c, informers: factory, cluster: cluster,
		absences: discovered.NewAbsences(cluster, absenceKept), slots: attempt.NewRenderSlots()}, nil
}

// absenceKept is how long the absence of a kind is cached.
const absenceKept = 2 * time.Second

// Survey is one operator's watches, opened for dry runs.
type Survey struct {
	surveyor   *Surveyor
	reconciler *reconcile.Reconciler
	cache      *informers.Cache
	pending    *pendingRefs
	live       context.Context
	end        context.CancelCauseFunc
	doubt      string // about rows that are missing
	observes   bool
	digest     string // of the config

	mu sync.Mutex
	// opened: the first lists are there. failed are the errors of queries since then.
	opened bool
	failed map[informers.Key]string
}

// Open compiles a config against the API server, opens its watches and waits for their first lists. Call Close to end
// it. It returns an error for what `run` would wait for: a kind that is not served, a missing permission.
func (s *Surveyor) Open(ctx context.Context, file *load.File) (*Survey, error) {
	v, err := s.open(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("operator %s: %w", file.Metadata.Name, err)
	}
	return v, nil
}

func (s *Surveyor) open(ctx context.Context, file *load.File) (*Survey, error) {
	p, err := s.compile(file)
	if err != nil {
		return nil, err
	}
	if err := s.options.Unconverted.Any(ctx, p); err != nil {
		return nil, err
	}
	observes := p.Observing()
	setEnforce(p)
	watched := s.narrow(p)
	if s.options.Ages {
		for _, d := range p.Downstreams {
			d.View.Keep = append(slices.Clip(d.View.Keep), []string{"metadata", "creationTimestamp"})
		}
	}
	v := &Survey{surveyor: s, cache: informers.NewCache(p.Renderer), pending: newPendingRefs(),
		failed:   map[informers.Key]string{},
		observes: observes, digest: file.Digest()}
	v.reconciler = &reconcile.Reconciler{
		Operator: reports.Operator{Name: file.Metadata.Name, Log: s.options.Log, Recorder: silentRecorder{}},
		Pipeline: p, Cache: v.cache, Kinds: s.absences, Host: v,
		Client:    apply.New(s.connections.Objects(connections.Identity{}), p.Config.Conventions.FieldManager),
		Slots:     attempt.Slots{RenderSlots: s.slots, SlotWait: reconcileTimeout},
		Selection: reconcile.Selection{ReportsLeftovers: true},
	}
	v.live, v.end = context.WithCancelCause(ctx)
	if !watched {
		return v, nil
	}
	feed := informers.Feed{Reconciler: v.reconciler, Queue: v.pending, OnWatchResult: v.onWatchResult}
	if err := v.cache.Open(s.informers, connections.Identity{}, feed, nil); err != nil {
		v.Close()
		return nil, err
	}
	if err := v.sync(ctx); err != nil {
		v.Close()
		return nil, err
	}
	v.mu.Lock()
	v.opened = true
	v.mu.Unlock()
	if p.HasRows() {
		goneRows, doubt := v.cache.GoneRows(v.pending.all())
		if len(goneRows) > 0 {
			v.doubt = doubt.Why
		}
		for _, ref := range goneRows {
			v.reconciler.NoteGone(ref)
		}
	}
	return v, nil
}

// Doubt is why the rows that the query lacks may not be gone: run waits for a confirmation then. Empty for no doubt.
func (v *Survey) Doubt() string { return v.doubt }

// Observes reports whether the config has mode Observe, so that run does none of what the survey shows.
func (v *Survey) Observes() bool { return v.observes }

// compile compiles a config as `run` does.
func (s *Surveyor) compile(file *load.File) (*compile.Pipeline, error) {
	if !file.Valid() {
		return nil, file.Problems()
	}
	version, err := s.cluster.Version()
	if err != nil {
		version = nil // it only decides which CEL functions there are
	}
	p, problems, err := compile.One(file, compile.Options{Kinds: s.cluster, Version: version, Live: true})
	switch {
	case err != nil:
		return nil, fmt.Errorf("asking the API server for its kinds: %w", err)
	case len(problems) > 0:
		return nil, problems
	case p.Upstream.Missing != nil:
		return nil, p.Upstream.Missing
	}
	return p, nil
}

// setEnforce makes a pipeline decide as with mode Enforce: that is what a survey shows, in either mode.
func setEnforce(p *compile.Pipeline) {
	if p.Observing() {
		changed := *p.Config
		changed.Mode = config.ModeEnforce
		p.Config = &changed
	}
}

// narrow restricts a pipeline's watches to the one namespace of the options. It returns false if the config does not
// watch it.
func (s *Surveyor) narrow(p *compile.Pipeline) bool {
	if s.options.Namespace == "" || !p.Upstream.Namespaced {
		return true
	}
	if have := p.Config.Watch.Namespaces; len(have) > 0 && !slices.Contains(have, s.options.Namespace) {
		return false
	}
	narrowed := *p.Config
	narrowed.Watch.Namespaces = []string{s.options.Namespace}
	p.Config = &narrowed
	return true
}

// sync waits for the first lists.
func (v *Survey) sync(ctx context.Context) error {
	for {
		waiting := v.cache.Unsynced()
		if len(waiting) == 0 {
			return nil
		}
		v.surveyor.options.Progress(Progress{Operator: v.reconciler.Name, Waiting: waiting})
		select {
		case <-time.After(syncPoll):
		case <-v.live.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("waiting for the first lists: %w", context.Cause(ctx))
			}
			return context.Cause(v.live)
		}
	}
}

// syncPoll is the interval between two checks for the first lists.
const syncPoll = 50 * time.Millisecond

// onWatchResult ends the survey after a permanent error of its watches.
func (v *Survey) onWatchResult(key informers.Key, err error) {
	upstream := key.GVR == v.reconciler.Pipeline.Upstream.GVR
	if upstream {
		v.reconciler.NoteWatchResult(key, err)
	}
	var failed *informers.SourceError
	switch {
	case v.keepsRows(key, err):
	case err == nil:
	case errors.As(err, &failed):
		v.end(failed)
	case apierrors.IsForbidden(err):
		v.end(errors.New(key.Identity.Forbidden("watching "+key.String(), "get, list and watch on it", err)))
	case errors.Is(err, informers.ErrSetBack):
		v.end(fmt.Errorf("watching %s: %w", key, err))
	case upstream && connections.IsNotServed(err):
		v.end(fmt.Errorf("%s is no longer served: %w", key.GVR.GroupResource(), err))
	}
}

// keepsRows reports whether the result of a query does not end the survey, which notes it.
func (v *Survey) keepsRows(key informers.Key, err error) bool {
	var failed *informers.SourceError
	if !key.IsRows() || err != nil && !errors.As(err, &failed) {
		return false
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.opened || !v.surveyor.options.Follow {
		return false
	}
	if v.failed[key] != text {
		v.failed[key] = text
		v.surveyor.options.SourceRead(v.reconciler.Name, err)
	}
	return true
}

// Close ends the watches.
func (v *Survey) Close() {
	v.cache.Close()
	v.end(nil)
}

// ReplacementProblems returns why `run` would not replace the surveyed config by a changed one.
func (v *Survey) ReplacementProblems(changed *config.Operator) []string {
	return v.cache.NamesInUse(changed)
}

// Pipeline returns the compiled config.
func (v *Survey) Pipeline() *compile.Pipeline { return v.reconciler.Pipeline }

// Current returns the desired state of an upstream and its objects in the caches; nil if there is nothing to report.
func (v *Survey) Current(ctx context.Context, ref operator.Ref) (*reconcile.Current, error) {
	return v.reconciler.Current(ctx, ref)
}

// Refs returns what `run` would reconcile after a start, sorted by name: the upstreams, and those in the owner marks of
// downstreams, except in namespaces that are not watched. The zero Ref means the objects that have lost their owner
// mark.
func (v *Survey) Refs() []operator.Ref {
	refs := slices.DeleteFunc(v.pending.all(), func(ref operator.Ref) bool { return !v.cache.Watches(ref.Namespace) })
	if v.surveyor.options.Left && len(v.leftBefore(operator.Ref{}, "")) > 0 {
		refs = append(refs, operator.Ref{})
	}
	return refs
}

// Unknown has the error of each object of which it is not known whether it is an upstream. Nothing is reported about it
// otherwise.
func (v *Survey) Unknown() map[operator.Ref]error { return v.cache.Unknown() }

// Visit previews upstreams and calls visit with each finding, sequentially and in order. It stores none of them, so its
// memory is that of the caches. An error of visit ends it. It skips upstreams with nothing to report.
func (v *Survey) Visit(ctx context.Context, refs []operator.Ref, visit func(*preview.Finding) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type job struct {
		ref  operator.Ref
		done chan struct{}
		f    *preview.Finding
		err  error
	}
	workers := v.surveyor.options.Workers
	jobs, order := make(chan *job), make(chan *job, 2*workers)
	go func() {
		defer close(jobs)
		defer close(order)
		for _, ref := range refs {
			j := &job{ref: ref, done: make(chan struct{})}
			select {
			case order <- j:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range workers {
		go func() {
			for j := range jobs {
				j.f, j.err = v.Preview(ctx, j.ref)
				close(j.done)
			}
		}()
	}
	n := 0
	for j := range order {
		select {
		case <-j.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if j.err != nil {
			return j.err
		}
		if n++; n%progressStep == 0 || n == len(refs) {
			v.surveyor.options.Progress(Progress{Operator: v.reconciler.Name, Done: n, Total: len(refs)})
		}
		if j.f == nil {
			continue
		}
		if err := visit(j.f); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// unlessEnded returns the error, or nil if ctx is done, because then a failure does not matter.
func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// progressStep is after how many upstreams progress is reported.
const progressStep = 100

// followDelay waits for all events of one change before the preview.
const followDelay = 300 * time.Millisecond

// Follow previews every upstream that has changed, until ctx is done. The finding of a deleted upstream has only its
// name.
func (v *Survey) Follow(ctx context.Context, visit func(*preview.Finding) error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-v.live.Done():
			return unlessEnded(ctx, context.Cause(v.live)) // the watches end with ctx, too
		case <-v.pending.more:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followDelay):
		}
		for _, ref := range v.pending.take() {
			f, err := v.Preview(ctx, ref)
			if err != nil {
				return unlessEnded(ctx, err)
			}
			if f == nil {
				f = &preview.Finding{Operator: v.reconciler.Name, Ref: ref}
			}
			if err := visit(f); err != nil {
				return err
			}
		}
	}
}

// Preview makes a dry run for one upstream. It returns nil if there is nothing to report.
func (v *Survey) Preview(ctx context.Context, ref operator.Ref) (*preview.Finding, error) {
	looking, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	left, err := v.leftOf(looking, ref)
	if err != nil {
		return nil, err
	}
	if ref == (operator.Ref{}) {
		return &preview.Finding{Operator: v.reconciler.Name, Left: left}, nil
	}
	f, err := v.reconciler.Preview(looking, ref, preview.Options{Client: v.dryClient(),
		Documents: v.surveyor.options.Documents})
	switch {
	case ctx.Err() != nil: // a canceled preview says nothing about the upstream
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case f == nil && len(left) > 0:
		f = &preview.Finding{Operator: v.reconciler.Name, Ref: ref}
	}
	if f != nil {
		f.Left = left
	}
	return f, nil
}

// dryClient makes a client that writes nothing.
func (v *Survey) dryClient() *apply.Client {
	objects := v.surveyor.connections.Objects(connections.Identity{})
	return apply.New(objects, v.reconciler.Pipeline.Config.Conventions.FieldManager, apply.WithDryRun())
}

// silentRecorder sends no events.
type silentRecorder struct{}

var _ events.EventRecorder = silentRecorder{}

// Eventf does nothing.
func (silentRecorder) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {
}

// reconcileTimeout bounds one reconciliation.
const reconcileTimeout = time.Minute
