// Command demo shows the main features on a real API server: it starts a control plane and the built binary with the
// example configs, and explains each step. Every step checks its result and has a deadline, so the demo is also a test.
// On a terminal it stays up until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// stepTimeout limits each step. Most take milliseconds; a rollout takes a second or two.
const stepTimeout = 45 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	interrupted := ctx.Err() != nil
	stop()
	if interrupted && errors.Is(err, context.Canceled) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// step is one step of the demo.
type step struct {
	title string
	run   func(context.Context, *environment) error
}

var steps = []step{
	{"A custom resource, and what follows from it", showChain},
	{"A custom resource for an application", showApp},
	{"Somebody tampers", showRepair},
	{"An invalid custom resource", showInvalid},
	{"An injection", showInjection},
	{"A change of the spec", showChange},
	{"Deletion", showDeletion},
	{"The requests it took", showRequests},
}

// run starts everything, runs the steps and stops everything.
func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "corollary-demo-")
	if err != nil {
		return fmt.Errorf("creating a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	console := newPrinter(os.Stdout)
	plane, kubeconfig, hasManager, err := startPlane(ctx, console, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	child, err := startCorollary(ctx, console, kubeconfig, filepath.Join(dir, "corollary.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	s, err := newEnvironment(console, plane, child, hasManager)
	if err != nil {
		return err
	}
	if err := s.runSteps(ctx); err != nil {
		return err
	}
	if console.terminal {
		console.say("\nIt stays up until Ctrl-C. In another terminal:\n")
		console.block(fmt.Sprintf("export KUBECONFIG=%s\nkubectl apply -f examples/configs/chain/cr.yaml\nkubectl get "+
			"websites,pages,configmaps\ntail -f %s",
			kubeconfig, child.log))
		<-ctx.Done()
	}
	console.say("\nStopping.")
	return nil
}

// runSteps runs the steps. If one fails, it shows the log of corollary.
func (s *environment) runSteps(ctx context.Context) error {
	for i, step := range steps {
		s.console.title(i+1, step.title)
		if err := s.runStep(ctx, step); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("step %d (%s): %w\n\nThe end of corollary's log:\n%s", i+1, step.title, err, s.child.tail())
		}
	}
	return nil
}

func (s *environment) runStep(ctx context.Context, step step) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return step.run(ctx, s)
}
