package act

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// Actor carries out decisions about the objects of one upstream.
type Actor struct {
	// Client makes the requests: the session's own, or that of a dry run.
	Client   *apply.Client
	Log      logr.Logger
	Settings *operator.Settings
	Ref      operator.Ref
	Upstream *unstructured.Unstructured
	// In is what was decided from.
	In operator.Input
	// Known is what is remembered of object k of the desired state. It is only read.
	Known func(k int) *memory.Object
	// Document is the whole document to send for object k of the desired state; live is nil at creation.
	Document func(k int, live *drift.Live) (map[string]any, error)
	// Cascade is what the deletion of the upstream asks for, and Propagation how its objects are deleted.
	Cascade     operator.Cascade
	Propagation metav1.DeletionPropagation
	// IsSharded is true if other processes act for other upstreams. LacksShard reports whether a watch does not show an
	// object with such labels to this process.
	IsSharded  bool
	LacksShard func(labels map[string]string) bool
	// TakeTurn waits until this process may recreate another object. isFresh is true if it has recreated none since it was
	// decided.
	TakeTurn func(ctx context.Context) (isFresh bool, err error)
}

// action is the action of one object while it is carried out.
type action struct {
	*Actor
	*Result
	d      *operator.Downstream
	target apply.Target
	want   *operator.DesiredObject
	known  *memory.Object
}

func (a *Actor) begin(o operator.Outcome) *action {
	return &action{a, &Result{Outcome: o}, a.Settings.Downstreams[o.Downstream],
		Target(a.Settings, o.Downstream, o.Target),
		&a.In.Desired.Objects[o.Object], a.Known(o.Object)}
}

// Target is the target of requests for an object of downstream i.
func Target(s *operator.Settings, i int, ref operator.Ref) apply.Target {
	d := s.Downstreams[i]
	return apply.Target{GVR: d.Kind.GVR, Namespace: ref.Namespace, Name: ref.Name,
		Yields: d.OwnsFields() && !d.Config.Force}
}

// read reads the object of a uid. ErrGone: it does not exist any more.
func (a *Actor) read(ctx context.Context, t apply.Target, uid types.UID) (*unstructured.Unstructured, error) {
	obj, err := a.Client.Get(ctx, t)
	if err == nil && obj.GetUID() != uid {
		return nil, apply.ErrGone
	}
	return obj, err
}

// unlessGone is the error of a request for the object that the outcome is about; nil if the object is gone.
func (x *action) unlessGone(err error) error {
	if errors.Is(err, apply.ErrGone) {
		x.Gone = append(x.Gone, x.UID)
		return nil
	}
	return err
}

// classify is Classify for the object's own requests.
func (x *action) classify(err error) apply.Failure { return Classify(err, x.d.Words) }

// LiveOf views an object that a request returned: no watch may show it.
func (a *Actor) LiveOf(d *operator.Downstream, obj *unstructured.Unstructured) *drift.Live {
	live := d.View.Live(obj)
	live.Unselected = !d.Selector.AsSelector().Matches(labels.Set(obj.GetLabels())) || a.LacksShard(obj.GetLabels())
	return live
}

// ErrUnstored begins the error of a write that the API server accepted without storing it.
var ErrUnstored = errors.New("the API server does not store")

// Classify is apply.ClassifyShown, also for what is found out about kinds.
func Classify(err error, words redact.Words) apply.Failure {
	switch {
	case errors.Is(err, discovered.ErrServedAgain):
		return apply.Failure{Reason: string(operator.StateWaiting), Message: err.Error()}
	case errors.Is(err, kinds.ErrUnknown):
		return apply.Failure{Reason: apply.ReasonKindNotServed, Message: err.Error()}
	case errors.Is(err, ErrUnstored):
		return apply.Failure{Reason: apply.ReasonRejected, Message: err.Error()}
	}
	return apply.ClassifyShown(err, words)
}
