// Command bench compares Corollary with a hand-written operator, and with a client that makes the same requests and
// nothing else. Each program does the same work on the same API server, in turn, as a process of its own. Requests are
// counted in the audit log.
package main

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/corollary-dev/corollary/hack/bench/work"
	"github.com/corollary-dev/corollary/internal/assets"
	"github.com/corollary-dev/corollary/internal/controlplane"
)

type options struct {
	objects, sizes, skip string
	configs, processes   string
	rounds, rate, kinds  int
	out, page            string
	add, profile         bool
	filtered             bool
	memory               string
}

func main() {
	var o options
	flag.StringVar(&o.objects, "objects", "100,1000", "numbers of objects")
	flag.StringVar(&o.sizes, "sizes", "500,4000,27000", "bytes of data in each object")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each program")
	flag.StringVar(&o.skip, "skip", "", "names of phases that are left out, separated by commas")
	flag.IntVar(&o.rate, "rate", 100, "changes a second in the phase load")
	flag.StringVar(&o.out, "out", "bin/bench", "directory of the results, samples.json")
	flag.BoolVar(&o.add, "add", false, "keep the results of -out that are about other numbers and sizes of objects")
	flag.BoolVar(&o.profile, "profile", false, "write CPU profiles of the first seconds of each phase into -out")
	flag.StringVar(&o.page, "page", "",
		"Markdown file to write the tables of samples.json and configs.json into, and plots beside it; nothing is measured")
	flag.StringVar(&o.configs, "configs", "",
		"numbers of operators in one process, such as 1,50,200: measures that, and nothing else")
	flag.IntVar(&o.kinds, "kinds", 50, "number of kinds for -configs; each has at most four operators")
	flag.StringVar(&o.processes, "processes", "",
		"numbers of processes that share shards, such as 1,2,4: measures these, and nothing else")
	flag.BoolVar(&o.filtered, "filtered", false, "have the API server filter by shard, for -processes")
	flag.StringVar(&o.memory, "memory", "",
		"measure each number of -processes once more with this GOMEMLIMIT, such as 430MiB")
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
	plane  *controlplane.ControlPlane
	dir    string // of kubeconfigs and logs
	phases []phase
	target int // changes a second under load
	// profiles is the directory of CPU profiles; "" for none.
	profiles string
}

func (o options) run(ctx context.Context) (err error) {
	if o.page != "" {
		return o.writePages()
	}
	m, err := o.matrix()
	if err != nil {
		return err
	}
	definitions := []string{definition}
	if len(m.operators) > 0 {
		definitions = fleetDefinitions(o.kinds)
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	programs, err := build(ctx, dir, len(m.operators)+len(m.processes) > 0)
	if err != nil {
		return err
	}
	binaries, err := assets.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	server := controlplane.Options{
		Assets: binaries, CRDs: definitions, Audit: true,
		Controllers: []string{controlplane.GarbageCollector, controlplane.Namespaces},
	}
	if o.filtered {
		server.FeatureGates = []string{filterGate}
	}
	plane, err := controlplane.Start(ctx, server)
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
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	b := &bench{plane: plane, dir: dir, phases: m.phases, target: o.rate}
	if o.profile {
		b.profiles = o.out
	}
	if len(m.operators) > 0 {
		return b.runMany(ctx, o, m.operators)
	}
	if len(m.processes) > 0 {
		return b.runShards(ctx, o, m)
	}
	samples, err := b.all(ctx, programs, m)
	return errors.Join(o.write(samples), err)
}

// matrix is what is measured: each phase, for each number and size of objects, so many times.
type matrix struct {
	objects, sizes []int
	rounds         int
	phases         []phase
	operators      []int // in one process, instead of all that
	processes      []int // that share shards, instead of all that
}

// matrix reads the flags.
func (o options) matrix() (m matrix, err error) {
	if m.objects, err = numbers("objects", o.objects); err != nil {
		return m, err
	}
	if m.sizes, err = numbers("sizes", o.sizes); err != nil {
		return m, err
	}
	if o.rounds < 1 || o.rate < 1 {
		return m, fmt.Errorf("-rounds is %d and -rate %d: want at least 1", o.rounds, o.rate)
	}
	m.rounds = o.rounds
	if o.processes != "" {
		m.processes, err = numbers("processes", o.processes)
		return m, err
	}
	if o.filtered || o.memory != "" {
		return m, errors.New("-filtered and -memory are for -processes")
	}
	if m.phases, err = without(o.skip); err != nil || o.configs == "" {
		return m, err
	}
	if m.operators, err = numbers("configs", o.configs); err != nil {
		return m, err
	}
	if most := m.operators[len(m.operators)-1]; o.kinds < 1 || most > o.kinds*len(tiers) {
		return m, fmt.Errorf("-configs is %s and -kinds %d: want at most %d operators for each kind",
			o.configs, o.kinds, len(tiers))
	}
	return m, nil
}

// all runs each program once in each round, in an order that rotates.
func (b *bench) all(ctx context.Context, programs []*program, m matrix) ([]sample, error) {
	var list []sample
	for _, n := range m.objects {
		for _, size := range m.sizes {
			for round := range m.rounds {
				for i := range programs {
					p := programs[(i+round)%len(programs)]
					fmt.Fprintf(os.Stderr, "%d objects of %d bytes, round %d of %d: %s\n", n, size, round+1, m.rounds, p.name)
					samples, err := b.samples(ctx, p, n, size, round)
					if err != nil {
						return list, err
					}
					list = append(list, samples...)
				}
			}
		}
	}
	return list, nil
}

// build compiles the programs into dir, or only Corollary.
func build(ctx context.Context, dir string, alone bool) ([]*program, error) {
	paths := map[string]string{"corollary": "./cmd/corollary"}
	if !alone {
		paths["handwritten"], paths["floor"] = "./hack/bench/handwritten", "./hack/bench/floor"
	}
	for name, path := range paths {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), path)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("building %s: %w", name, err)
		}
	}
	goProgram := func(name string) func(work.Options) []string {
		return func(o work.Options) []string {
			return []string{filepath.Join(dir, name), "-kubeconfig", o.Kubeconfig, "-namespace", o.Namespace,
				"-metrics", o.Metrics, "-pprof", o.Pprof, "-lease", o.Lease, "-resync", o.Resync.String()}
		}
	}
	return []*program{
		{name: "corollary", operator: true, reconcileMetric: "corollary_reconcile_seconds",
			command: func(o work.Options) []string { return corollary(dir, operatorConfig, o) }},
		{name: "handwritten", operator: true, reconcileMetric: "controller_runtime_reconcile_time_seconds",
			command: goProgram("handwritten")},
		{name: "floor", command: goProgram("floor")},
	}, nil
}

// corollary is the command that runs it on a config of the benchmark.
func corollary(dir, conf string, o work.Options) []string {
	config := filepath.Join(dir, o.Namespace+".yaml")
	text := strings.NewReplacer("NS", o.Namespace, "RESYNC", o.Resync.String()).Replace(conf)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		panic(err) // the directory is ours
	}
	args := []string{filepath.Join(dir, "corollary"), "run", "-c", config, "--kubeconfig", o.Kubeconfig,
		"--metrics-bind-address", o.Metrics, "--pprof-bind-address", o.Pprof, "--health-probe-bind-address", "0"}
	if o.Lease != "" {
		args = append(args, "--leader-elect", "--leader-election-id", o.Lease, "--leader-election-namespace", o.Namespace)
	}
	return args
}

func (o options) samples() string { return filepath.Join(o.out, "samples.json") }

func (o options) read() (list []sample, err error) {
	text, err := os.ReadFile(o.samples())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", o.samples(), err)
	}
	return list, nil
}

// write prints the samples and writes them to the file; none leave it as it is.
func (o options) write(samples []sample) error {
	if len(samples) == 0 {
		return nil
	}
	fmt.Print(table(samples))
	if o.add {
		before, err := o.read()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		before = slices.DeleteFunc(before, func(s sample) bool { return slices.ContainsFunc(samples, s.sameCell) })
		samples = append(before, samples...)
	}
	text, err := json.MarshalIndent(samples, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.samples(), text, 0o644)
}

// without are the phases that are not named. What follows needs the objects, so that "create" cannot be left out.
func without(names string) ([]phase, error) {
	left := slices.Clone(phases)
	if names == "" {
		return left, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(left, func(p phase) bool { return p.name == name && name != "create" })
		if i < 0 {
			return nil, fmt.Errorf("-skip names %q: want phases other than create", name)
		}
		left = slices.Delete(left, i, i+1)
	}
	return left, nil
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
