package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/corollary-dev/corollary/internal/must"
)

// twoRounds are samples of both operators in which Corollary needs 0.5 and 0.9 of the other one's CPU time.
func twoRounds(objects int) []sample {
	var list []sample
	for round, cpu := range []float64{1, 1.8} {
		for _, ph := range []string{"create", "repair", "load", "restart"} {
			list = append(list,
				sample{Program: "corollary", Phase: ph, Objects: objects, Size: 4000, Round: round, CPU: cpu, Seconds: 3, RSS: 50e6, Peak: 60e6,
					Anonymous: 20e6, Heap: float64(objects) * 2000, RepairP99: 0.05, Rate: 100, QueueP99: 1},
				sample{Program: "handwritten", Phase: ph, Objects: objects, Size: 4000, Round: round, CPU: 2, Seconds: 2, RSS: 100e6, Peak: 120e6,
					Anonymous: 80e6, Heap: float64(objects) * 8000, RepairP99: 0.04, Rate: 90, QueueP99: 2},
				sample{Program: "floor", Phase: ph, Objects: objects, Size: 4000, Round: round, CPU: 0.5, Seconds: 1})
		}
	}
	return list
}

func TestPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	must.Do(t, os.Mkdir(filepath.Join(filepath.Dir(page), "pictures"), 0o755))
	write := func(text string) {
		must.Do(t, os.WriteFile(page, []byte(text), 0o644))
	}
	samples := append(twoRounds(10000), twoRounds(100)...)
	write("# Title\nno heading for results\n")
	if err := replaceSection(page, pageBegin, pageEnd, tables(samples)); err == nil {
		t.Error("a page without the heading gives no error")
	}
	write("# Title\n" + pageBegin + "old\n" + pageEnd + "after")
	must.Do(t, errors.Join(replaceSection(page, pageBegin, pageEnd, tables(samples)), writePlots(page, samples)))
	text := must.Get(os.ReadFile(page)).In(t)
	for _, want := range []string{
		"# Title\n" + pageBegin, pageEnd + "after",
		"| CPU time, ratio | 100 × 4 KB | 10,000 × 4 KB |",
		"| create | 0.70 (0.50–0.90) | 0.70 (0.50–0.90) |",
		"| create | 1.50 (1.50–1.50) |",
		"| 100 × 4 KB | 50 MB | 60 MB | 20 MB | 100 MB | 120 MB | 80 MB | 0.50 (0.50–0.50) | 0.25 (0.25–0.25) |",
		"| 4 KB | 8.0 KB | 2.0 KB | 0.25 |",
		"| 10,000 × 4 KB | corollary | 0 ms | 50 ms | 100 | 1000 ms | 0 ms |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "old") || strings.Contains(string(text), "| drift |") {
		t.Errorf("the page has what was there before, or a phase that was not measured:\n%s", text)
	}
	for _, name := range []string{"bench-cpu.svg", "bench-memory.svg"} {
		picture, err := os.ReadFile(filepath.Join(filepath.Dir(page), "pictures", name))
		if err != nil || !strings.Contains(string(picture), ">10,000</text>") || strings.Contains(string(picture), "NaN") {
			t.Errorf("%s: %v\n%s", name, err, picture)
		}
	}
}

func TestWithout(t *testing.T) {
	if left, err := without("drift,load"); err != nil || len(left) != len(phases)-2 {
		t.Errorf("%d phases are left, %v", len(left), err)
	}
	for reason, names := range map[string]string{
		"the first phase, which all need": "create", "no such phase": "drift,nap", "twice": "drift,drift",
	} {
		if _, err := without(names); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
}

func TestPercentile(t *testing.T) {
	var list []time.Duration
	for i := range 100 {
		list = append(list, time.Duration(100-i)*time.Second)
	}
	if p50, p99, none := percentile(list, 50), percentile(list, 99), percentile(nil, 99); p50 != 50 || p99 != 99 || none != 0 {
		t.Errorf("p50 is %v, p99 %v, that of nothing %v", p50, p99, none)
	}
}

// Quantiles are those of what was observed between two readings.
func TestQuantile(t *testing.T) {
	histogram := func(counts ...uint64) *dto.Histogram {
		h := &dto.Histogram{}
		for i, n := range counts {
			upper := float64(i + 1)
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &upper, CumulativeCount: &n})
		}
		return h
	}
	for _, row := range []struct {
		reason        string
		before, after *dto.Histogram
		want          float64
	}{
		{"a process that has just started", nil, histogram(0, 10, 10), 1.5},
		{"what came before does not count", histogram(100, 100, 100), histogram(100, 110, 110), 1.5},
		{"nothing was observed", histogram(1, 2, 3), histogram(1, 2, 3), 0},
		{"no such metric", nil, nil, 0},
	} {
		if got := quantile(0.5, row.before, row.after); got != row.want {
			t.Errorf("%s: %v, want %v", row.reason, got, row.want)
		}
	}
}

func TestMatrix(t *testing.T) {
	good := options{objects: "1000,100", sizes: "500", skip: "load,rest", rounds: 3, rate: 100}
	m := must.Get(good.matrix()).In(t)
	if !slices.Equal(m.objects, []int{100, 1000}) || !slices.Equal(m.sizes, []int{500}) || m.rounds != 3 || len(m.phases) != len(phases)-2 {
		t.Errorf("%+v gave %+v", good, m)
	}
	for reason, change := range map[string]func(*options){
		"no objects":       func(o *options) { o.objects = "" },
		"a size of zero":   func(o *options) { o.sizes = "0" },
		"no rounds":        func(o *options) { o.rounds = 0 },
		"no changes":       func(o *options) { o.rate = 0 },
		"an unknown phase": func(o *options) { o.skip = "lunch" },
		"nothing created":  func(o *options) { o.skip = "create" },
		"no processes":     func(o *options) { o.processes = "0" },
		"a filter alone":   func(o *options) { o.filtered = true },
	} {
		bad := good
		change(&bad)
		if m, err := bad.matrix(); err == nil {
			t.Errorf("%s: %+v gave %+v, want an error", reason, bad, m)
		}
	}
}
