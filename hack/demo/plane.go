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

// The examples of the demo.
const (
	examples = "examples/configs"
	chain    = examples + "/chain"
	app      = examples + "/appoperator"
)

// startPlane starts the control plane with the CRDs of the examples and writes a kubeconfig for it.
func startPlane(ctx context.Context, console *printer, dir string) (plane *controlplane.ControlPlane,
	kubeconfig string, hasManager bool,
	err error) {
	binaries, hasManager, err := assets.BuildForDemo(ctx, os.Stderr)
	if err != nil {
		return nil, "", false, err
	}
	var crds []string
	for _, name := range []string{chain, app} {
		text, err := os.ReadFile(filepath.Join(name, "crd.yaml"))
		if err != nil {
			return nil, "", false,
				fmt.Errorf("reading an example: %w: run the demo from the root of the repository, as make demo does", err)
		}
		crds = append(crds, string(text))
	}
	begin := time.Now()
	opts := controlplane.Options{Assets: binaries, CRDs: crds, Audit: true}
	if hasManager {
		opts.Controllers = []string{controlplane.GarbageCollector, controlplane.Namespaces,
			controlplane.Deployments, controlplane.ReplicaSets}
	}
	plane, err = controlplane.Start(ctx, opts)
	if err != nil {
		return nil, "", false, err
	}
	running := "etcd, kube-apiserver and four controllers are up"
	if !hasManager {
		running = "etcd and kube-apiserver are up (from " + binaries + ")"
	}
	console.done("%s, with the CRDs of two examples (%s)", running, formatDuration(time.Since(begin)))
	if !hasManager {
		console.note("no kube-controller-manager is installed: the demo does the work of the garbage collector and of the " +
			"Deployment controller")
	}
	path := filepath.Join(dir, "kubeconfig")
	text, err := controlplane.Kubeconfig(plane.Config())
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		_ = plane.Stop() // report the first error
		return nil, "", false, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return plane, path, hasManager, nil
}
