// Package sim_test runs the whole engine with a cluster in memory and a virtual clock, with random edits, deletions,
// config changes, lagging watches, lost requests and responses, and killed or disconnected processes. In the end the
// cluster must be as `render` says, and no work may be left.
package sim_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
)

var (
	seeds  = flag.Uint64("seeds", 2, "how many schedules are run for each setup; of random setups, ten times as many")
	first  = flag.Uint64("seed", 1, "the first one")
	keep   = flag.String("keep", "", "name of a file in testdata for the schedule that fails, once it is shrunk")
	survey = flag.Bool("survey", false, "only count the schedules that fail")
)

// TestSimulation is deterministic: go test ./internal/sim -run TestSimulation/SETUP -seed N -seeds 1 repeats a failure.
func TestSimulation(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(setups)) {
		t.Run(name, func(t *testing.T) { explore(t, *seeds, func(uint64) Setup { return setups[name] }) })
	}
	t.Run("random", func(t *testing.T) { explore(t, 10**seeds, randomSetup) })
}

// TestExamples runs the operators of examples/configs.
func TestExamples(t *testing.T) {
	entries := must.Get(os.ReadDir(examples)).In(t)
	for _, entry := range entries {
		if entry.IsDir() {
			t.Run(entry.Name(), func(t *testing.T) {
				explore(t, *seeds, func(seed uint64) Setup { return Setup{Example: entry.Name(), Replicas: 1 + int(seed%4)/3} })
			})
		}
	}
}

// TestKept runs the schedules that found a fault.
func TestKept(t *testing.T) {
	paths := must.Get(filepath.Glob("testdata/*.yaml")).In(t)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			s := must.Get(readSchedule(path)).In(t)
			if r := simulate(t, s); len(r.problems) > 0 {
				t.Errorf("%s\n%s", strings.Join(r.problems, "\n"), strings.Join(r.trace, "\n"))
			}
		})
	}
}

// explore runs the schedules of several seeds. It shrinks and reports one that fails.
func explore(t *testing.T, n uint64, setup func(seed uint64) Setup) {
	failed := 0
	for seed := *first; seed < *first+n; seed++ {
		s := scheduleOf(seed, setup(seed))
		r := simulate(t, s)
		switch {
		case len(r.problems) == 0:
			continue
		case *survey:
			failed++
			fmt.Printf("seed %d: %s\n", seed, r.problems[0])
			continue
		}
		least, r := shrink(t, s, r)
		t.Errorf("seed %d:\n%s\n%s\n%s", seed, strings.Join(r.problems, "\n"), least.String(), strings.Join(r.trace, "\n"))
		if *keep != "" {
			must.Do(t, os.WriteFile(filepath.Join("testdata", *keep+".yaml"), []byte(least.String()), 0o600))
		}
		return
	}
	if *survey {
		fmt.Printf("%s: %d of %d schedules fail\n", t.Name(), failed, n)
	}
}

// result is the result of a run.
type result struct {
	problems, trace []string
	faults          []Fault
}

// simulate runs a schedule.
func simulate(t *testing.T, s Schedule) (r result) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s)
		ctx, end := context.WithCancel(t.Context())
		go w.runControllers(ctx)
		var lives sync.WaitGroup
		for _, replica := range w.replicas {
			lives.Go(func() { replica.run(ctx) })
		}
		for _, step := range s.Steps {
			w.step(ctx, step)
		}
		w.settle(ctx)
		w.check(ctx)
		if len(w.problems) == 0 {
			w.checkRequestCounts(ctx)
		}
		for _, replica := range w.replicas {
			if p := replica.alive(); p != nil {
				p.kill()
			}
		}
		end()
		lives.Wait()
		r = result{w.problems, w.trace, w.faults}
	})
	return r
}

// settle stops all faults and actions, and waits until all work is done.
func (w *world) settle(ctx context.Context) {
	w.setNoFaults(true)
	w.reconnect()
	w.logf("from here on nothing fails and nobody acts")
	if w.variant.broken > 0 {
		w.reloadAll(ctx, 10)
	}
	if w.Setup.Input != "" {
		did, err := w.changeInput(ctx, 1)
		w.logf("somebody %s: %v", did, err)
	}
	w.unpause(ctx)
	w.removeForeign(ctx)
	wait(3 * time.Minute)
	if len(w.replicas) > 1 {
		wait(time.Minute)
	}
	w.endNamespace(ctx)
}

// endNamespace checks that a namespace that was deleted is gone, and creates it again.
func (w *world) endNamespace(ctx context.Context) {
	if !w.Setup.Terminating {
		return
	}
	u, err := w.users.Resource(namespaces).Get(ctx, "ns", getOptions)
	switch {
	case err == nil && u.GetDeletionTimestamp() == nil:
		return
	case err == nil:
		w.problem("the namespace is still being deleted: %v", u.Object["status"])
		return
	}
	w.foreign, w.orphaned = map[string]*unstructured.Unstructured{}, map[string]bool{}
	again := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	again.SetName("ns")
	must.Get(w.cluster.Put(again)).In(w.t)
	wait(time.Minute)
}

// unpause ends all pauses.
func (w *world) unpause(ctx context.Context) {
	for _, c := range w.pipelines() {
		pause := c.Pipeline.Config.Conventions.Pause
		if pause == nil {
			continue
		}
		for _, u := range w.list(ctx, c.Pipeline.Upstream.GVK) {
			if err := w.merge(ctx, u, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, pause.Annotation)); err != nil {
				w.logf("the pause of %s stays: %v", u.GetName(), err)
			}
		}
	}
}

// exists reports whether an object exists.
func (w *world) exists(ctx context.Context, u *unstructured.Unstructured) bool {
	_, err := w.of(u).Get(ctx, u.GetName(), getOptions)
	return err == nil
}
