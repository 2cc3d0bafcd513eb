package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/corollary-dev/corollary/internal/assets"
	"github.com/corollary-dev/corollary/internal/controlplane"
)

// The examples that are shown.
const (
	examples = "examples/configs"
	chain    = examples + "/chain"
	app      = examples + "/appoperator"
)

// startPlane starts the control plane with the CRDs of the examples and writes a kubeconfig for it.
func startPlane(ctx context.Context, tell *teller, dir string) (*controlplane.ControlPlane, string, error) {
	binaries, err := assets.Build(ctx, os.Stderr)
	if err != nil {
		return nil, "", err
	}
	var crds []string
	for _, name := range []string{chain, app} {
		text, err := os.ReadFile(filepath.Join(name, "crd.yaml"))
		if err != nil {
			return nil, "", fmt.Errorf("reading an example: %w: run the demo from the root of the repository, as make demo does", err)
		}
		crds = append(crds, string(text))
	}
	begin := time.Now()
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Assets: binaries, CRDs: crds, Audit: true,
		Controllers: []string{controlplane.GarbageCollector, controlplane.Namespaces, controlplane.Deployments, controlplane.ReplicaSets},
	})
	if err != nil {
		return nil, "", err
	}
	tell.done("etcd, kube-apiserver and four of its controllers are up, with the CRDs of two examples (%s)", took(time.Since(begin)))
	path := filepath.Join(dir, "kubeconfig")
	text, err := controlplane.Kubeconfig(plane.Config())
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		_ = plane.Stop() // the first error is the one to tell
		return nil, "", fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return plane, path, nil
}
