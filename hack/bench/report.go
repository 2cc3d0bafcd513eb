package main

import (
	"fmt"
	"slices"
	"strings"
)

// names of the programs, in the order of tables and plots.
var names = []string{"corollary", "handwritten", "floor"}

// figure is a column of the table.
type figure struct {
	name string
	of   func(sample) float64
	unit func(float64) string
}

// figures of a phase, for each object where that makes sense.
var figures = []figure{
	{"writes", perObject(func(s sample) float64 { return float64(s.Writes) }), plain},
	{"CPU", perObject(cpu), milliseconds},
	{"settled after", settled, seconds},
	{"allocated", perObject(func(s sample) float64 { return s.Bytes }), kilobytes},
	{"heap", func(s sample) float64 { return s.Heap }, megabytes},
	{"RSS", rss, megabytes},
	{"peak RSS", peak, megabytes},
	{"anonymous", anonymous, megabytes},
	{"queue p99", func(s sample) float64 { return s.QueueP99 }, seconds},
	{"reconcile p99", func(s sample) float64 { return s.ReconcileP99 }, seconds},
	{"repaired after p99", func(s sample) float64 { return s.RepairP99 }, seconds},
}

func cpu(s sample) float64       { return s.CPU }
func settled(s sample) float64   { return s.Seconds }
func rss(s sample) float64       { return float64(s.RSS) }
func peak(s sample) float64      { return float64(s.Peak) }
func anonymous(s sample) float64 { return float64(s.Anonymous) }

func perObject(of func(sample) float64) func(sample) float64 {
	return func(s sample) float64 { return of(s) / float64(s.Objects) }
}

func plain(v float64) string        { return fmt.Sprintf("%.1f", v) }
func seconds(v float64) string      { return fmt.Sprintf("%.2f s", v) }
func milliseconds(v float64) string { return fmt.Sprintf("%.2f ms", 1000*v) }
func kilobytes(v float64) string    { return fmt.Sprintf("%.0f KB", v/1000) }
func megabytes(v float64) string    { return fmt.Sprintf("%.0f MB", v/1e6) }

// table is Markdown: for each number of objects, size and phase the medians of each program, and the ratio of Corollary
// to the hand-written operator.
func table(samples []sample) string {
	var out strings.Builder
	for _, group := range groups(samples) {
		fmt.Fprintf(&out, "\n%d objects of %d bytes\n\n| phase | program |", group[0].Objects, group[0].Size)
		for _, f := range figures {
			fmt.Fprintf(&out, " %s |", f.name)
		}
		out.WriteString("\n|---|---|" + strings.Repeat("---|", len(figures)) + "\n")
		for _, ph := range phases {
			rows(&out, ph.name, group)
		}
	}
	return out.String()
}

func rows(out *strings.Builder, phase string, group []sample) {
	if len(of(group, phase, "corollary")) == 0 {
		return
	}
	for _, program := range names {
		if len(of(group, phase, program)) == 0 {
			continue
		}
		fmt.Fprintf(out, "| %s | %s |", phase, program)
		for _, f := range figures {
			fmt.Fprintf(out, " %s |", f.unit(median(of(group, phase, program), f.of)))
		}
		out.WriteString("\n")
	}
	fmt.Fprintf(out, "| | **ratio** |")
	for _, f := range figures {
		ours, theirs := median(of(group, phase, "corollary"), f.of), median(of(group, phase, "handwritten"), f.of)
		if theirs == 0 {
			out.WriteString(" |")
			continue
		}
		fmt.Fprintf(out, " **%.2f** |", ours/theirs)
	}
	out.WriteString("\n")
}

// sameCell: both are about the same number and size of objects.
func (s sample) sameCell(other sample) bool {
	return s.Objects == other.Objects && s.Size == other.Size
}

// groups splits samples by number of objects and size, in their order.
func groups(samples []sample) [][]sample {
	var list [][]sample
	for _, s := range samples {
		i := slices.IndexFunc(list, func(g []sample) bool { return s.sameCell(g[0]) })
		if i < 0 {
			list, i = append(list, nil), len(list)
		}
		list[i] = append(list[i], s)
	}
	return list
}

func of(group []sample, phase, program string) []sample {
	return slices.DeleteFunc(slices.Clone(group), func(s sample) bool { return s.Phase != phase || s.Program != program })
}

func median(samples []sample, of func(sample) float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
