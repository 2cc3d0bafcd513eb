package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// operator is one config and its life: waiting for its kinds, compiling, running, and starting over when a kind goes.
type operator struct {
	engine   *Engine
	file     *config.File
	name     string
	client   *apply.Client
	recorder events.EventRecorder
	log      logr.Logger

	mu        sync.Mutex
	condition condition
	// troubles are the watches that are forbidden.
	troubles map[watchKey]string
}

// run keeps the operator going until ctx is done.
func (o *operator) run(ctx context.Context) {
	for ctx.Err() == nil {
		p := o.resolve(ctx)
		if p == nil {
			return
		}
		if err := o.serve(ctx, p); err != nil {
			o.say(reasonWatchFailed, err.Error())
			pause(ctx, o.engine.options.DiscoveryInterval)
			o.engine.cluster.Invalidate()
		}
	}
}

// resolve waits until every kind of the config is served and the config compiles against their schemas. It returns nil
// when ctx is done.
func (o *operator) resolve(ctx context.Context) *pipeline.Pipeline {
	for ctx.Err() == nil {
		p, reason, err := o.compile()
		if err == nil {
			return p
		}
		o.say(reason, err.Error())
		pause(ctx, o.engine.options.DiscoveryInterval)
		o.engine.cluster.Invalidate()
	}
	return nil
}

func (o *operator) compile() (*pipeline.Pipeline, reason, error) {
	p, problems, err := pipeline.Compile(o.file, pipeline.Options{Kinds: o.engine.cluster, Version: o.engine.version()})
	switch {
	case err != nil:
		return nil, reasonUnavailable, fmt.Errorf("asking the API server for its kinds: %w", err)
	case len(problems) > 0:
		return nil, reasonConfigRefused, problems
	}
	for _, missing := range kindsOf(p) {
		if missing.GVR.Empty() {
			return nil, reasonKindMissing, fmt.Errorf("%s %s is not served by the API server: install its CustomResourceDefinition; it is picked up by itself",
				missing.GVK.GroupVersion(), missing.GVK.Kind)
		}
	}
	return p, "", nil
}

// version is the API server's, for the CEL functions that it has; nil where it does not tell.
func (e *Engine) version() *version.Version {
	v, err := e.cluster.Version()
	if err != nil {
		return nil
	}
	return v
}

// kindsOf lists every kind that is watched.
func kindsOf(p *pipeline.Pipeline) []kinds.Kind {
	list := []kinds.Kind{p.Upstream}
	for _, d := range p.Downstreams {
		list = append(list, d.Kind)
	}
	for _, s := range p.Inputs {
		list = append(list, s.Kind)
	}
	return list
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// heard is told how each list and watch went. Most failures pass and the informer tries again by itself; a kind that is
// gone makes the operator start over, since the next one of that name may look different.
func (o *operator) heard(key watchKey, err error, gone context.CancelCauseFunc) {
	switch {
	case err == nil:
		o.cleared(key)
	case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		gone(fmt.Errorf("%s is no longer served: %w", key.GVR.GroupResource(), err))
	case apierrors.IsForbidden(err):
		o.trouble(key, fmt.Sprintf("watching %s is forbidden: grant get, list and watch on it (%v)", key, err))
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), errors.Is(err, context.Canceled), errors.Is(err, io.EOF):
	default:
		o.log.Info("watching is interrupted and goes on by itself", "resource", key.GVR.GroupResource().String(), "namespace", key.Namespace, "error", err.Error())
	}
}
