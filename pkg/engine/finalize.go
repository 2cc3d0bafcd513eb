package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

func (l *look) addFinalizer(ctx context.Context) bool {
	up, err := l.client.AddFinalizer(ctx, l.upstreamTarget(l.ref), l.upstream, l.pipeline.Config.Conventions.Finalizer)
	if err != nil {
		l.failUpstream("adding the finalizer", err)
		return false
	}
	l.upstream = withoutManagedFields(up)
	l.record.wrote(up, false)
	return true
}

// retireFinalizer takes the finalizer off an upstream that no longer needs it. What the status names and the cache does
// not show is read first: the cache may lag, and after this nothing would hold the upstream for it. What is found is left
// to the next round.
func (l *look) retireFinalizer(ctx context.Context, in pipeline.Input) bool {
	known := in.Leftovers
	for i, f := range in.Facts {
		if f.Live != nil {
			known = append(known, pipeline.Owned{Downstream: i, Live: f.Live})
		}
	}
	unseen, err := l.readRecorded(ctx, known)
	switch {
	case err != nil:
		l.failUpstream("reading what the status names", err)
		return false
	case len(unseen) > 0:
		l.unseen = append(l.unseen, unseen...)
		return true
	}
	return l.removeFinalizer(ctx)
}

// removeFinalizer takes the finalizer off, if it is there. An upstream that has gone meanwhile has no finalizer either.
func (l *look) removeFinalizer(ctx context.Context) bool {
	up, err := l.client.RemoveFinalizer(ctx, l.upstreamTarget(l.ref), l.upstream, l.pipeline.Config.Conventions.Finalizer)
	switch {
	case errors.Is(err, apply.ErrGone):
		return true
	case err != nil:
		l.failUpstream("removing the finalizer", err)
		return false
	}
	l.upstream = withoutManagedFields(up)
	l.record.wrote(up, false)
	return true
}

// finalize is about an upstream that is being deleted. It needs neither template nor rule: what bears the upstream's
// mark in the cache, and what its status names, is deleted or released; then the finalizer goes.
func (l *look) finalize(ctx context.Context) time.Duration {
	if !l.hasFinalizer() {
		return 0
	}
	if wait := l.record.retry.wait(l.record.digest, l.now); wait > 0 {
		return wait
	}
	in := pipeline.Input{Upstream: l.upstream, HasFinalizer: true, Now: l.now}
	in.Leftovers = l.pipeline.Leftovers(nil, l.ownedByDownstream(), l.recorded())
	missing, err := l.readRecorded(ctx, in.Leftovers)
	if err != nil {
		l.failUpstream("reading what the status names", err)
		return l.retryLater()
	}
	in.Leftovers = append(in.Leftovers, missing...)
	decision := l.pipeline.DecideDeletion(in)
	for _, o := range decision.Leftovers {
		if o.Action != pipeline.ActionNone {
			l.carryOut(ctx, o, in)
		}
	}
	if len(l.failures) > 0 || !l.removeFinalizer(ctx) {
		return l.retryLater()
	}
	l.log.Info("cleaned up after an upstream", "upstream", l.ref.String(), "objects", len(decision.Leftovers))
	l.forget(l.ref)
	return 0
}

// readRecorded reads the objects that the status names and the cache does not have: a cache may lag, and what is
// forgotten here is left behind for ever. Only an object that bears this upstream's mark is ours to clean up; one that
// somebody else made under the name has another uid.
func (l *look) readRecorded(ctx context.Context, known []pipeline.Owned) ([]pipeline.Owned, error) {
	var more []pipeline.Owned
	for _, rec := range l.recorded() {
		i := slices.IndexFunc(l.pipeline.Downstreams, func(d *pipeline.Downstream) bool { return d.Name == rec.Name })
		if i < 0 || rec.UID == "" || slices.ContainsFunc(known, func(o pipeline.Owned) bool { return o.Live.UID == rec.UID }) {
			continue
		}
		live, err := l.readOwn(ctx, i, pipeline.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}, rec.UID)
		if err != nil {
			return nil, err
		}
		if live != nil {
			more = append(more, pipeline.Owned{Downstream: i, Live: live, Certain: true})
		}
	}
	return more, nil
}

func (l *look) readOwn(ctx context.Context, i int, at pipeline.Ref, uid types.UID) (*drift.Live, error) {
	obj, err := l.client.Get(ctx, l.target(i, at))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	live, err := l.pipeline.Downstreams[i].View.Live(obj)
	if err != nil || live.UID != uid || !pipeline.Marked(live, l.upstream.GetUID()) {
		return nil, err
	}
	return live, nil
}
