// Command assets builds what tests and demonstrations run, where it is not there
// yet: the control plane, the tools and, where it is asked for, the control plane
// of the oldest Kubernetes supported. Its arguments name what is wanted; without
// any it is all of them but that last one. Standard output has a line for each: the
// directory of the control plane's binaries (KUBEBUILDER_ASSETS), the file of a
// tool. Progress goes to standard error.
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

// The arguments that stand for the control planes.
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
			os.Exit(1) //nolint:gocritic // nothing is left that stop would have to undo
		}
		fmt.Println(path)
	}
}

// build returns where the thing with the name is, after building it if need be.
func build(ctx context.Context, name string) (string, error) {
	switch name {
	case controlPlane:
		return assets.Build(ctx, os.Stderr)
	case oldest:
		return assets.BuildOldest(ctx, os.Stderr)
	}
	return tools.Build(ctx, name, os.Stderr)
}
