package release

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/apply"
)

// Alone is how release makes sure that no process runs which would put the finalizers on again: it takes the Lease that
// `corollary run` writes under, after it has stopped the processes, if they are named.
type Alone struct {
	// Lease is its name; empty: nothing is waited for.
	Lease, Namespace string
	// Deployment is scaled to 0 first; empty: none is.
	Deployment string
}

// Work is the work of release. It writes by cfg; mayWrite reports whether a write that was held back may be sent after
// all, and is nil where none is held back.
type Work func(ctx context.Context, cfg *rest.Config, mayWrite func(context.Context) bool) error

// During has work done while nobody else writes; at once where no Lease is named. Messages go to w.
func (a *Alone) During(ctx context.Context, cfg *rest.Config, w io.Writer, work Work) error {
	if a.Lease == "" {
		return work(ctx, cfg, nil)
	}
	h, err := newHold(cfg, a.Namespace, a.Lease, w)
	if err != nil {
		return err
	}
	if err := a.scaleDown(ctx, cfg, w); err != nil {
		return err
	}
	fenced := h.Fence(cfg)
	err = h.during(ctx, func(ctx context.Context) error { return work(ctx, fenced, h.Wait) })
	if err != nil || a.Deployment == "" {
		return err
	}
	return a.discard(ctx, cfg, w)
}

// scaleDown takes the processes away. A Deployment that is not there has none.
func (a *Alone) scaleDown(ctx context.Context, cfg *rest.Config, w io.Writer) error {
	if a.Deployment == "" {
		return nil
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	_, err = client.Resource(deployments).Namespace(a.Namespace).Patch(ctx, a.Deployment, types.MergePatchType,
		[]byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}, "scale")
	switch {
	case apierrors.IsNotFound(err):
		fmt.Fprintf(w, "Deployment %s/%s does not exist\n", a.Namespace, a.Deployment)
	case err != nil:
		return fmt.Errorf("scaling Deployment %s/%s to 0: %s", a.Namespace, a.Deployment, apply.Classify(err).Message)
	default:
		fmt.Fprintf(w, "Deployment %s/%s scaled to 0\n", a.Namespace, a.Deployment)
	}
	return nil
}

// discard deletes the Lease, which nobody needs any more, unless another has taken it meanwhile.
func (a *Alone) discard(ctx context.Context, cfg *rest.Config, w io.Writer) error {
	client, err := coordination.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	leases := client.Leases(a.Namespace)
	lease, err := leases.Get(ctx, a.Lease, metav1.GetOptions{})
	if err == nil {
		if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
			fmt.Fprintf(w, "Lease %s/%s is kept: %s holds it now\n", a.Namespace, a.Lease, *holder)
			return nil
		}
		err = leases.Delete(ctx, a.Lease, *metav1.NewRVDeletionPrecondition(lease.ResourceVersion))
	}
	switch {
	case apierrors.IsConflict(err):
		fmt.Fprintf(w, "Lease %s/%s is kept: it was just taken\n", a.Namespace, a.Lease)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("deleting Lease %s/%s, which nobody needs any more: %s", a.Namespace, a.Lease,
			apply.Classify(err).Message)
	}
	return nil
}
