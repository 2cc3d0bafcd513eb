package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/cli/command"
)

// alone is how release makes sure that no process runs which would put the finalizers on again: it takes the Lease that
// `corollary run` writes under, after it has stopped the processes, if they are named.
type alone struct {
	lease, namespace, deployment string
}

func (a *alone) bind(flags *pflag.FlagSet) {
	flags.StringVar(&a.lease, "leader-election-id", "",
		"Name of the Lease of \"corollary run\": wait for it and hold it, so that no process writes meanwhile")
	flags.StringVar(&a.namespace, "leader-election-namespace", "",
		"Namespace of that Lease, and of the Deployment; by default the kubeconfig's or the pod's own")
	flags.StringVar(&a.deployment, "scale-down", "",
		"Name of the Deployment of \"corollary run\": scale it to 0 first, permanently. Afterwards the Lease is deleted")
}

// check refuses what cannot be meant.
func (a *alone) check() error {
	switch {
	case a.lease == "" && a.deployment != "":
		return command.Usagef("--scale-down does not wait until the processes have ended: add --leader-election-id NAME, the Lease that they write under")
	case a.lease == "" && a.namespace != "":
		return command.Usagef("--leader-election-namespace has no effect without --leader-election-id")
	case a.lease == "":
		return nil
	}
	return checkLeaseName(a.lease)
}

// releasing is the work of release. It writes by cfg; mayWrite reports whether a write that was held back may be sent after all,
// and is nil where none is held back.
type releasing func(ctx context.Context, cfg *rest.Config, mayWrite func(context.Context) bool) error

// during has work done while nobody else writes; at once where no Lease is named. Messages go to w.
func (a *alone) during(ctx context.Context, cfg *rest.Config, w io.Writer, work releasing) error {
	if a.lease == "" {
		return work(ctx, cfg, nil)
	}
	h, err := newHold(cfg, a.namespace, a.lease, w)
	if err != nil {
		return err
	}
	if err := a.scaleDown(ctx, cfg, w); err != nil {
		return err
	}
	fenced := h.Fence(cfg)
	err = h.during(ctx, func(ctx context.Context) error { return work(ctx, fenced, h.Wait) })
	if err != nil || a.deployment == "" {
		return err
	}
	return a.discard(ctx, cfg, w)
}

// scaleDown takes the processes away. A Deployment that is not there has none.
func (a *alone) scaleDown(ctx context.Context, cfg *rest.Config, w io.Writer) error {
	if a.deployment == "" {
		return nil
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	_, err = client.Resource(deployments).Namespace(a.namespace).Patch(ctx, a.deployment, types.MergePatchType,
		[]byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}, "scale")
	switch {
	case apierrors.IsNotFound(err):
		fmt.Fprintf(w, "Deployment %s/%s does not exist\n", a.namespace, a.deployment)
	case err != nil:
		return fmt.Errorf("scaling Deployment %s/%s to 0: %s", a.namespace, a.deployment, apply.Classify(err).Message)
	default:
		fmt.Fprintf(w, "Deployment %s/%s scaled to 0\n", a.namespace, a.deployment)
	}
	return nil
}

// discard deletes the Lease, which nobody needs any more, unless another has taken it meanwhile.
func (a *alone) discard(ctx context.Context, cfg *rest.Config, w io.Writer) error {
	client, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	leases := client.Leases(a.namespace)
	lease, err := leases.Get(ctx, a.lease, metav1.GetOptions{})
	if err == nil {
		if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
			fmt.Fprintf(w, "Lease %s/%s is kept: %s holds it now\n", a.namespace, a.lease, *holder)
			return nil
		}
		err = leases.Delete(ctx, a.lease, *metav1.NewRVDeletionPrecondition(lease.ResourceVersion))
	}
	switch {
	case apierrors.IsConflict(err):
		fmt.Fprintf(w, "Lease %s/%s is kept: it was just taken\n", a.namespace, a.lease)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("deleting Lease %s/%s, which nobody needs any more: %s", a.namespace, a.lease, apply.Classify(err).Message)
	}
	return nil
}
