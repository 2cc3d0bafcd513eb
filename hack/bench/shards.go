package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/corollary-dev/corollary/hack/bench/work"
)

// shardSample is what processes that share shards were measured to do, all objects in sync at their start.
type shardSample struct {
	Objects, Size, Processes int
	// Filtered: the API server sends each process the objects of its shards only.
	Filtered bool
	// Memory is the GOMEMLIMIT of each process; "" for none.
	Memory string
	// Of each process: bytes of anonymous memory settled, of the highest resident set of the start, and bytes that were
	// read.
	Anonymous, Peak, Received []int64
	// Of all processes: seconds until they are settled, CPU time of that, requests other than for Leases.
	Seconds, CPU float64
	Requests     int
	// Under load: changes a second that the API server took, CPU time of all processes for each change, and quantiles of
	// the worst process, all in seconds.
	Rate, LoadCPU            float64
	QueueP99, ReconcileP99   float64
	WritesOfLoad, RestWrites int
}

const (
	// virtualShards is their number, for any number of processes.
	virtualShards = 16
	// filterGate is the feature gate of an API server that filters by shard.
	filterGate = "ShardedListAndWatch=true"
	// renewing is the CPU time that the Leases of a process take in the time in which an idle one is watched.
	renewing = 40 * time.Millisecond
)

// shardedConfig is operatorConfig with the label by which downstreams are filtered.
var shardedConfig = strings.Replace(operatorConfig, "  owner:",
	"  shard: {label: bench.example.com/shard}\n  owner:", 1)

// shardSet is several processes for the objects of one namespace. The process of run is each of them in turn.
type shardSet struct {
	*run
	processes []*process
}

// shardSamples measures sets of so many processes, for each number and size of objects.
func (b *bench) shardSamples(ctx context.Context, m matrix, o options) ([]shardSample, error) {
	var sets []shardSample
	for _, n := range m.processes {
		if sets = append(sets, shardSample{Processes: n, Filtered: o.filtered}); o.memory != "" {
			sets = append(sets, shardSample{Processes: n, Filtered: o.filtered, Memory: o.memory})
		}
	}
	var list []shardSample
	for _, n := range m.objects {
		for _, size := range m.sizes {
			samples, err := b.shardSamplesOf(ctx, n, size, sets)
			if list = append(list, samples...); err != nil {
				return list, fmt.Errorf("%d objects of %d bytes (logs: %s): %w", n, size, b.dir, err)
			}
		}
	}
	return list, nil
}

// shardSamplesOf fills in what is measured of each set of processes.
func (b *bench) shardSamplesOf(
	ctx context.Context, objects, size int, sets []shardSample,
) (list []shardSample, err error) {
	namespace := fmt.Sprintf("shards-%d-%d", objects, size)
	p := &program{name: "corollary", operator: true, reconcileMetric: "corollary_reconcile_seconds",
		command: func(o work.Options) []string {
			return append(corollary(b.dir, shardedConfig, o), "--shards", fmt.Sprint(virtualShards), "--leader-elect",
				"--leader-election-id", "bench", "--leader-election-namespace", namespace)
		}}
	r, err := b.newRun(p, namespace, objects, size)
	if err != nil {
		return nil, err
	}
	defer r.log.Close()
	r.ticking = renewing
	s := &shardSet{run: r}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.create(ctx); err != nil {
		return nil, err
	}
	if err := s.begin(ctx, 1, 2*objects); err != nil { // creates the ConfigMaps
		return nil, err
	}
	for _, one := range sets {
		one.Objects, one.Size, p.memory = objects, size, one.Memory
		fmt.Fprintf(os.Stderr, "%d objects of %d bytes, %s%s\n", objects, size, processCount(one.Processes), one.where())
		if err := s.measure(ctx, &one); err != nil {
			return list, err
		}
		list = append(list, one)
	}
	return list, nil
}

// begin ends all processes and starts so many, which make so many writes.
func (s *shardSet) begin(ctx context.Context, processes, writes int) error {
	if err := s.end(); err != nil {
		return err
	}
	for range processes {
		p, err := s.program.start(s.started(), s.log)
		if err != nil {
			return err
		}
		s.processes = append(s.processes, p)
	}
	if err := s.allHeld(ctx); err != nil {
		return err
	}
	return s.settleAll(ctx, writes)
}

// allHeld waits until the processes share all shards fairly: one that joins does nothing for some seconds before.
func (s *shardSet) allHeld(ctx context.Context) error {
	var held []int
	err := wait.PollUntilContextTimeout(ctx, quiet/10, s.patience(), true, func(ctx context.Context) (bool, error) {
		held = held[:0]
		all := 0
		for _, p := range s.processes {
			families, err := p.scrape(ctx)
			if err != nil {
				return false, nil //nolint:nilerr // it does not answer yet
			}
			n := int(valueOf(withLabel(families["corollary_shards"], "state", "held")))
			held, all = append(held, n), all+n
		}
		return all == virtualShards && slices.Min(held) >= virtualShards/len(held)-1, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the processes to share %d shards (they hold %d): %w", virtualShards, held, err)
	}
	return nil
}

// settleAll waits until no process writes or computes.
func (s *shardSet) settleAll(ctx context.Context, writes int) error {
	for _, s.process = range s.processes {
		n, err := s.settle(ctx, writes)
		if err != nil {
			return err
		}
		writes = max(writes-n.writes, 0)
	}
	return nil
}

// end ends all processes.
func (s *shardSet) end() (err error) {
	for _, p := range s.processes {
		err = errors.Join(err, p.stop())
	}
	s.processes, s.process = nil, nil
	return err
}

func (s *shardSet) measure(ctx context.Context, m *shardSample) error {
	if err := s.end(); err != nil {
		return err
	}
	if _, err := s.requests(); err != nil { // what came before is not counted
		return err
	}
	began, offset := time.Now(), s.offset
	if err := s.begin(ctx, m.Processes, 0); err != nil {
		return err
	}
	m.Seconds = (time.Since(began) - quiet*time.Duration(m.Processes)).Seconds()
	s.offset = offset
	n, err := s.requests()
	if err != nil {
		return err
	}
	m.Requests, m.RestWrites = n.reads+n.writes, n.writes
	before, err := s.usages(ctx)
	if err != nil {
		return err
	}
	for i, u := range before {
		m.CPU += u.cpu.Seconds()
		m.Peak = append(m.Peak, u.peak)
		received, err := s.processes[i].received()
		if err != nil {
			return err
		}
		m.Received = append(m.Received, received)
	}
	for _, p := range s.processes {
		if err := p.collectGarbage(ctx); err != nil {
			return err
		}
		anonymous, err := p.memory("RssAnon:")
		if err != nil {
			return err
		}
		m.Anonymous = append(m.Anonymous, anonymous)
	}
	return s.measureLoad(ctx, m)
}

// measureLoad changes objects for a while.
func (s *shardSet) measureLoad(ctx context.Context, m *shardSample) error {
	before, err := s.usages(ctx)
	if err != nil {
		return err
	}
	offset, changes := s.offset, s.changes
	if err := s.load(ctx); err != nil {
		return err
	}
	if err := s.settleAll(ctx, 2*min(s.changes-changes, len(s.names))); err != nil { // apply and status
		return err
	}
	after, err := s.usages(ctx)
	if err != nil {
		return err
	}
	s.offset = offset
	n, err := s.requests()
	if err != nil {
		return err
	}
	m.Rate, m.WritesOfLoad = s.rate, n.writes
	for i := range after {
		d := difference(before[i], after[i])
		m.LoadCPU += d.CPU / (s.rate * loadTime.Seconds())
		m.QueueP99, m.ReconcileP99 = max(m.QueueP99, d.QueueP99), max(m.ReconcileP99, d.ReconcileP99)
	}
	return nil
}

func (s *shardSet) usages(ctx context.Context) (list []usage, err error) {
	for _, p := range s.processes {
		u, err := p.usage(ctx, s.program.reconcileMetric)
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

func (o options) shardsFile() string { return filepath.Join(o.out, "shards.json") }

// runShards measures processes that share shards. The file keeps what is about other cells.
func (b *bench) runShards(ctx context.Context, o options, m matrix) error {
	samples, err := b.shardSamples(ctx, m, o)
	if len(samples) == 0 {
		return err
	}
	before, failed := o.readShards()
	if failed != nil && !errors.Is(failed, os.ErrNotExist) {
		return errors.Join(err, failed)
	}
	before = slices.DeleteFunc(before, func(old shardSample) bool { return slices.ContainsFunc(samples, old.sameCell) })
	samples = append(before, samples...)
	fmt.Print(shardTables(samples))
	text, failed := json.MarshalIndent(samples, "", " ")
	if failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, os.WriteFile(o.shardsFile(), text, 0o644))
}

func (s shardSample) sameCell(other shardSample) bool {
	return s.Objects == other.Objects && s.Size == other.Size &&
		s.Processes == other.Processes && s.where() == other.where()
}

func (o options) readShards() (list []shardSample, err error) {
	text, err := os.ReadFile(o.shardsFile())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", o.shardsFile(), err)
	}
	return list, nil
}
