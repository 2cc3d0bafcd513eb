package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/corollary-dev/corollary/hack/bench/work"
	"github.com/corollary-dev/corollary/internal/controlplane"
)

// manySample is what one process with so many operators was measured to do.
type manySample struct {
	Operators, Kinds int
	// Seconds from the start of the process until /readyz reports that all operators work, and the CPU time until it is
	// idle.
	Ready, CPU float64
	// Requests of the start, by verb and resource.
	Requests map[string]int
	// Memory and goroutines after a minute at rest, and the CPU time in that minute. Bytes.
	RSS, Anonymous   int64
	Heap, Goroutines float64
	RestCPU          float64
	// Reload and Noise are measured with the most operators only.
	Reload *reloadSample `json:",omitempty"`
	Noise  []noiseSample `json:",omitempty"`
}

// reloadSample is what a change of one config takes.
type reloadSample struct {
	// Seconds from the write of the file until an object has the changed text.
	Active, CPU float64
	Requests    map[string]int
	// Reloaded is how many operators were started again.
	Reloaded float64
}

// restTime is how long processes rest before their memory is read: configs are read again twice meanwhile.
const restTime = time.Minute

// ticking is the CPU time that each idle operator may use while the process is watched for being idle.
const ticking = 2 * time.Millisecond

// fleet is one process with many operators.
type fleet struct {
	*run
	members []member
	configs string // directory
	probe   string // address
}

// manyOperators measures processes with so many operators, in this order.
func (b *bench) manyOperators(ctx context.Context, operators []int, kinds int) ([]manySample, error) {
	if err := b.createFleetObjects(ctx, kinds); err != nil {
		return nil, err
	}
	var list []manySample
	for i, n := range operators {
		fmt.Fprintf(os.Stderr, "%d operators over %d kinds\n", n, min(n, kinds))
		s, err := b.manySample(ctx, n, kinds, i == len(operators)-1)
		if s.Goroutines > 0 {
			list = append(list, s)
		}
		if err != nil {
			return list, fmt.Errorf("%d operators (logs: %s): %w", n, b.dir, err)
		}
	}
	return list, nil
}

// createFleetObjects creates a custom resource for each operator; the two that share a watch share it, too.
func (b *bench) createFleetObjects(ctx context.Context, kinds int) error {
	for kind := range kinds {
		for variant := range tiers {
			m := member{kind, variant}
			if variant > 0 && m.tier() == (member{kind, variant - 1}).tier() {
				continue
			}
			c, err := fleetCluster(b.plane.Config(), m, 1)
			if err != nil {
				return err
			}
			if err := c.createFor(ctx, m); err != nil {
				return err
			}
		}
	}
	c, err := fleetCluster(b.plane.Config(), noisy, 0)
	if err != nil {
		return err
	}
	return c.createInput(ctx)
}

// newFleet writes the configs of operators, and prepares a user whose requests are counted.
func (b *bench) newFleet(operators, kinds int) (*fleet, error) {
	name := fmt.Sprintf("fleet-%d", operators)
	f := &fleet{run: &run{bench: b, cluster: &cluster{}, namespace: name, ticking: time.Duration(operators) * ticking},
		configs: filepath.Join(b.dir, name)}
	if err := os.Mkdir(f.configs, 0o700); err != nil {
		return nil, err
	}
	for i := range operators {
		f.members = append(f.members, memberAt(i, kinds))
		if err := f.members[i].writeConfig(f.configs, "first"); err != nil {
			return nil, err
		}
	}
	f.program = &program{name: "corollary", operator: true, command: func(o work.Options) []string {
		return f.command(f.configs, f.probe, o)
	}}
	if err := f.user(); err != nil {
		return nil, err
	}
	var err error
	f.log, err = os.Create(filepath.Join(b.dir, name+".log"))
	return f, err
}

// command runs the operators of a directory.
func (f *fleet) command(dir, probe string, o work.Options) []string {
	return []string{filepath.Join(f.dir, "corollary"), "run", "-c", dir, "--kubeconfig", o.Kubeconfig,
		"--metrics-bind-address", o.Metrics, "--pprof-bind-address", o.Pprof, "--health-probe-bind-address", probe}
}

func (b *bench) manySample(ctx context.Context, operators, kinds int, last bool) (s manySample, err error) {
	f, err := b.newFleet(operators, kinds)
	if err != nil {
		return s, err
	}
	defer f.log.Close()
	defer func() { err = errors.Join(err, f.stop()) }()
	s = manySample{Operators: operators, Kinds: min(operators, kinds)}
	if _, err := f.begin(ctx); err != nil { // which creates the ConfigMaps
		return s, err
	}
	if err := f.stop(); err != nil {
		return s, err
	}
	if err := f.measureStart(ctx, &s); err != nil {
		return s, err
	}
	if err := f.measureRest(ctx, &s); err != nil || !last {
		return s, err
	}
	if s.Reload, err = f.measureReload(ctx); err != nil {
		return s, fmt.Errorf("reload: %w", err)
	}
	if !slices.Contains(f.members, noisy) || !slices.Contains(f.members, edited) {
		return s, nil
	}
	s.Noise, err = f.measureNoise(ctx)
	return s, err
}

// begin starts the process, and returns how long it took until all operators worked. It waits until the process is
// idle.
func (f *fleet) begin(ctx context.Context) (ready time.Duration, err error) {
	if f.probe, err = controlplane.FreeAddress(); err != nil {
		return 0, err
	}
	began := time.Now()
	if f.process, err = f.program.start(f.started(), f.log); err != nil {
		return 0, err
	}
	defer f.profileFor(ctx, "start", profileTime)()
	const poll, limit = 20 * time.Millisecond, 5 * time.Minute
	err = wait.PollUntilContextTimeout(ctx, poll, limit, true, func(ctx context.Context) (bool, error) {
		response, err := get(ctx, "http://"+f.probe+"/readyz")
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return 0, fmt.Errorf("waiting until the operators work: %w", err)
	}
	ready = time.Since(began)
	_, err = f.settle(ctx, 0)
	return ready, err
}

// measureStart starts the process while all objects are in sync.
func (f *fleet) measureStart(ctx context.Context, s *manySample) error {
	if _, err := f.tally(); err != nil { // what came before is not counted
		return err
	}
	offset := f.offset
	ready, err := f.begin(ctx)
	if err != nil {
		return err
	}
	s.Ready = ready.Seconds()
	f.offset = offset
	if s.Requests, err = f.tally(); err != nil {
		return err
	}
	used, err := f.process.cpu()
	s.CPU = used.Seconds()
	return err
}

// measureRest reads what the process needs while nothing happens.
func (f *fleet) measureRest(ctx context.Context, s *manySample) error {
	if err := f.process.collectGarbage(ctx); err != nil {
		return err
	}
	before, err := f.process.cpu()
	if err != nil {
		return err
	}
	wait := f.profileFor(ctx, "rest", restTime)
	err = pause(restTime)(nil, ctx)
	if wait(); err != nil {
		return err
	}
	after, err := f.process.cpu()
	if err != nil {
		return err
	}
	s.RestCPU = (after - before).Seconds()
	if f.profiles != "" {
		if err := f.process.dump(ctx, filepath.Join(f.profiles, f.namespace)); err != nil {
			return err
		}
	}
	if err := f.process.collectGarbage(ctx); err != nil {
		return err
	}
	u, err := f.process.usage(ctx, "")
	if err != nil {
		return err
	}
	s.RSS, s.Anonymous, s.Heap = u.rss, u.anonymous, u.heap
	s.Goroutines, err = f.process.gauge(ctx, "go_goroutines")
	return err
}

// measureReload changes one config.
func (f *fleet) measureReload(ctx context.Context) (*reloadSample, error) {
	m := f.members[len(f.members)/4]
	c, err := fleetCluster(f.plane.Config(), m, 1)
	if err != nil {
		return nil, err
	}
	reloads, err := f.process.gauge(ctx, "corollary_config_reloads_total")
	if err != nil {
		return nil, err
	}
	if _, err := f.tally(); err != nil {
		return nil, err
	}
	before, err := f.process.cpu()
	if err != nil {
		return nil, err
	}
	began, offset := time.Now(), f.offset
	if err := m.writeConfig(f.configs, "second"); err != nil {
		return nil, err
	}
	if err := c.waitForVersion(ctx, fmt.Sprintf("%s-%d", c.names[0], m.variant), "second"); err != nil {
		return nil, err
	}
	s := &reloadSample{Active: time.Since(began).Seconds()}
	if _, err := f.settle(ctx, 0); err != nil {
		return nil, err
	}
	after, err := f.process.cpu()
	if err != nil {
		return nil, err
	}
	s.CPU, f.offset = (after - before).Seconds(), offset
	if s.Requests, err = f.tally(); err != nil {
		return nil, err
	}
	s.Reloaded, err = f.process.gauge(ctx, "corollary_config_reloads_total")
	s.Reloaded -= reloads
	return s, err
}

// waitForVersion waits until a ConfigMap has the text of a config.
func (c *cluster) waitForVersion(ctx context.Context, name, version string) error {
	const poll, limit = 10 * time.Millisecond, time.Minute
	return wait.PollUntilContextTimeout(ctx, poll, limit, true, func(ctx context.Context) (bool, error) {
		u, err := c.configMaps.Get(ctx, name, metav1.GetOptions{})
		return err == nil && u.GetAnnotations()[versionAnnotation] == version, err
	})
}

// tally counts the requests of the process since the last call, by verb and resource.
func (f *fleet) tally() (map[string]int, error) {
	events, offset, err := f.plane.ReadAuditFrom(f.offset)
	if err != nil {
		return nil, err
	}
	f.offset = offset
	counts := map[string]int{}
	for _, e := range events {
		if e.User.Username == f.namespace {
			counts[requestName(e)]++
		}
	}
	return counts, nil
}

// requestName is the verb and the resource of a request; those of all custom kinds are one.
func requestName(e controlplane.AuditEvent) string {
	path, _, _ := strings.Cut(e.RequestURI, "?")
	switch {
	case e.ObjectRef != nil && strings.HasSuffix(e.ObjectRef.APIGroup, work.GroupVersion.Group):
		return e.Verb + " custom resources"
	case e.ObjectRef != nil:
		return e.Verb + " " + e.ObjectRef.Resource
	case path == "/openapi/v3":
		return "get OpenAPI index"
	case strings.HasPrefix(path, "/openapi/"):
		return "get OpenAPI document"
	case path == "/version":
		return "get version"
	}
	return "get discovery"
}

func (o options) manyFile() string { return filepath.Join(o.out, "configs.json") }

// runMany measures processes of many operators, and writes the samples.
func (b *bench) runMany(ctx context.Context, o options, operators []int) error {
	samples, err := b.manyOperators(ctx, operators, o.kinds)
	if len(samples) == 0 {
		return err
	}
	fmt.Print(manyTables(samples))
	text, failed := json.MarshalIndent(samples, "", " ")
	if failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, os.WriteFile(o.manyFile(), text, 0o644))
}

func (o options) readMany() (list []manySample, err error) {
	text, err := os.ReadFile(o.manyFile())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", o.manyFile(), err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no samples: run make bench-configs", o.manyFile())
	}
	return list, nil
}
