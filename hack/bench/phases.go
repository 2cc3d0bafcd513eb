package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/hack/bench/work"
	"github.com/corollary-dev/corollary/internal/controlplane"
)

// sample is what one program needed for one phase. Figures are for the whole phase, not for each object.
type sample struct {
	Program string  `json:"program"`
	Phase   string  `json:"phase"`
	Objects int     `json:"objects"`
	Size    int     `json:"size"` // bytes of data in each object
	Round   int     `json:"round"`
	Seconds float64 `json:"seconds"` // until the last write of the program, or until it computes no more
	CPU     float64 `json:"cpu"`     // seconds
	Writes  int     `json:"writes"`
	Reads   int     `json:"reads"` // lists and watches included
	Mallocs float64 `json:"mallocs"`
	Bytes   float64 `json:"bytes"` // allocated
	Heap    float64 `json:"heap"`  // bytes, after the phase
	RSS     int64   `json:"rss"`   // bytes, after the phase
	Peak    int64   `json:"peak"`  // bytes, the highest RSS of the process so far
	// Anonymous is the part of RSS, in bytes, that belongs to no file.
	Anonymous int64 `json:"anonymous"`
	// Quantiles in seconds; absent if the program has no such metric.
	QueueP50     float64 `json:"queueP50,omitempty"`
	QueueP99     float64 `json:"queueP99,omitempty"`
	ReconcileP50 float64 `json:"reconcileP50,omitempty"`
	ReconcileP99 float64 `json:"reconcileP99,omitempty"`
	// Seconds from an edit to the event that shows its repair, one edit at a time.
	RepairP50 float64 `json:"repairP50,omitempty"`
	RepairP99 float64 `json:"repairP99,omitempty"`
	Rate      float64 `json:"rate,omitempty"` // changes a second that the API server took under load
}

// phase is something that happens to all objects.
type phase struct {
	name string
	// writes is how many writes of the program for each object it takes at least.
	writes float64
	// start: the program is started again, after do.
	start bool
	// plotted: its cost for each object is shown by the number of objects.
	plotted bool
	// operators: only programs that compare, repair and elect do it.
	operators bool
	// once: it is done in the first round only, since it takes more than a minute.
	once bool
	// settled: operators collect their garbage before their memory is read.
	settled bool
	// before happens before the phase, and is not measured.
	before func(*run, context.Context) error
	do     func(*run, context.Context) error
}

// phases in the order in which they happen to the same objects.
var phases = []phase{
	{name: "create", plotted: true, writes: 2, start: true, do: (*run).create},
	{name: "foreign change", plotted: true, do: (*run).foreignChange},
	{name: "drift", plotted: true, writes: 1, operators: true, do: (*run).drift},
	{name: "update", plotted: true, writes: 2, do: (*run).update},
	{name: "input burst", plotted: true, writes: 1, operators: true, do: (*run).changeInput},
	{name: "repair", operators: true, do: (*run).repairs},
	{name: "load", operators: true, do: (*run).load},
	{name: "rest", do: pause(10 * time.Second)},
	{name: "restart", plotted: true, start: true, settled: true, do: func(*run, context.Context) error { return nil }},
	{name: "resync", operators: true, once: true, before: (*run).resyncOften, do: pause(resync + resync/4)},
	{name: "takeover", writes: 1. / takeoverDrift, operators: true, before: (*run).elect, do: (*run).takeOver},
	{name: "delete", plotted: true, do: (*run).delete},
}

const (
	// resync is the shortest period of Corollary.
	resync = time.Minute
	// takeoverDrift: each such object has drifted when the standby takes over.
	takeoverDrift = 10
)

func pause(d time.Duration) func(*run, context.Context) error {
	return func(_ *run, ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}

// resyncOften starts the program with a short resync period.
func (r *run) resyncOften(ctx context.Context) (err error) {
	if err = r.stop(); err != nil {
		return err
	}
	o := r.started()
	o.Resync = resync
	if r.process, err = r.program.start(o, r.log); err != nil {
		return err
	}
	_, err = r.settle(ctx, 0)
	return err
}

// elect starts two processes, of which the first is the leader, and the other one the standby.
func (r *run) elect(ctx context.Context) (err error) {
	if err = r.stop(); err != nil {
		return err
	}
	o := r.started()
	o.Lease = r.program.name
	for range 2 {
		r.leader = r.process
		if r.process, err = r.program.start(o, r.log); err != nil {
			return err
		}
		if _, err = r.settle(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// takeOver ends the leader. Some objects drift while no process acts.
func (r *run) takeOver(ctx context.Context) error {
	leader := r.leader
	r.leader = nil
	if err := leader.stop(); err != nil {
		return err
	}
	return r.driftEvery(ctx, takeoverDrift)
}

// run is one program that works on the objects of a namespace of its own.
type run struct {
	*bench
	*cluster
	program *program
	process *process
	leader  *process // before a takeover

	namespace, kubeconfig string
	log                   *os.File
	offset                int64         // in the audit log
	ticking               time.Duration // CPU time that the process may use besides idleCPU and is idle
}

// newRun is about so many objects in a namespace that does not exist yet. The caller closes the log.
func (b *bench) newRun(p *program, namespace string, objects, size int) (*run, error) {
	c, err := newCluster(b.plane.Config(), work.GroupVersion.WithResource("widgets"), namespace, "w", objects, size)
	if err != nil {
		return nil, err
	}
	c.wanted = b.target
	log, err := os.Create(filepath.Join(b.dir, namespace+".log"))
	return &run{bench: b, cluster: c, program: p, namespace: namespace, log: log}, err
}

// samples runs all phases with a program. Its objects are deleted at the end.
func (b *bench) samples(ctx context.Context, p *program, objects, size, round int) (_ []sample, err error) {
	namespace := fmt.Sprintf("%s-%d-%d-%d", p.name, objects, size, round)
	r, err := b.newRun(p, namespace, objects, size)
	if err != nil {
		return nil, err
	}
	defer r.log.Close()
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = r.stop() }()
	var list []sample
	for _, ph := range b.phases {
		if ph.operators && !p.operator || ph.once && round > 0 {
			continue
		}
		s, err := r.measure(ctx, ph)
		if err != nil {
			return nil, fmt.Errorf("%s, phase %s (log: %s): %w", namespace, ph.name, r.log.Name(), err)
		}
		s.Program, s.Phase, s.Objects, s.Size, s.Round = p.name, ph.name, objects, size, round
		list = append(list, s)
	}
	return list, nil
}

// prepare creates the namespace, and a user of the program's name, whose requests the audit log counts by name.
func (r *run) prepare(ctx context.Context) error {
	client, err := dynamic.NewForConfig(r.plane.Config())
	if err != nil {
		return err
	}
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": r.namespace},
	}}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(ctx, ns, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := r.createInput(ctx); err != nil {
		return err
	}
	return r.user()
}

// user prepares the user of the program's name, and its kubeconfig.
func (r *run) user() error {
	user, err := r.plane.User(r.namespace, "system:masters")
	if err != nil {
		return err
	}
	text, err := controlplane.Kubeconfig(user)
	if err != nil {
		return err
	}
	r.kubeconfig = filepath.Join(r.dir, r.namespace+".kubeconfig")
	return os.WriteFile(r.kubeconfig, text, 0o600)
}

// measure lets one phase happen.
func (r *run) measure(ctx context.Context, ph phase) (sample, error) {
	if ph.before != nil {
		if err := ph.before(r, ctx); err != nil {
			return sample{}, err
		}
	}
	if ph.start {
		if err := r.stop(); err != nil {
			return sample{}, err
		}
		if err := ph.do(r, ctx); err != nil {
			return sample{}, err
		}
	}
	if _, err := r.requests(); err != nil { // what came before is not counted
		return sample{}, err
	}
	r.latencies, r.rate = nil, 0
	began := time.Now()
	var before usage
	var err error
	if ph.start {
		r.process, err = r.program.start(r.started(), r.log)
	} else {
		before, err = r.process.usage(ctx, r.program.reconcileMetric)
	}
	if err != nil {
		return sample{}, err
	}
	wait := r.profile(ctx, ph)
	defer wait()
	if !ph.start {
		if err := ph.do(r, ctx); err != nil {
			return sample{}, err
		}
	}
	n, err := r.settle(ctx, int(ph.writes*float64(len(r.names))))
	if err != nil {
		return sample{}, err
	}
	if ph.settled && r.program.operator {
		if err := r.process.collectGarbage(ctx); err != nil {
			return sample{}, err
		}
	}
	after, err := r.process.usage(ctx, r.program.reconcileMetric)
	if err != nil {
		return sample{}, err
	}
	s := difference(before, after)
	s.Writes, s.Reads, s.Rate = n.writes, n.reads, r.rate
	s.RepairP50, s.RepairP99 = percentile(r.latencies, 50), percentile(r.latencies, 99)
	s.Seconds = n.last.Sub(began).Seconds()
	return s, nil
}

// profile writes a profile of what the process does from now on, if that is wanted. The caller has to wait for it.
func (r *run) profile(ctx context.Context, ph phase) (wait func()) {
	return r.profileFor(ctx, ph.name, profileTime)
}

func (r *run) profileFor(ctx context.Context, phase string, time time.Duration) (wait func()) {
	var group sync.WaitGroup
	if r.profiles != "" && r.program.operator {
		path := filepath.Join(r.profiles, r.namespace+"-"+strings.ReplaceAll(phase, " ", "-")+".pprof")
		group.Go(func() {
			if err := r.process.profile(ctx, path, time); err != nil {
				fmt.Fprintf(os.Stderr, "no profile %s: %v\n", path, err)
			}
		})
	}
	return group.Wait
}

// started are the options of a process of the program.
func (r *run) started() work.Options {
	return work.Options{Kubeconfig: r.kubeconfig, Namespace: r.namespace, Resync: 10 * time.Hour}
}

// stop ends all processes.
func (r *run) stop() (err error) {
	for _, p := range []*process{r.leader, r.process} {
		if p != nil {
			err = errors.Join(err, p.stop())
		}
	}
	r.leader, r.process = nil, nil
	return err
}

// percentile is that of latencies, in seconds; 0 if there are none.
func percentile(list []time.Duration, percent int) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[(len(list)-1)*percent/100].Seconds()
}

func difference(before, after usage) sample {
	s := sample{
		CPU:     (after.cpu - before.cpu).Seconds(),
		Mallocs: after.mallocs - before.mallocs,
		Bytes:   after.allocated - before.allocated,
		Heap:    after.heap, RSS: after.rss, Peak: after.peak, Anonymous: after.anonymous,
	}
	s.QueueP50 = quantile(0.5, before.queue, after.queue)
	s.QueueP99 = quantile(0.99, before.queue, after.queue)
	s.ReconcileP50 = quantile(0.5, before.reconciles, after.reconciles)
	s.ReconcileP99 = quantile(0.99, before.reconciles, after.reconciles)
	return s
}

// requests are those of a program.
type requests struct {
	writes, reads int
	last          time.Time // of the last write; if there is none, when the program last did something
}

// requests returns those since the last call.
func (r *run) requests() (n requests, err error) {
	events, offset, err := r.plane.ReadAuditFrom(r.offset)
	if err != nil {
		return n, err
	}
	r.offset = offset
	for _, e := range events {
		switch {
		case e.User.Username != r.namespace || e.ObjectRef != nil && e.ObjectRef.Resource == "leases":
		case e.Verb == "get" || e.Verb == "list" || e.Verb == "watch":
			n.reads++
		default:
			n.writes++
			n.last = e.Received
		}
	}
	return n, nil
}

const (
	// quiet is how long a program must do nothing until a phase is over.
	quiet = 2 * time.Second
	// idleCPU is the CPU time that an idle process may use in that time.
	idleCPU = 40 * time.Millisecond
	// patienceForEach is how long a phase may take for each object, besides a minute.
	patienceForEach = 100 * time.Millisecond
)

// patience is how long a phase may take.
func (r *run) patience() time.Duration {
	return time.Minute + time.Duration(len(r.names))*patienceForEach
}

// settle waits until the program has made the writes and neither writes nor computes any more.
func (r *run) settle(ctx context.Context, writes int) (total requests, err error) {
	deadline := time.Now().Add(r.patience())
	since, used := time.Now(), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return total, ctx.Err()
		case err := <-r.process.ended:
			r.process.ended <- err
			return total, errors.Join(errors.New("the program ended"), err)
		case <-time.After(quiet / 10):
		}
		n, err := r.requests()
		if err != nil {
			return total, err
		}
		total.writes, total.reads = total.writes+n.writes, total.reads+n.reads
		if n.writes > 0 {
			total.last = n.last
		}
		cpu, err := r.process.cpu()
		if err != nil {
			return total, err
		}
		if n.writes > 0 || n.reads > 0 || cpu-used > idleCPU+r.ticking {
			since, used = time.Now(), cpu
		}
		switch {
		case time.Since(since) > quiet && total.writes >= writes:
			if total.writes == 0 {
				total.last = since
			}
			return total, nil
		case time.Now().After(deadline):
			return total, fmt.Errorf("timed out after %d of %d writes", total.writes, writes)
		}
	}
}
