package read

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Reader reads what the caches do not show of one upstream.
type Reader struct {
	*observe.State
	// API sends the requests: the session's own, or that of a dry run.
	API    *apply.Client
	Lookup Kinds
	// LiveOf views an object that a request returned.
	LiveOf func(d *operator.Downstream, obj *unstructured.Unstructured) *drift.Live
	// Fail records a failed request for an object, FailUpstream one for the upstream itself. FailureOf is the failure of
	// what is done for a downstream and no single object of the desired state.
	Fail         func(o operator.Outcome, f apply.Failure)
	FailUpstream func(doing string, err error)
	FailureOf    func(downstream int) *operator.Failure
	// Unseen are objects of ours that were read and that the cache does not show; Unread those that could not be read.
	Unseen, Unread []operator.Owned
}

func (r *Reader) fail(o operator.Outcome, err error) {
	r.Fail(o, act.Classify(err, r.Pipeline.Downstreams[o.Downstream].Words))
}

// UpstreamTarget is the target of requests for an upstream.
func UpstreamTarget(s *operator.Settings, ref operator.Ref) apply.Target {
	return apply.Target{GVR: s.Upstream.GVR, Namespace: ref.Namespace, Name: ref.Name}
}

// Kinds is what an API server says about kinds.
type Kinds interface {
	// Absent returns nil if no object of a kind that is not watched can exist.
	Absent(ctx context.Context, gvk schema.GroupVersionKind) error
	// Served asks the API server how it serves a kind now.
	Served(ctx context.Context, gvk schema.GroupVersionKind) (*kinds.Kind, error)
	// Kind is a kind as the API server serves it.
	Kind(gvk schema.GroupVersionKind) (*kinds.Kind, error)
}

// ReadLive reads the object at a place; nil if there is none, or its kind is gone.
func (r *Reader) ReadLive(ctx context.Context, i int, at operator.Ref) (*drift.Live, error) {
	switch k := r.Pipeline.Downstreams[i].Kind; {
	case k.Missing != nil:
		return nil, r.Lookup.Absent(ctx, k.GVK)
	case k.Namespaced != (at.Namespace != ""): // the kind has got another scope: with its definition all objects went
		return nil, nil
	}
	obj, err := r.API.Get(ctx, act.Target(r.Pipeline.Settings, i, at))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := r.LiveOf(r.Pipeline.Downstreams[i].Downstream, obj)
	r.FindNamed(ctx, found, true)
	return r.Memory.Notes.Get().WithMark(found), nil
}

// tryRead is readLive, unless reading the downstream has failed before.
func (r *Reader) tryRead(ctx context.Context, w memory.Witness) (live *drift.Live, ok bool) {
	if r.FailureOf(w.Downstream) == nil {
		var err error
		if live, err = r.ReadLive(ctx, w.Downstream, w.At); err == nil {
			return live, true
		}
		if r.Pipeline.Downstreams[w.Downstream].Kind.Missing == nil { // else its own outcome says so
			r.fail(r.OutcomeOf(w.Downstream, w.At), err)
		}
	}
	r.noteUnread(w)
	return nil, false
}

// noteUnread notes an object that may exist: what it comes after stays, and the status goes on recording it.
func (r *Reader) noteUnread(w memory.Witness) {
	live := &drift.Live{Identity: drift.Identity{Namespace: w.At.Namespace, Name: w.At.Name, UID: w.UID}, Unselected: true}
	for _, rec := range r.Recorded() {
		if rec.UID == w.UID {
			live.Hash = rec.Hash
		}
	}
	r.Unread = append(r.Unread, operator.Owned{Downstream: w.Downstream, Live: live})
}

// ReadForgotten reads an object that the status records and whose kind the config may not name any more; nil if there
// is none that is ours. An object that never had a mark of this operator was not created by it, whatever is recorded.
func (r *Reader) ReadForgotten(
	ctx context.Context, recorded *status.Recorded,
) (t apply.Target, obj *unstructured.Unstructured, err error) {
	t, obj, err = r.readOfAnyKind(ctx, recorded)
	if err != nil || obj == nil ||
		!marks.HasOurs(r.Pipeline.Settings, obj) && !marks.HasManager(r.Pipeline.Settings, obj) {
		return t, nil, err
	}
	return t, obj, nil
}

// FindGone reads what the config has forgotten and the status says so of already, and returns what does not exist any
// more: no watch shows its end. What cannot be read may exist.
func (r *Reader) FindGone(ctx context.Context) (gone []types.UID) {
	for _, rec := range r.Pipeline.Forgotten(r.Upstream) {
		if rec.UID == "" || rec.State != string(operator.StateLeftover) {
			continue
		}
		if _, obj, err := r.readOfAnyKind(ctx, &rec); err == nil && obj == nil {
			gone = append(gone, rec.UID)
		}
	}
	return gone
}

// readOfAnyKind reads an object that the status records, whatever its kind and its marks; nil if it does not exist.
func (r *Reader) readOfAnyKind(
	ctx context.Context, recorded *status.Recorded,
) (t apply.Target, obj *unstructured.Unstructured, err error) {
	if recorded.ObjectName == "" {
		return t, nil, nil
	}
	kind, err := r.Lookup.Served(ctx, schema.FromAPIVersionAndKind(recorded.APIVersion, recorded.Kind))
	if kinds.IsNotDefined(err) {
		return t, nil, nil
	}
	if err != nil {
		return t, nil, err
	}
	if kind.Namespaced != (recorded.Namespace != "") { // as in ReadLive
		return t, nil, nil
	}
	t = apply.Target{GVR: kind.GVR, Namespace: recorded.Namespace, Name: recorded.ObjectName}
	obj, err = r.API.Get(ctx, t)
	switch {
	case errors.Is(err, apply.ErrGone):
		return t, nil, nil
	case err != nil:
		return t, nil, err
	case recorded.UID != "" && obj.GetUID() != recorded.UID:
		return t, nil, nil
	}
	return t, obj, nil
}

// OutcomeOf is an outcome for an object of a downstream at a place that may be no target.
func (r *Reader) OutcomeOf(downstream int, at operator.Ref) operator.Outcome {
	return operator.Outcome{Downstream: downstream, Object: r.Memory.Desired().First(downstream), Target: at}
}

// CanExist reports whether an upstream can have that name and namespace.
func CanExist(s *operator.Settings, ref operator.Ref) bool {
	return len(content.IsPathSegmentName(ref.Name)) == 0 && len(content.IsPathSegmentName(ref.Namespace)) == 0 &&
		(ref.Namespace != "") == s.Upstream.Namespaced
}
