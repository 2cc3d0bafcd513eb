// Command assets builds what tests and demonstrations run, if it is missing: the control plane, the tools and, on
// request, the control plane of the oldest supported Kubernetes. Its arguments are names; the default is everything
// except the last one. It prints one line for each: the directory of the control plane (KUBEBUILDER_ASSETS), or the
// file of a tool. Progress goes to standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/corollary-dev/corollary/internal/assets"
	"github.com/corollary-dev/corollary/internal/tools"
)

// Arguments for the control planes.
const (
	controlPlane = "controlplane"
	oldest       = "controlplane-oldest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	wanted := os.Args[1:]
	if len(wanted) == 0 {
		wanted = append([]string{controlPlane}, tools.Names()...)
	}
	for _, name := range wanted {
		path, err := build(ctx, name)
		if err != nil {
			fmt.Fprintf(os.Stderr, "assets: %v\n", err)
			os.Exit(1) //nolint:gocritic // stop has nothing to undo
		}
		fmt.Println(path)
	}
}

// build returns the path for the name, after building it if necessary.
func build(ctx context.Context, name string) (string, error) {
	switch name {
	case controlPlane:
		return assets.Build(ctx, os.Stderr)
	case oldest:
		return assets.BuildOldest(ctx, os.Stderr)
	}
	return tools.Build(ctx, name, os.Stderr)
}
