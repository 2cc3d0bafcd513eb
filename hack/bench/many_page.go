package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// manyTables are those of the section about many operators.
func manyTables(samples []manySample) string {
	var out strings.Builder
	startTable(&out, samples)
	requestTable(&out, samples)
	last := samples[len(samples)-1]
	if r := last.Reload; r != nil {
		out.WriteString("\n| one config of " + count(last.Operators) + " changes | |\n|---|---|\n")
		fmt.Fprintf(&out, "| active after | %s |\n| CPU time | %s |\n", seconds(r.Active), seconds(r.CPU))
		fmt.Fprintf(&out, "| operators started again | %.0f |\n| requests | %s |\n", r.Reloaded, requestList(r.Requests))
	}
	if len(last.Noise) > 0 {
		fmt.Fprintf(&out, "\n| %s upstreams change in | an edit of another operator's object is undone: p50 | p99 | "+
			"writes a second |\n",
			count(noisyObjects))
		out.WriteString("|---|---|---|---|\n")
		for _, n := range last.Noise {
			fmt.Fprintf(&out, "| %s | %s | %s | %.0f |\n", n.Noise, shortSeconds(n.P50), shortSeconds(n.P99), n.Writes)
		}
	}
	return out.String()
}

// startTable has a column for each number of operators, and one for what each operator adds.
func startTable(out *strings.Builder, samples []manySample) {
	out.WriteString("\n| |")
	for _, s := range samples {
		fmt.Fprintf(out, " %s, %s |", several(s.Operators, "operator"), several(s.Kinds, "kind"))
	}
	out.WriteString(" each operator adds |\n|---|" + strings.Repeat("---|", len(samples)+1) + "\n")
	for _, row := range []struct {
		name string
		of   func(manySample) float64
		unit func(float64) string
		each func(float64) string
	}{
		{"all operators work after", func(s manySample) float64 { return s.Ready }, seconds, milliseconds},
		{"CPU time of the start", func(s manySample) float64 { return s.CPU }, seconds, milliseconds},
		{"requests of the start", func(s manySample) float64 { return float64(total(s.Requests)) }, whole, plain},
		{"watches", func(s manySample) float64 { return float64(watches(s.Requests)) }, whole, plain},
		{"anonymous memory", func(s manySample) float64 { return float64(s.Anonymous) }, megabytes, kilobytes},
		{"resident memory", func(s manySample) float64 { return float64(s.RSS) }, megabytes, kilobytes},
		{"heap", func(s manySample) float64 { return s.Heap }, megabytes, kilobytes},
		{"goroutines", func(s manySample) float64 { return s.Goroutines }, whole, plain},
		{"CPU time of a minute at rest", func(s manySample) float64 { return s.RestCPU }, seconds, milliseconds},
	} {
		fmt.Fprintf(out, "| %s |", row.name)
		for _, s := range samples {
			fmt.Fprintf(out, " %s |", row.unit(row.of(s)))
		}
		first, last := samples[0], samples[len(samples)-1]
		if added := last.Operators - first.Operators; added > 0 {
			out.WriteString(" " + row.each((row.of(last)-row.of(first))/float64(added)))
		}
		out.WriteString(" |\n")
	}
}

// requestTable has a row for each kind of request of the start.
func requestTable(out *strings.Builder, samples []manySample) {
	names := map[string]bool{}
	out.WriteString("\n| requests of a start, all objects in sync |")
	for _, s := range samples {
		fmt.Fprintf(out, " %s |", several(s.Operators, "operator"))
		for name := range s.Requests {
			names[name] = true
		}
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(samples)) + "\n")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(out, "| %s |", name)
		for _, s := range samples {
			fmt.Fprintf(out, " %d |", s.Requests[name])
		}
		out.WriteString("\n")
	}
}

// requestList has the requests in one line.
func requestList(requests map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		list = append(list, fmt.Sprintf("%d %s", requests[name], name))
	}
	return strings.Join(list, ", ")
}

func total(requests map[string]int) (n int) {
	for _, of := range requests {
		n += of
	}
	return n
}

func watches(requests map[string]int) (n int) {
	for name, of := range requests {
		if strings.HasPrefix(name, "watch ") {
			n += of
		}
	}
	return n
}

// several is a number of things.
func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(n) + " " + what + "s"
}

func whole(v float64) string { return count(int(v)) }
