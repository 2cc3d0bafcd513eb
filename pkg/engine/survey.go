package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// SurveyOptions are how a surveyor looks.
type SurveyOptions struct {
	// Namespace is the only one whose upstreams are looked at; empty for all. Cluster-scoped upstreams are not concerned.
	Namespace string
	// Documents has changes carry the objects whole, before and after: one read more for each object that would change.
	Documents bool
	// Ages has findings tell when an object was made.
	Ages bool
	// Left has findings tell of what earlier upstreams have left, also where no upstream of the name is there now.
	Left bool
	// Workers is how many upstreams are worked on at once; at least 1.
	Workers int
	// Progress hears how far it is, from one goroutine at a time; nil for nobody.
	Progress func(Progress)
	Log      logr.Logger
}

// Progress is how far a survey is.
type Progress struct {
	Operator string
	// Waiting names the kinds whose first list is not in yet; empty once looking has begun.
	Waiting []string
	// Done and Total count upstreams.
	Done, Total int
}

// Surveyor tells what operators would do, and does nothing of it: it has their watches and their code, and makes dry runs
// of the writes. Its surveys share watches as operators do.
type Surveyor struct {
	engine  *Engine
	dynamic dynamic.Interface
	options SurveyOptions
}

// NewSurveyor prepares surveys of one API server. It sends no request.
func NewSurveyor(cfg *rest.Config, o SurveyOptions) (*Surveyor, error) {
	o.Workers = max(o.Workers, 1)
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Log.IsZero() {
		o.Log = logr.Discard()
	}
	e, err := connect(cfg, Options{Log: o.Log})
	if err != nil {
		return nil, err
	}
	if o.Left {
		e.watches.indexers = maps.Clone(indexers)
		e.watches.indexers[byUpstream] = upstreamsNamed
	}
	return &Surveyor{engine: e, dynamic: e.connections.as(identity{}).objects, options: o}, nil
}

// Survey is one operator's watches, opened to look around.
type Survey struct {
	session  *session
	surveyor *Surveyor
	news     *pendingRefs
	live     context.Context
	end      context.CancelCauseFunc
}

// Open compiles a config against the API server, opens its watches and waits for their first lists. Close ends it. The
// error tells what `run` would wait for: a kind that is not served, a right that is missing.
func (s *Surveyor) Open(ctx context.Context, file *config.File) (*Survey, error) {
	g := s.engine.newOperator(file, silentRecorder{}).current
	p, _, err := g.compile()
	if err != nil {
		return nil, fmt.Errorf("operator %s: %w", g.name, err)
	}
	enforced(p)
	watched := s.narrow(p)
	if s.options.Ages {
		for _, d := range p.Downstreams {
			d.View.Keep = append(slices.Clip(d.View.Keep), []string{"metadata", "creationTimestamp"})
		}
	}
	v := &Survey{session: newSession(g, p), surveyor: s, news: newPendingRefs()}
	v.session.queue, v.session.ReportsLeftovers = v.news, true
	v.live, v.end = context.WithCancelCause(ctx)
	g.calm()
	if !watched {
		return v, nil
	}
	if err := v.session.openWatches(v.end); err != nil {
		v.Close()
		return nil, fmt.Errorf("operator %s: %w", g.name, err)
	}
	if err := v.sync(); err != nil {
		v.Close()
		return nil, fmt.Errorf("operator %s: %w", g.name, err)
	}
	return v, nil
}

// enforced has a pipeline say what it would do if its mode were Enforce: that is what a survey is for, in either mode.
func enforced(p *pipeline.Pipeline) {
	if p.Observing() {
		changed := *p.Config
		changed.Mode = config.ModeEnforce
		p.Config = &changed
	}
}

// narrow cuts a pipeline's watches down to the one namespace that is asked for. It returns false where none is left.
func (s *Surveyor) narrow(p *pipeline.Pipeline) bool {
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

// sync waits for the first lists. A watch that is forbidden is waited for by `run`; here it is an error.
func (v *Survey) sync() error {
	for {
		waiting := v.session.unsynced()
		if len(waiting) == 0 {
			return nil
		}
		if c := v.session.state(); c.reason == reasonForbidden {
			return errors.New(c.message)
		}
		v.surveyor.options.Progress(Progress{Operator: v.session.Name, Waiting: waiting})
		pause(v.live, syncPoll)
		if v.live.Err() != nil {
			return fmt.Errorf("waiting for the first lists: %w", context.Cause(v.live))
		}
	}
}

// Close ends the watches.
func (v *Survey) Close() {
	v.session.closeWatches()
	v.end(nil)
}

// Pipeline is what the config was compiled to.
func (v *Survey) Pipeline() *pipeline.Pipeline { return v.session.Pipeline }

// Standing tells of one upstream what it asks for and what the caches have of it; nil where there is nothing to tell.
func (v *Survey) Standing(ctx context.Context, ref pipeline.Ref) (*reconcile.Standing, error) {
	return v.session.Standing(ctx, ref)
}

// Refs lists what `run` would look at after a start: the upstreams, and those that the marks of downstreams name, in the
// order of their names. Upstreams in namespaces that are not watched, which only a mark can name, are left out.
func (v *Survey) Refs() []pipeline.Ref {
	return slices.DeleteFunc(v.news.all(), func(ref pipeline.Ref) bool { return !v.session.Cache.Watches(ref.Namespace) })
}

// Visit looks at upstreams and gives visit what was found, one after the other and in their order. It keeps nothing, so
// that its memory is that of the caches. An error of visit ends it. Upstreams of which there is nothing to tell are left
// out.
func (v *Survey) Visit(ctx context.Context, refs []pipeline.Ref, visit func(*reconcile.Finding) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type job struct {
		ref  pipeline.Ref
		done chan struct{}
		f    *reconcile.Finding
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
				j.f, j.err = v.Look(ctx, j.ref)
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
			v.surveyor.options.Progress(Progress{Operator: v.session.Name, Done: n, Total: len(refs)})
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

// unlessEnded is the error, but for work that was asked to end: then what failed does not matter.
func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// progressStep is after how many upstreams progress is told.
const progressStep = 100

// Follow looks again at every upstream of which there is news, until ctx is done. What there is to tell of one that has
// gone is its name alone.
func (v *Survey) Follow(ctx context.Context, visit func(*reconcile.Finding) error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-v.live.Done():
			return endReason(ctx, v.live) // the watches end with ctx, too
		case <-v.news.more:
		}
		pause(ctx, afterDelete)
		for _, ref := range v.news.take() {
			f, err := v.Look(ctx, ref)
			if err != nil {
				return unlessEnded(ctx, err)
			}
			if f == nil {
				f = &reconcile.Finding{Operator: v.session.Name, Ref: ref}
			}
			if err := visit(f); err != nil {
				return err
			}
		}
	}
}

// Look looks at one upstream. It returns nil where there is nothing to tell.
func (v *Survey) Look(ctx context.Context, ref pipeline.Ref) (*reconcile.Finding, error) {
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	left, err := v.leftOf(looking, ref)
	if err != nil {
		return nil, err
	}
	f, err := v.session.Preview(looking, ref, reconcile.PreviewOptions{Client: v.dryClient, Documents: v.surveyor.options.Documents})
	switch {
	case ctx.Err() != nil: // what was cut short says nothing about the upstream
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case f == nil && len(left) > 0:
		f = &reconcile.Finding{Operator: v.session.Name, Ref: ref}
	}
	if f != nil {
		f.Left = left
	}
	return f, nil
}

// dryClient makes the client of one reconciliation.
func (v *Survey) dryClient(answers *apply.DryRun) *apply.Client {
	return apply.New(v.surveyor.dynamic, v.session.Pipeline.Config.Conventions.FieldManager, apply.WithDryRun(answers))
}

// silentRecorder sends no events.
type silentRecorder struct{}

var _ events.EventRecorder = silentRecorder{}

// Eventf does nothing.
func (silentRecorder) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {
}

// lookTimeout bounds one reconciliation.
const lookTimeout = time.Minute
