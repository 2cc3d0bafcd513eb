package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What is between one of these headings of a page and the next picture, or the next section, is written by this
// command.
const (
	pageBegin   = "### Results\n"
	pageEnd     = "\n!["
	manyBegin   = "### Results for many operators\n"
	shardsBegin = "### Results for shards\n"
	sectionEnd  = "\n## "
)

// writePages writes what was measured into the page: those of samples.json, configs.json and shards.json that there
// are.
func (o options) writePages() error {
	samples, err := o.read()
	if err == nil {
		err = errors.Join(replaceSection(o.page, pageBegin, pageEnd, tables(samples)), writePlots(o.page, samples))
	}
	many, manyErr := o.readMany()
	if manyErr == nil {
		manyErr = replaceSection(o.page, manyBegin, sectionEnd, manyTables(many))
	}
	shards, shardsErr := o.readShards()
	if shardsErr == nil {
		shardsErr = replaceSection(o.page, shardsBegin, sectionEnd, shardTables(shards))
	}
	errs := []error{err, manyErr, shardsErr}
	left := slices.DeleteFunc(slices.Clone(errs), func(err error) bool {
		return errors.Is(err, os.ErrNotExist)
	})
	if len(left) > 0 {
		return errors.Join(left...)
	}
	return errors.Join(errs...)
}

// replaceSection replaces what is between a heading of a Markdown page and what follows it.
func replaceSection(path, begin, end, section string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s needs the heading %q and %q below it, between which the tables go",
			path, strings.TrimSpace(begin),
			strings.TrimSpace(end))
	}
	return os.WriteFile(path, []byte(before+begin+section+end+after), 0o644)
}

// writePlots draws samples into pictures beside a page.
func writePlots(path string, samples []sample) error {
	for name, plot := range plots(samples) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "pictures", name), []byte(plot), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tables are those of the page.
func tables(samples []sample) string {
	cells := groups(samples)
	slices.SortStableFunc(cells, func(a, b []sample) int {
		return cmp.Or(cmp.Compare(a[0].Size, b[0].Size), cmp.Compare(a[0].Objects, b[0].Objects))
	})
	var out strings.Builder
	ratios(&out, cells, "CPU time", cpu)
	ratios(&out, cells, "time until settled", settled)
	memory(&out, cells)
	latency(&out, cells)
	return out.String()
}

// ratios is a table of Corollary's figure divided by that of the hand-written operator: a row for each phase, a column
// for each cell.
func ratios(out *strings.Builder, cells [][]sample, title string, of func(sample) float64) {
	fmt.Fprintf(out, "\n| %s, ratio |", title)
	for _, cell := range cells {
		fmt.Fprintf(out, " %s |", cellName(cell))
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(cells)) + "\n")
	for _, ph := range phases {
		var row strings.Builder
		measured := false
		for _, cell := range cells {
			text := ratio(cell, ph.name, of)
			measured = measured || text != ""
			fmt.Fprintf(&row, " %s |", text)
		}
		if measured {
			fmt.Fprintf(out, "| %s |%s\n", ph.name, row.String())
		}
	}
}

// ratio is the median over the rounds, and the lowest and highest; "" if a program did not do the phase.
func ratio(cell []sample, phase string, figure func(sample) float64) string {
	var list []float64
	for _, ours := range of(cell, phase, "corollary") {
		for _, theirs := range of(cell, phase, "handwritten") {
			if ours.Round == theirs.Round && figure(theirs) > 0 {
				list = append(list, figure(ours)/figure(theirs))
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.Sort(list)
	middle := (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	if len(list) == 1 {
		return fmt.Sprintf("%.2f", middle)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", middle, list[0], list[len(list)-1])
}

// enoughForHeap is how many objects more than the least tell their heap: the heap of a process varies by a megabyte.
const enoughForHeap = 5000

// memory is a table of what is used after a restart.
func memory(out *strings.Builder, cells [][]sample) {
	out.WriteString("\n| memory after a restart | Corollary | at the peak | anonymous | by hand | at the peak | " +
		"anonymous |" +
		" ratio of the peak | of anonymous |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, cell := range cells {
		fmt.Fprintf(out, "| %s |", cellName(cell))
		for _, program := range names[:2] {
			of := of(cell, "restart", program)
			fmt.Fprintf(out, " %s | %s | %s |", megabytes(median(of, rss)), megabytes(median(of, peak)),
				megabytes(median(of, anonymous)))
		}
		fmt.Fprintf(out, " %s | %s |\n", ratio(cell, "restart", peak), ratio(cell, "restart", anonymous))
	}
	out.WriteString("\n| heap of each object in sync | by hand | Corollary | ratio |\n|---|---|---|---|\n")
	first := slices.MinFunc(cells, func(a, b []sample) int { return cmp.Compare(a[0].Objects, b[0].Objects) })
	for i, cell := range cells {
		if i+1 < len(cells) && cells[i+1][0].Size == cell[0].Size {
			continue // the next one has more objects
		}
		if more := cell[0].Objects - first[0].Objects; more >= enoughForHeap {
			of := func(program string) float64 {
				heap := func(s sample) float64 { return s.Heap }
				return (median(of(cell, "restart", program), heap) - median(of(first, "restart", program),
					heap)) / float64(more) / 1000
			}
			fmt.Fprintf(out, "| %s | %.1f KB | %.1f KB | %.2f |\n", sizeName(cell[0].Size), of("handwritten"), of("corollary"),
				of("corollary")/of("handwritten"))
		}
	}
}

// latency is a table of how soon programs act.
func latency(out *strings.Builder, cells [][]sample) {
	out.WriteString("\n| latency | program | an edit is undone: p50 | p99 | load: changes a second |" +
		" in the queue, p99 | one reconcile, p99 |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, cell := range cells {
		for _, program := range names[:2] {
			repair, load := of(cell, "repair", program), of(cell, "load", program)
			if len(repair) == 0 && len(load) == 0 {
				continue
			}
			fmt.Fprintf(out, "| %s | %s |", cellName(cell), program)
			for _, c := range []struct {
				in   []sample
				of   func(sample) float64
				unit func(float64) string
			}{
				{repair, func(s sample) float64 { return s.RepairP50 }, shortSeconds},
				{repair, func(s sample) float64 { return s.RepairP99 }, shortSeconds},
				{load, func(s sample) float64 { return s.Rate }, func(v float64) string { return fmt.Sprintf("%.0f", v) }},
				{load, func(s sample) float64 { return s.QueueP99 }, shortSeconds},
				{load, func(s sample) float64 { return s.ReconcileP99 }, shortSeconds},
			} {
				text := "not measured"
				if len(c.in) > 0 {
					text = c.unit(median(c.in, c.of))
				}
				fmt.Fprintf(out, " %s |", text)
			}
			out.WriteString("\n")
		}
	}
}

func shortSeconds(v float64) string { return fmt.Sprintf("%.0f ms", 1000*v) }

func cellName(cell []sample) string {
	return fmt.Sprintf("%s × %s", count(cell[0].Objects), sizeName(cell[0].Size))
}

func sizeName(bytes int) string { return fmt.Sprintf("%g KB", float64(bytes)/1000) }

// count is a number with a comma for thousands.
func count(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
