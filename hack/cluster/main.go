// Command cluster starts a control plane on this machine, prints the path of a kubeconfig file for it and stays up
// until Ctrl-C, for manual tests. Deployments get ReplicaSets and pods, and the garbage collector runs, but no kubelet:
// pods stay Pending.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/corollary-dev/corollary/internal/assets"
	"github.com/corollary-dev/corollary/internal/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %v\n", err)
		os.Exit(1)
	}
}

// run starts the control plane, waits for the context to end and cleans up.
func run(ctx context.Context) (err error) {
	binaries, err := assets.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Assets: binaries,
		Controllers: []string{
			controlplane.GarbageCollector, controlplane.Namespaces,
			controlplane.Deployments, controlplane.ReplicaSets,
		},
	})
	if err != nil {
		return err
	}
	defer func() {
		if stopped := plane.Stop(); err == nil {
			err = stopped
		}
	}()
	path, err := writeKubeconfig(plane)
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(path))
	fmt.Printf("The control plane is ready (no kubelet runs: pods stay Pending). In another terminal:\n\n"+
		"  export KUBECONFIG=%s\n  kubectl get namespaces\n\nCtrl-C stops it and removes everything.\n", path)
	<-ctx.Done()
	fmt.Println("\nStopping the control plane.")
	return nil
}

// writeKubeconfig writes a kubeconfig file into a new directory, which only this user can read.
func writeKubeconfig(plane *controlplane.ControlPlane) (string, error) {
	text, err := controlplane.Kubeconfig(plane.Config())
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		return "", fmt.Errorf("creating a directory for the kubeconfig: %w", err)
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return path, nil
}
