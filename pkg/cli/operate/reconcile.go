package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

type reconcileOptions struct {
	streams    command.IO
	configs    command.Configs
	connection command.Connection
}

func newReconcile(streams command.IO) *cobra.Command {
	o := &reconcileOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "reconcile -c CONFIG KIND NAME",
		Short: "Request an immediate reconcile of an upstream",
		Long: `Set the annotation that the config names (conventions.reconcile.annotation) on an
upstream to the current time. The running operator reconciles it at once and starts
over: failed requests are retried without delay, dry runs are repeated, and a backoff
caused by another writer ends.

This command reconciles nothing itself: "corollary run" must be running. You need the
right to patch the upstream.`,
		Example: `  corollary reconcile -c app.yaml appoperator web -n team-a`,
		Args:    command.KindAndName,
		RunE:    command.RunUntilSignal(o.run),
	}
	o.configs.Bind(cmd)
	o.connection.Bind(cmd, "Namespace of the upstream; by default the kubeconfig's")
	return cmd
}

func (o *reconcileOptions) run(ctx context.Context, args []string) error {
	kind, name, err := command.SplitKindName(args)
	if err != nil {
		return err
	}
	files, err := o.configs.Valid(o.streams)
	if err != nil {
		return err
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return err
	}
	names, err := command.DiscoverNames(cfg, files)
	if err != nil {
		return err
	}
	k, target, err := names.Target(&o.connection, kind, name)
	if err != nil {
		return err
	}
	keys, err := annotationsOf(files, k)
	if err != nil {
		return err
	}
	client, err := command.DynamicFor(cfg)
	if err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	annotations := map[string]string{}
	for _, key := range keys {
		annotations[key] = now
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("writing the annotation: %w", err)
	}
	_, err = client.Resource(k.GVR).Namespace(target.Namespace).
		Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("requesting a reconcile of %s: %s", target, apply.Classify(err).Message)
	}
	for _, key := range keys {
		fmt.Fprintf(o.streams.Out, "%s: %s is %s\n", target, key, now)
	}
	return nil
}

// annotationsOf are the keys by which the operators of an upstream kind are asked to look.
func annotationsOf(files []*load.File, k *command.NamedKind) ([]string, error) {
	var keys, without []string
	for _, f := range files {
		if !k.Is(f.Watch.APIVersion, f.Watch.Kind) {
			continue
		}
		if r := f.Conventions.Reconcile; r != nil && r.Annotation != "" {
			keys = append(keys, r.Annotation)
		} else {
			without = append(without, f.Path)
		}
	}
	switch {
	case k.IsRow():
		return nil, errors.New("a row has no annotations: it is reconciled again when it changes")
	case len(keys) > 0:
		return keys, nil
	case len(without) > 0:
		return nil, fmt.Errorf("%s has no conventions.reconcile.annotation: add it, and let run load the config",
			strings.Join(without, ", "))
	}
	return nil, fmt.Errorf(
		"%s is not an upstream of these configs; reconcile the upstream that it follows from (corollary why names it)",
		k)
}
