package command

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
)

// UntilSignal returns a context that ends at the first SIGINT (Ctrl-C) or SIGTERM. A second one ends the process at
// once, with exit code 1. Call stop when the work is done.
func UntilSignal(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2) // neither may be lost while the other is looked at
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-done:
				return
			case <-signals:
				if ctx.Err() != nil {
					os.Exit(1)
				}
				cancel()
			}
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(done)
		cancel()
	})
}

// RunUntilSignal makes a function the RunE of a command that the first SIGINT or SIGTERM interrupts.
func RunUntilSignal(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := UntilSignal(cmd.Context())
		defer stop()
		return run(ctx, args)
	}
}
