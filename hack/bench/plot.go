package main

import (
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
)

// Measures of a plot, in pixels.
const (
	plotWidth, plotHeight = 280, 150
	plotLeft, plotTop     = 52, 34
	plotRight, plotBottom = 14, 26
	plotColumns           = 3
)

// colors of the programs, which fit light and dark pages.
var colors = map[string]string{"corollary": "#3b82c4", "handwritten": "#d97a1e", "floor": "#7f8c8d"}

// plots are pictures by file name: how the cost of one object grows with the number of objects, and how much memory all
// take.
func plots(samples []sample) map[string]string {
	var costs, sizes []plot
	for _, ph := range phases {
		if p := newPlot(samples, ph.name+", ms of CPU for each object", func(s sample) bool {
			return s.Phase == ph.name && s.Size == middleSize(samples)
		}, func(s sample) float64 { return 1000 * s.CPU / float64(s.Objects) }); ph.plotted && len(p.lines) > 0 {
			costs = append(costs, p)
		}
	}
	for _, size := range slices.Sorted(maps.Keys(sizesOf(samples))) {
		sizes = append(sizes, newPlot(samples, "objects of "+sizeName(size)+", MB at the peak of a start",
			func(s sample) bool {
				return s.Phase == "restart" && s.Size == size
			}, func(s sample) float64 { return peak(s) / 1e6 }))
	}
	return map[string]string{
		"bench-cpu.svg": drawn("CPU time for each object of "+sizeName(middleSize(samples))+", by the number of objects",
			costs),
		"bench-memory.svg": drawn("Memory by the number of objects", sizes),
	}
}

func sizesOf(samples []sample) map[int]bool {
	sizes := map[int]bool{}
	for _, s := range samples {
		sizes[s.Size] = true
	}
	return sizes
}

func middleSize(samples []sample) int {
	sizes := slices.Sorted(maps.Keys(sizesOf(samples)))
	return sizes[len(sizes)/2]
}

// plot has a line for each program, over numbers of objects.
type plot struct {
	title string
	lines map[string]map[int]float64
}

func newPlot(samples []sample, title string, in func(sample) bool, figure func(sample) float64) plot {
	p := plot{title: title, lines: map[string]map[int]float64{}}
	for _, program := range names {
		for _, cell := range groups(slices.DeleteFunc(slices.Clone(samples), func(s sample) bool {
			return s.Program != program || !in(s)
		})) {
			if p.lines[program] == nil {
				p.lines[program] = map[int]float64{}
			}
			p.lines[program][cell[0].Objects] = median(cell, figure)
		}
	}
	return p
}

// drawn is an SVG picture of plots, in columns.
func drawn(title string, plots []plot) string {
	var out strings.Builder
	rows := (len(plots) + plotColumns - 1) / plotColumns
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" role="img">`+"\n",
		plotColumns*plotWidth, rows*plotHeight+30)
	fmt.Fprintf(&out, "<title>%s</title>\n", html.EscapeString(title))
	out.WriteString("<desc>A line for each: Corollary, an operator written by hand, a client that only makes the " +
		"requests.</desc>\n")
	out.WriteString("<style>text{fill:#777}.axis{stroke:#999;stroke-width:.5}polyline{fill:none;stroke-width:2}</style>\n")
	for i, program := range names {
		fmt.Fprintf(&out, `<circle cx="%d" cy="12" r="4" fill="%s"/><text x="%d" y="16">%s</text>`+"\n", 60+i*110, colors[program], 70+i*110, program)
	}
	for i, p := range plots {
		p.draw(&out, float64(i%plotColumns*plotWidth), float64(i/plotColumns*plotHeight+24))
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// draw draws one plot with its upper left corner at (x, y). The horizontal axis is logarithmic, the vertical one begins
// at 0.
func (p plot) draw(out *strings.Builder, x, y float64) {
	numbers, top := map[int]bool{}, 0.0
	for _, line := range p.lines {
		for n, v := range line {
			numbers[n], top = true, max(top, v)
		}
	}
	ticks := slices.Sorted(maps.Keys(numbers))
	low, high := math.Log(float64(ticks[0])), math.Log(float64(ticks[len(ticks)-1]))
	left, right, upper, lower := x+plotLeft, x+plotWidth-plotRight, y+plotTop, y+plotHeight-plotBottom
	at := func(n int) float64 {
		if low == high {
			return (left + right) / 2
		}
		return left + (math.Log(float64(n))-low)/(high-low)*(right-left)
	}
	height := func(v float64) float64 { return lower - v/max(top, 1e-9)*(lower-upper) }
	fmt.Fprintf(out, `<text x="%.0f" y="%.0f">%s</text>`+"\n", left, y+20, html.EscapeString(p.title))
	for _, v := range []float64{0, top / 2, top} {
		fmt.Fprintf(out, `<line class="axis" x1="%.0f" y1="%.1f" x2="%.0f" y2="%.1f"/><text x="%.0f" y="%.1f" text-anchor="end">%.3g</text>`+"\n",
			left, height(v), right, height(v), left-6, height(v)+4, v)
	}
	for _, n := range ticks {
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", at(n), lower+16, count(n))
	}
	for _, program := range names {
		var points []string
		for _, n := range slices.Sorted(maps.Keys(p.lines[program])) {
			px, py := at(n), height(p.lines[program][n])
			points = append(points, fmt.Sprintf("%.1f,%.1f", px, py))
			fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", px, py, colors[program])
		}
		fmt.Fprintf(out, `<polyline points="%s" stroke="%s"/>`+"\n", strings.Join(points, " "), colors[program])
	}
}
