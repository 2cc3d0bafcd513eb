// Command bench compares Corollary with a hand-written operator, and with a client that makes the same requests and nothing else. Each
// program does the same work on the same API server, in turn, as a process of its own. Requests are counted in the audit log.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/corollary-dev/corollary/internal/assets"
	"github.com/corollary-dev/corollary/internal/controlplane"
)

type options struct {
	objects, sizes, rounds string
	out                    string
}

func main() {
	var o options
	flag.StringVar(&o.objects, "objects", "100,1000", "numbers of objects")
	flag.StringVar(&o.sizes, "sizes", "500,4000,27000", "bytes of data in each object")
	flag.StringVar(&o.rounds, "rounds", "3", "rounds of each program")
	flag.StringVar(&o.out, "out", "bin/bench", "directory of the results")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// bench is what all runs share.
type bench struct {
	plane *controlplane.ControlPlane
	dir   string // of kubeconfigs and logs
}

func (o options) run(ctx context.Context) (err error) {
	objects, err := numbers("objects", o.objects)
	if err != nil {
		return err
	}
	sizes, err := numbers("sizes", o.sizes)
	if err != nil {
		return err
	}
	rounds, err := numbers("rounds", o.rounds)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	programs, err := build(ctx, dir)
	if err != nil {
		return err
	}
	binaries, err := assets.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Assets: binaries, CRDs: []string{definition}, Audit: true,
		Controllers: []string{controlplane.GarbageCollector, controlplane.Namespaces},
	})
	if err != nil {
		return err
	}
	defer func() {
		if stopped := plane.Stop(); err == nil {
			err = stopped
		}
		if err == nil {
			err = os.RemoveAll(dir) // otherwise the logs may help
		}
	}()
	b := &bench{plane: plane, dir: dir}
	samples, err := b.all(ctx, programs, objects, sizes, rounds[0])
	if err != nil {
		return err
	}
	return o.write(samples)
}

// all runs each program once in each round, in an order that rotates.
func (b *bench) all(ctx context.Context, programs []*program, objects, sizes []int, rounds int) ([]sample, error) {
	var list []sample
	for _, n := range objects {
		for _, size := range sizes {
			for round := range rounds {
				for i := range programs {
					p := programs[(i+round)%len(programs)]
					fmt.Fprintf(os.Stderr, "%d objects of %d bytes, round %d of %d: %s\n", n, size, round+1, rounds, p.name)
					samples, err := b.samples(ctx, p, n, size, round)
					if err != nil {
						return nil, err
					}
					list = append(list, samples...)
				}
			}
		}
	}
	return list, nil
}

// build compiles the programs into dir.
func build(ctx context.Context, dir string) ([]*program, error) {
	for name, path := range map[string]string{
		"corollary": "./cmd/corollary", "handwritten": "./hack/bench/handwritten", "floor": "./hack/bench/floor",
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), path)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("building %s: %w", name, err)
		}
	}
	goProgram := func(name string) func(string, string, string) []string {
		return func(kubeconfig, namespace, metrics string) []string {
			return []string{filepath.Join(dir, name), "-kubeconfig", kubeconfig, "-namespace", namespace, "-metrics", metrics}
		}
	}
	return []*program{
		{name: "corollary", repairs: true, reconcileMetric: "corollary_reconcile_seconds",
			command: func(kubeconfig, namespace, metrics string) []string {
				config := filepath.Join(dir, namespace+".yaml")
				if err := os.WriteFile(config, []byte(strings.ReplaceAll(operatorConfig, "NS", namespace)), 0o600); err != nil {
					panic(err) // the directory is ours
				}
				return []string{filepath.Join(dir, "corollary"), "run", "-c", config, "--kubeconfig", kubeconfig,
					"--metrics-bind-address", metrics, "--health-probe-bind-address", "0"}
			}},
		{name: "handwritten", repairs: true, reconcileMetric: "controller_runtime_reconcile_time_seconds", command: goProgram("handwritten")},
		{name: "floor", command: goProgram("floor")},
	}, nil
}

func (o options) write(samples []sample) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(samples, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.out, "samples.json"), text, 0o644); err != nil {
		return err
	}
	fmt.Print(table(samples))
	return nil
}

// numbers reads the value of a flag: positive integers, separated by commas.
func numbers(name, text string) ([]int, error) {
	var list []int
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-%s is %q: want positive integers, separated by commas", name, text)
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return list, nil
}
