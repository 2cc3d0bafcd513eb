package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine/kindchecks"
	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/leadership"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/rollout"
)

// generation is one version of an operator's config and its life: waiting for its kinds, compiling, running, and
// starting over when a kind goes. A reload makes the next one.
type generation struct {
	engine   *Engine
	operator *runner
	file     *load.File
	digest   string
	acting   connections.Identity
	// activation is the tenure of the activation that the config follows; nil for none. noActivation is why it does
	// nothing.
	activation   *leadership.Tenure
	noActivation error

	cancel context.CancelFunc // nil before start
	ended  chan struct{}

	// condition and all that follows is guarded by the operator's lock.
	condition state.Condition
	// forbidden are the watches that are forbidden, with the permission to grant.
	forbidden map[informers.Key]string
	// renewed is true if only a kind has changed, not the config.
	renewed bool
	// established is true once it could write, or only waited for the election: from then on, another config must work
	// before it takes over.
	established bool
	// missing says which kinds the session goes without; empty for none.
	missing string
	// rollout is how far the config has reached the upstreams.
	rollout rollout.Progress
	// held is the change that guard holds while the rest goes on.
	held string
	// sourceFailures are why rows cannot be read, by the watch.
	sourceFailures map[informers.Key]string
	// writeBackFailed is why states of rows cannot be written back; empty if they can.
	writeBackFailed string
	// confirmedFor is guard.confirmed.
	confirmedFor string
	// session is the last one, which remembers its writes. Until it has ended, others only use its baselines.
	session *session
}

func (o *runner) newGeneration(f *load.File) *generation {
	g := &generation{
		engine: o.engine, operator: o, file: f, digest: digestOf(f), ended: make(chan struct{}),
		condition:    state.Condition{Reason: state.ReasonStarting},
		confirmedFor: confirmationIn(f), acting: connections.IdentityOf(f),
	}
	g.activation, g.noActivation = o.engine.options.Activation(f)
	return g
}

// digestOf identifies a config. One with errors may otherwise equal one without, as far as it could be read.
func digestOf(f *load.File) string {
	if !f.Valid() {
		return f.Digest() + " with errors"
	}
	return f.Digest()
}

// start runs the generation until ctx is done or it is withdrawn, once before is closed; nil for no generation before.
func (g *generation) start(ctx context.Context, before <-chan struct{}) { g.prepare(ctx, before)() }

// prepare is start in two steps: it can be withdrawn already, and begin has it run.
func (g *generation) prepare(ctx context.Context, before <-chan struct{}) (begin func()) {
	ctx, g.cancel = context.WithCancel(ctx)
	return func() {
		go func() {
			defer close(g.ended)
			defer g.cancel()
			if before != nil {
				<-before
			}
			g.run(ctx)
		}()
	}
}

// withdraw makes it end; wait waits until it has ended. Both do nothing for one that is nil or was never started.
func (g *generation) withdraw() {
	if g != nil && g.cancel != nil {
		g.cancel()
	}
}

func (g *generation) wait() {
	if g != nil && g.cancel != nil {
		<-g.ended
	}
}

// run serves the config until ctx is done.
func (g *generation) run(ctx context.Context) {
	for ctx.Err() == nil {
		p := g.resolve(ctx)
		if p == nil {
			return
		}
		err := g.serve(ctx, p)
		if g.stopTrailing() {
			return
		}
		g.operator.endTrailing(g) // the next session surveys again
		if err != nil {
			if !errors.Is(err, kindchecks.ErrChanged) && !p.OnlyDeletes {
				g.setCondition(state.ReasonWatchFailed, err.Error())
			}
			if errors.Is(err, informers.ErrSetBack) {
				g.forgetLast()
			}
			work.Pause(ctx, g.engine.options.DiscoveryInterval)
			g.forgetKinds()
		}
	}
}

// forgetKinds has the kinds of the config requested again: they often change together with it. Those of other operators
// are kept.
func (g *generation) forgetKinds() {
	g.engine.cluster.Invalidate(g.file.Kinds()...)
}

// forgetLast is called if the cluster was restored to an older state: what the last session saw is no longer true.
func (g *generation) forgetLast() {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	g.operator.last = nil
}

// setSession records that a session begins, and returns the last one, if it has ended.
func (g *generation) setSession(s *session) (last *session) {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	g.session, g.missing = s, kindchecks.DescribeMissing(s.pipeline)
	if g.operator.current == g {
		last, g.operator.last = g.operator.last, s
	}
	return last
}

// resolve waits until the upstream's kind is served and the config compiles against the schemas of its kinds, or as
// much of it as deletions need. It returns nil when ctx is done.
func (g *generation) resolve(ctx context.Context) *compile.Pipeline {
	for wait := range kindchecks.Waits(g.engine.options.DiscoveryInterval) {
		if ctx.Err() != nil {
			return nil
		}
		p, reason, err := g.compile()
		if err == nil {
			reason, err = state.ReasonKindMissing, g.engine.options.Unconverted.Any(ctx, p)
		}
		if err == nil {
			g.logWarnings(p)
			return p
		}
		if reason == state.ReasonConfigRefused && g.noActivation == nil {
			p, note := g.compileDeletions()
			if g.setCondition(reason, err.Error()+note); p != nil {
				return p
			}
		} else {
			g.setCondition(reason, err.Error())
		}
		work.Pause(ctx, wait)
		g.forgetKinds()
	}
	return nil
}

// logWarnings logs the warnings that `check` prints: the config runs nevertheless.
func (g *generation) logWarnings(p *compile.Pipeline) {
	for _, w := range slices.Concat(p.Refusals, p.Warnings) {
		logging.Warn(g.operator.log, "config warning", "warning", w.Error())
	}
}

func (g *generation) compile() (*compile.Pipeline, state.Reason, error) {
	switch {
	case g.noActivation != nil:
		return nil, state.ReasonConfigRefused, g.noActivation
	case !g.file.Valid():
		return nil, state.ReasonConfigRefused, g.file.Problems()
	case g.file.Rollout != nil && g.engine.options.Shards != nil:
		return nil, state.ReasonConfigRefused, errors.New("rollout: each process with --shards would count the steps of " +
			"its own shards: remove the key, or run without --shards")
	}
	return g.compileAs(g.file, compile.Options{})
}

func (g *generation) compileAs(f *load.File, o compile.Options) (*compile.Pipeline, state.Reason, error) {
	o.Kinds, o.Version, o.Live = g.engine.cluster, g.engine.version(), true
	if needs, err := compile.Requirements(f, o); err == nil && !o.Deletions {
		metrics.SetRequirements(g.operator.name, needs)
	}
	p, problems, err := compile.One(f, o)
	switch {
	case err != nil:
		return nil, state.ReasonUnavailable, fmt.Errorf("asking the API server for its kinds: %w", err)
	case len(problems) > 0:
		return nil, state.ReasonConfigRefused, problems
	}
	if err := p.Upstream.Missing; err != nil {
		return nil, state.ReasonKindMissing, err
	}
	return p, "", nil
}

// isRefused reports whether the config does not compile now.
func (g *generation) isRefused() bool {
	_, reason, _ := g.compile()
	return reason == state.ReasonConfigRefused
}

// version is the version of the API server, for its CEL functions; nil if it is unknown.
func (e *Engine) version() *version.Version {
	v, err := e.cluster.Version()
	if err != nil {
		return nil
	}
	return v
}

// onWatchResult is called with the result of each list and watch. Most failures pass, and the informer retries. If the
// upstream's kind is gone, the operator starts over; any other kind that may have gone or changed is checked.
func (s *session) onWatchResult(key informers.Key, err error, endSession context.CancelCauseFunc) {
	if errors.Is(err, informers.ErrUnfiltered) {
		metrics.SetUnfiltered(s.operator.name)
		s.unfiltered.Do(func() {
			s.operator.log.Info("the API server does not filter by shard: objects of other shards are received and dropped; "+
				"its feature gate ShardedListAndWatch filters them", "resource", key.String())
		})
		return
	}
	if key.GVR == s.pipeline.Upstream.GVR {
		s.reconciler.NoteWatchResult(key, err)
	}
	switch {
	case err == nil:
		s.generation.clearForbidden(key)
		s.generation.sourceRead(key, nil)
	case s.generation.sourceRead(key, err):
	case errors.Is(err, informers.ErrSetBack):
		endSession(fmt.Errorf("watching %s: %w: listing everything again", key, err))
	case errors.Is(err, informers.ErrUnconverted): // nothing may be written either
		endSession(fmt.Errorf("watching %s: %w", key, err))
	case errors.Is(err, informers.ErrLost): // the informer reports why
	case errors.Is(err, informers.ErrCut):
		if !s.kinds.WatchesCustom(key.GVR) {
			return
		}
		if s.kinds.Request(); key.GVR == s.pipeline.Upstream.GVR {
			s.Add(informers.PriorityNow, 0, s.reconciler.RetryRefused(key.Namespace)...)
		}
	case connections.IsNotServed(err) && key.GVR == s.pipeline.Upstream.GVR:
		endSession(fmt.Errorf("%s is no longer served: %w", key.GVR.GroupResource(), err))
	case connections.IsNotServed(err):
		s.kinds.Request()
	case apierrors.IsForbidden(err):
		s.generation.setForbidden(key, key.Identity.Forbidden("watching "+key.String(), "get, list and watch on it", err))
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), errors.Is(err, context.Canceled), errors.Is(err, io.EOF):
	default:
		s.operator.log.Info("watch interrupted, retrying", "resource", key.GVR.GroupResource().String(), "namespace",
			key.Namespace, "error", err.Error())
	}
}

// stopTrailing is called when the session of a generation has ended: if it has trailed, the changed config leaves alone
// what it has yet to reach. It reports whether it has.
func (g *generation) stopTrailing() bool {
	o := g.operator
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.trails != g {
		return o.current != g && o.next != g
	}
	o.trails = nil
	if now := o.current.session; now != nil && now.Rollout() != nil && now.queue != nil {
		now.Rollout().ServeBefore(false, nil)
		now.addAll(now.cache.Candidates(now.reconciler))
	}
	return true
}
