// Command stages divides the CPU time of the phases of bench-operators among stages, such as reading events or
// rendering: by the profiles and samples.json that bench-operators -profile has written into a directory. It prints a
// Markdown table for each size, in µs for each object. What a stage allocates is part of it; the garbage collector is a
// stage of its own.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// stage is a part of the work, with beginnings of the names of functions that belong to it.
type stage struct {
	name      string
	functions []string
}

const module = "github.com/corollary-dev/corollary/pkg/"

// stages are asked in this order about each function of a stack, innermost first: the first that knows one has it.
var stages = []stage{
	{"garbage collector", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcAssist"}},
	{"compress", []string{module + "informers/kept.(*Texts).compress", "github.com/klauspost/compress/zstd.(*Encoder)",
		"github.com/klauspost/compress/zstd.(*fastEncoder"}},
	{"expand", []string{module + "informers/kept.text.object", "github.com/klauspost/compress/zstd.(*Decoder)"}},
	{"read JSON", []string{module + "informers/kept.decode", module + "informers/kept.(*frames)", "encoding/json.(*dec",
		"encoding/json.Unmarshal", "k8s.io/apimachinery/pkg/runtime/serializer", "sigs.k8s.io/json",
		"k8s.io/apimachinery/pkg/util/json"}},
	{"read protobuf", []string{"k8s.io/api/core/v1.(*ConfigMap).Unmarshal",
		"k8s.io/apimachinery/pkg/apis/meta/v1.(*"}},
	{"what a view keeps", []string{module + "drift.", module + "canonical."}},
	{"render", []string{module + "render", module + "operator/desired", module + "rules"}},
	{"decide and report", []string{module + "operator", module + "status", module + "reconcile/observe"}},
	{"write JSON", []string{"encoding/json.Marshal", "encoding/json.(*Encoder)", "encoding/json.(*encodeState",
		module + "apply.", "sigs.k8s.io/structured-merge-diff"}},
	{"TLS", []string{"crypto/"}},
	{"HTTP", []string{"net/http", "golang.org/x/net/http2", "internal/poll", "net.", "bufio"}},
	{"metrics and logs", []string{"github.com/prometheus", module + "engine/metrics", module + "reconcile/events",
		"github.com/go-logr", "go.uber.org/zap", "k8s.io/klog"}},
	{"reconcile", []string{module + "reconcile", module + "engine", "sigs.k8s.io/controller-runtime", "main."}},
	{"queues and caches", []string{module + "informers", "k8s.io/client-go", "k8s.io/apimachinery"}},
	{"scheduler", []string{"runtime.schedule", "runtime.mcall", "runtime.park_m", "runtime.mstart", "runtime.sysmon",
		"runtime.goexit"}},
}

// nameless is the stage of what no stage knows.
const nameless = "other"

// stageOf finds the stage of a stack, innermost function first.
func stageOf(stack []string) string {
	for _, function := range stack {
		for _, s := range stages {
			if slices.ContainsFunc(s.functions, func(f string) bool { return strings.HasPrefix(function, f) }) {
				return s.name
			}
		}
	}
	return nameless
}

// shares divides the samples of a CPU profile among the stages: parts of 1.
func shares(p *profile.Profile) map[string]float64 {
	of, all := map[string]float64{}, 0.0
	for _, s := range p.Sample {
		var stack []string
		for _, location := range s.Location {
			for _, line := range location.Line {
				stack = append(stack, line.Function.Name)
			}
		}
		ns := float64(s.Value[len(s.Value)-1])
		of[stageOf(stack)] += ns
		all += ns
	}
	for name := range of { // none, if the process did nothing
		of[name] /= all
	}
	return of
}

// sample is one line of samples.json.
type sample struct {
	Program, Phase       string
	Objects, Size, Round int
	CPU                  float64
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: stages DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "stages: %v\n", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "samples.json"))
	if err != nil {
		return err
	}
	var samples []sample
	if err := json.Unmarshal(text, &samples); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	columns := map[int][]column{}
	for _, s := range samples {
		c, err := columnOf(dir, s)
		if err != nil {
			return err
		}
		if c != nil {
			columns[s.Size] = append(columns[s.Size], *c)
		}
	}
	if len(columns) == 0 {
		return fmt.Errorf("%s has no profiles of the phases in samples.json: measure with bench-operators -profile", dir)
	}
	for _, size := range slices.Sorted(maps.Keys(columns)) {
		fmt.Print(table(size, columns[size]))
	}
	return nil
}

// column is what a phase of a program costs, in µs for each object.
type column struct {
	title  string
	stages map[string]float64
	sum    float64
}

// columnOf reads the profile of a sample; nil if there is none.
func columnOf(dir string, s sample) (*column, error) {
	path := filepath.Join(dir, fmt.Sprintf("%s-%d-%d-%d-%s.pprof", s.Program, s.Objects, s.Size, s.Round,
		strings.ReplaceAll(s.Phase, " ", "-")))
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &column{title: s.Phase + ", " + s.Program, stages: shares(p), sum: 1e6 * s.CPU / float64(s.Objects)}
	for name := range c.stages {
		c.stages[name] *= c.sum
	}
	return c, nil
}

func table(size int, columns []column) string {
	var out strings.Builder
	slices.SortStableFunc(columns, func(a, b column) int { return cmp.Compare(a.title, b.title) })
	fmt.Fprintf(&out, "\n| %d bytes, µs for each object |", size)
	for _, c := range columns {
		fmt.Fprintf(&out, " %s |", c.title)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, s := range append(slices.Clone(stages), stage{name: nameless}) {
		fmt.Fprintf(&out, "| %s |", s.name)
		for _, c := range columns {
			fmt.Fprintf(&out, " %.0f |", c.stages[s.name])
		}
		out.WriteString("\n")
	}
	out.WriteString("| **all** |")
	for _, c := range columns {
		fmt.Fprintf(&out, " **%.0f** |", c.sum)
	}
	return out.String() + "\n"
}
