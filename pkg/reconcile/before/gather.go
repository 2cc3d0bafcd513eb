package before

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/read"
	"github.com/corollary-dev/corollary/pkg/reconcile/write"
)

// Gather gathers what is known about the deletion.before object.
func (j *Job) Gather(ctx context.Context) (operator.BeforeFacts, error) {
	m, p := j.Memory.Before.Edit(), j.Pipeline
	f := operator.BeforeFacts{Record: p.RecordedBefore(j.Upstream), Made: m.Made,
		Progress: p.BeforeProgress(j.Upstream, j.InputsRead())}
	var err error
	if decide.BeforePassed(p.Settings, f.Record) {
		if !m.IsGone && f.Record.ObjectName != "" {
			f.Live, err = j.at(ctx, refOfRecord(f), f.Record.UID)
			if f.Record.UID == "" && f.Live != nil && !marks.MadeForDeletion(f.Live, j.Upstream.GetUID()) {
				f.Live = nil // it was never made, and this is someone else's
			}
			m.IsGone = err == nil && f.Live == nil
			if f.Live != nil { // whose it is now decides whether it is deleted
				j.FindNamed(ctx, f.Live, true)
				f.Live = j.Memory.Notes.Get().WithMark(f.Live)
			}
		}
		return f, err
	}
	if uid := madeUID(f); uid != "" {
		if f.Live, err = j.at(ctx, refOfRecord(f), uid); err != nil || f.Live != nil || m.IsUpstreamRead {
			return f, err
		}
		// Only a read distinguishes an object that was removed from one that finished: the cache may lag behind our own
		// record.
		if err := j.readUpstream(ctx); err != nil {
			return f, err
		}
		return j.Gather(ctx)
	}
	return j.gatherUnmade(ctx, f)
}

// gatherUnmade is Gather if no object is known to have been created.
func (j *Job) gatherUnmade(ctx context.Context, f operator.BeforeFacts) (operator.BeforeFacts, error) {
	if m := j.Memory.Before.Edit(); !m.IsUpstreamRead {
		if err := j.readUpstream(ctx); err != nil {
			return f, err
		}
		return j.Gather(ctx)
	}
	m := j.Memory.Before.Edit()
	if m.Planned != nil && m.Planned.Target == refOfRecord(f) {
		f.Desired = *m.Planned
	} else {
		f.Desired = j.Pipeline.DesiredBefore(j.Upstream, j.InputsRead())
	}
	if f.Record != nil && f.Record.ObjectName != "" {
		at := refOfRecord(f)
		if at != f.Desired.Target { // the template says something else by now: was anything made before it did?
			live, err := j.at(ctx, at, "")
			if err != nil || live != nil && marks.MadeForDeletion(live, j.Upstream.GetUID()) {
				f.Live = live
				return f, err
			}
		}
	}
	f.CannotCreate = j.cannotCreate()
	var err error
	if f.Desired.Err == nil && f.Desired.Wanted {
		f.Live, err = j.occupant(ctx, f.Desired.Target)
	}
	return f, err
}

// occupant returns the object at the place where the deletion.before object is to be created: as just read, or, if a
// create met another owner's object, as read after the retry delay; else from the cache.
func (j *Job) occupant(ctx context.Context, at operator.Ref) (*drift.Live, error) {
	m := j.Memory.Before.Edit()
	read, until := j.Memory.LastBeforeRead()
	switch {
	case read != nil && read.Name == at.Name && read.Namespace == at.Namespace &&
		until.Equal(j.Began.Add(memory.FreshFor)):
		return read, nil
	case m.Occupied != at:
		return j.Cache.Live(operator.BeforeIndex, at), nil
	case read != nil && m.Retry.Wait(j.Memory.Cause(), j.Began) > 0:
		return read, nil
	}
	live, err := j.read(ctx, at)
	if err == nil && live == nil {
		m.Occupied = operator.Ref{}
	}
	return live, err
}

func madeUID(f operator.BeforeFacts) types.UID {
	if f.Made != "" || f.Record == nil {
		return f.Made
	}
	return f.Record.UID
}

func refOfRecord(f operator.BeforeFacts) operator.Ref {
	if f.Record == nil {
		return operator.Ref{}
	}
	return operator.Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName}
}

// at returns the deletion.before object at a place, with that uid if one is given: from our last response, from the
// cache, or by a read, as when it has lost the labels of the watch.
func (j *Job) at(ctx context.Context, at operator.Ref, uid types.UID) (*drift.Live, error) {
	is := func(live *drift.Live) bool { return live != nil && (uid == "" || live.UID == uid) }
	read, until := j.Memory.LastBeforeRead()
	if read != nil && at.Name == "" {
		at = operator.Ref{Namespace: read.Namespace, Name: read.Name}
	}
	cached := j.Cache.Live(operator.BeforeIndex, at)
	if is(read) && j.Began.Before(until) && (!is(cached) || memory.Newer(read.ResourceVersion, cached.ResourceVersion)) {
		if !is(cached) {
			j.TrustUntil(until)
		}
		return read, nil
	}
	if is(cached) {
		// An object that lost its owner mark, as by kubectl delete --cascade=orphan, causes no reconciliation when it
		// changes.
		j.IsUnwatched = j.IsUnwatched || !marks.Marked(cached, j.Upstream.GetUID())
		return cached, nil
	}
	live, err := j.read(ctx, at)
	if err != nil || !is(live) {
		return nil, err
	}
	j.IsUnwatched = true
	return live, nil
}

// read reads the object at a place; nil if there is none, or its kind is gone.
func (j *Job) read(ctx context.Context, at operator.Ref) (*drift.Live, error) {
	if k := j.Pipeline.Before.Object.Kind; k.Missing != nil {
		return nil, j.Lookup.Absent(ctx, k.GVK)
	}
	obj, err := j.API.Get(ctx, Target(j.Pipeline, at))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return j.remember(obj), nil
}

// remember remembers what a request for the object returned.
func (j *Job) remember(obj *unstructured.Unstructured) *drift.Live {
	live, set := j.Pipeline.Before.Object.View.Live(obj), j.labels()
	live.Unselected = !set.AsSelector().Matches(labels.Set(obj.GetLabels())) &&
		j.Memory.Before.Edit().Labels != set.String()
	j.Memory.RememberBefore(live, j.Began)
	return live
}

// labels are those that the watch selects the object by.
func (j *Job) labels() labels.Set {
	set, key := labels.Set{}, j.Pipeline.ShardLabel()
	maps.Copy(set, j.Pipeline.Before.Object.Selector)
	if j.Shard != nil && key != "" {
		set[key] = marks.ShardLabelValue(j.Shard(j.Upstream.GetUID()))
	}
	return set
}

// Target is the target of requests for the object at a place.
func Target(p *compile.Pipeline, at operator.Ref) apply.Target {
	return apply.Target{GVR: p.Before.Object.Kind.GVR, Namespace: at.Namespace, Name: at.Name}
}

// readUpstream reads the upstream past the cache. A process that has just started, or become the leader, may have an
// older version in its cache, without what another process recorded.
func (j *Job) readUpstream(ctx context.Context) error {
	up, err := j.API.Get(ctx, read.UpstreamTarget(j.Pipeline.Settings, j.Ref))
	switch {
	case err != nil:
		return err
	case up.GetUID() != j.Upstream.GetUID():
		return apply.ErrGone
	}
	j.Upstream = write.WithoutManagedFields(up)
	j.Memory.WroteUpstream(up, false)
	j.Memory.Before.Edit().IsUpstreamRead = true
	return nil
}

// cannotCreate reports whether the last create was refused because the namespace is being deleted.
func (j *Job) cannotCreate() bool {
	m := j.Memory.Before.Edit()
	return m.Failure != nil && m.Failed == operator.ActionCreate && m.Failure.Reason == apply.ReasonNamespaceTerminating
}
