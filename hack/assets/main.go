// Command assets prints the directory that holds the control plane's binaries,
// for KUBEBUILDER_ASSETS, and builds them first where they are not there yet.
// Standard output is that one line; progress goes to standard error.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/corollary-dev/corollary/internal/assets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := assets.Build(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "assets: %v\n", err)
		os.Exit(1) //nolint:gocritic // nothing is left that stop would have to undo
	}
	fmt.Println(dir)
}
