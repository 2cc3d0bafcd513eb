package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// shardTables is a table for each number and size of objects, with a column for each number of processes.
func shardTables(samples []shardSample) string {
	slices.SortStableFunc(samples, func(a, b shardSample) int {
		return cmp.Or(cmp.Compare(a.Objects, b.Objects), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Processes, b.Processes),
			cmp.Compare(a.where(), b.where()))
	})
	var out strings.Builder
	for len(samples) > 0 {
		first := samples[0]
		n := 0
		for n < len(samples) && samples[n].Objects == first.Objects && samples[n].Size == first.Size {
			n++
		}
		shardTable(&out, samples[:n])
		samples = samples[n:]
	}
	return out.String()
}

// where says who filters, and what limits the memory.
func (s shardSample) where() (text string) {
	if s.Filtered {
		text = ", filtered"
	}
	if s.Memory != "" {
		text += ", GOMEMLIMIT=" + s.Memory
	}
	return text
}

func shardTable(out *strings.Builder, cells []shardSample) {
	fmt.Fprintf(out, "\n| %s objects of %s, in sync at the start |", count(cells[0].Objects), sizeName(cells[0].Size))
	for _, s := range cells {
		fmt.Fprintf(out, " %s%s |", processCount(s.Processes), s.where())
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(cells)) + "\n")
	for _, row := range []struct {
		name string
		of   func(shardSample) string
	}{
		{"anonymous memory of each, the largest", func(s shardSample) string {
			return megabytes(float64(slices.Max(s.Anonymous)))
		}},
		{"resident memory of each at the peak, the largest", func(s shardSample) string {
			return megabytes(float64(slices.Max(s.Peak)))
		}},
		{"received by each, the most", func(s shardSample) string { return megabytes(float64(slices.Max(s.Received))) }},
		{"settled after", func(s shardSample) string { return seconds(s.Seconds) }},
		{"CPU time of all until then", func(s shardSample) string { return seconds(s.CPU) }},
		{"requests of all until then, writes", func(s shardSample) string {
			return fmt.Sprintf("%s, %d", count(s.Requests), s.RestWrites)
		}},
		{"changes a second under load", func(s shardSample) string { return fmt.Sprintf("%.0f", s.Rate) }},
		{"queue p99, reconcile p99 under load, the slowest", func(s shardSample) string {
			return shortSeconds(s.QueueP99) + ", " + shortSeconds(s.ReconcileP99)
		}},
		{"CPU time of all for each change", func(s shardSample) string { return milliseconds(s.LoadCPU) }},
	} {
		fmt.Fprintf(out, "| %s |", row.name)
		for _, s := range cells {
			fmt.Fprintf(out, " %s |", row.of(s))
		}
		out.WriteString("\n")
	}
}

func processCount(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}
