package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/corollary-dev/corollary/hack/bench/work"
	"github.com/corollary-dev/corollary/internal/controlplane"
)

// program is a process that does the work.
type program struct {
	name string
	// command returns the arguments, of which the first is the path of the binary.
	command func(work.Options) []string
	// reconcileMetric is the histogram of the time of one reconcile; "" if there is none.
	reconcileMetric string
	// operator is false for a program that does not compare, repair or elect.
	operator bool
	// memory is the GOMEMLIMIT of its processes; "" for none.
	memory string
}

// process is a running program.
type process struct {
	cmd     *exec.Cmd
	metrics string // address
	pprof   string // address
	log     *os.File
	ended   chan error
}

// start starts a program. Its output goes to the file log.
func (p *program) start(o work.Options, log *os.File) (_ *process, err error) {
	for _, address := range []*string{&o.Metrics, &o.Pprof} {
		if *address, err = controlplane.FreeAddress(); err != nil {
			return nil, err
		}
	}
	args := p.command(o)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.memory != "" {
		cmd.Env = append(os.Environ(), "GOMEMLIMIT="+p.memory)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	running := &process{cmd: cmd, metrics: o.Metrics, pprof: o.Pprof, log: log, ended: make(chan error, 1)}
	go func() { running.ended <- cmd.Wait() }()
	return running, nil
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the process does not end"), p.cmd.Process.Kill())
	}
}

// usage is what a process has used since its start.
type usage struct {
	cpu time.Duration
	// Bytes: the resident set, its highest value so far, and the part of it that belongs to no file.
	rss, peak, anonymous int64
	mallocs              float64
	allocated            float64 // bytes
	heap                 float64 // bytes
	queue                *dto.Histogram
	reconciles           *dto.Histogram
}

// usage reads /proc and the metrics endpoint.
func (p *process) usage(ctx context.Context, reconcileMetric string) (u usage, err error) {
	if u.cpu, err = p.cpu(); err != nil {
		return u, err
	}
	if u.rss, err = p.memory("VmRSS:"); err != nil {
		return u, err
	}
	if u.peak, err = p.memory("VmHWM:"); err != nil {
		return u, err
	}
	if u.anonymous, err = p.memory("RssAnon:"); err != nil {
		return u, err
	}
	families, err := p.scrape(ctx)
	if err != nil {
		return u, err
	}
	value := func(name string) float64 { return valueOf(families[name]) }
	u.mallocs, u.allocated = value("go_memstats_mallocs_total"), value("go_memstats_alloc_bytes_total")
	u.heap = value("go_memstats_heap_alloc_bytes")
	u.queue, u.reconciles = sumOf(families["workqueue_queue_duration_seconds"]), sumOf(families[reconcileMetric])
	return u, nil
}

// valueOf is the sum of the counters or gauges of a family.
func valueOf(family *dto.MetricFamily) (sum float64) {
	for _, m := range family.GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}

// withLabel is the part of a family whose label has that value.
func withLabel(family *dto.MetricFamily, label, value string) *dto.MetricFamily {
	part := &dto.MetricFamily{}
	for _, m := range family.GetMetric() {
		if slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool {
			return l.GetName() == label && l.GetValue() == value
		}) {
			part.Metric = append(part.Metric, m)
		}
	}
	return part
}

// ticksPerSecond is the unit of CPU times in /proc, on every Linux that Go runs on.
const ticksPerSecond = 100

// cpu is the CPU time of the process.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading the CPU time: unexpected text %q", text)
	}
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// memory is a value in bytes of /proc/PID/status, which has kilobytes.
func (p *process) memory(key string) (int64, error) {
	kilobytes, err := p.proc("status", key)
	return kilobytes * 1024, err
}

// received is how many bytes the process has read, from connections and files.
func (p *process) received() (int64, error) { return p.proc("io", "rchar:") }

// proc is a value of a file in /proc/PID.
func (p *process) proc(file, key string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		return 0, fmt.Errorf("reading what the process uses: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("reading what the process uses: %s has no %s", file, key)
}

// collectGarbage lets the process collect its garbage, so that its heap is what it needs.
func (p *process) collectGarbage(ctx context.Context) error {
	response, err := get(ctx, "http://"+p.pprof+"/debug/pprof/heap?gc=1")
	if err != nil {
		return fmt.Errorf("collecting garbage: %w", err)
	}
	return response.Body.Close()
}

// dump writes a heap profile and the stacks of all goroutines into files that begin with path.
func (p *process) dump(ctx context.Context, path string) error {
	for name, query := range map[string]string{"heap.pprof": "heap?gc=1", "goroutines.txt": "goroutine?debug=1"} {
		response, err := get(ctx, "http://"+p.pprof+"/debug/pprof/"+query)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
		if err := os.WriteFile(path+"-"+name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// gauge is a value of the metrics endpoint, the sum over its labels.
func (p *process) gauge(ctx context.Context, name string) (float64, error) {
	families, err := p.scrape(ctx)
	return valueOf(families[name]), err
}

// profileTime is how long a CPU profile takes, startTime how long to wait until a process answers.
const (
	profileTime = 5 * time.Second
	startTime   = 30 * time.Second
	profilePoll = 10 * time.Millisecond
)

// profile writes a CPU profile into a file, as soon as the process answers.
func (p *process) profile(ctx context.Context, path string, time time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, profilePoll, startTime, true, func(ctx context.Context) (bool, error) {
		response, err := get(ctx, "http://"+p.pprof+"/debug/pprof/cmdline")
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, response.Body.Close()
	})
	if err != nil {
		return err
	}
	response, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", p.pprof, time.Seconds()))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

// scrape reads the metrics endpoint.
func (p *process) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	response, err := get(ctx, "http://"+p.metrics+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("parsing metrics: %w", err)
	}
	return families, nil
}
