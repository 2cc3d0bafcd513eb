package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// lines draws series over time, stacked if the panel says so.
func (c *canvas) lines(p *panel, b box, answers []answer) {
	defaults := p.FieldConfig.Defaults
	stacked := defaults.Custom.Stacking.Mode == "normal"
	legend := c.legend(p, b, answers)
	plot := box{b.x + 56, b.y + 4, b.w - 62, b.h - 26 - legend}
	grid := grid(c.from, c.to, answers)
	tops := make([][]float64, len(grid))
	highest := defaults.Custom.AxisSoftMax
	sum := make([]float64, points+1)
	for i, values := range grid {
		tops[i] = make([]float64, points+1)
		for j, v := range values {
			switch {
			case stacked && !math.IsNaN(v):
				sum[j] += v
				tops[i][j] = sum[j]
			case stacked:
				tops[i][j] = sum[j]
			default:
				tops[i][j] = v
			}
			if !math.IsNaN(tops[i][j]) {
				highest = max(highest, tops[i][j])
			}
		}
	}
	top := c.axes(plot, highest, defaults.Unit)
	for i := len(tops) - 1; i >= 0; i-- { // the topmost series is drawn first
		color := p.color(i, answers[i].name)
		if stacked {
			c.area(plot, tops[i], top, color)
		} else {
			c.path(plot, tops[i], top, color)
		}
	}
	if defaults.Custom.ThresholdsStyle.Mode == "line" {
		c.limits(plot, defaults.Thresholds.Steps, top)
	}
}

// limits draws a line at each threshold.
func (c *canvas) limits(plot box, steps []step, top float64) {
	for _, s := range steps {
		if s.Value != nil && *s.Value <= top {
			y := plot.y + plot.h - *s.Value/top*plot.h
			c.write(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="6 4"/>`, plot.x, y, plot.x+plot.w, y, hex(s.Color))
		}
	}
}

// grid arranges values on a common time grid; a missing value is NaN.
func grid(from, to time.Time, answers []answer) [][]float64 {
	out := make([][]float64, len(answers))
	for i, a := range answers {
		out[i] = make([]float64, points+1)
		for j := range out[i] {
			out[i][j] = math.NaN()
		}
		for j, at := range a.times {
			place := int(math.Round(at.Sub(from).Seconds() / to.Sub(from).Seconds() * points))
			if place >= 0 && place <= points {
				out[i][place] = a.values[j]
			}
		}
	}
	return out
}

// axes draws both axes and returns the value at the top.
func (c *canvas) axes(plot box, highest float64, unit string) float64 {
	tick := niceTick(highest, unit)
	top := max(math.Ceil(highest/tick*1.02), 1) * tick
	for v := 0.0; v <= top+tick/2; v += tick {
		y := plot.y + plot.h - v/top*plot.h
		c.write(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e6e8ea"/>`, plot.x, y, plot.x+plot.w, y)
		c.text(plot.x-6, y+4, 11, "#5b6570", "end", "", inUnit(v, unit, nil))
	}
	c.timeAxis(plot)
	return top
}

func (c *canvas) timeAxis(plot box) {
	every := time.Minute
	for _, longer := range []time.Duration{2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
		30 * time.Minute, time.Hour} {
		if c.to.Sub(c.from) > 7*every {
			every = longer
		}
	}
	for at := c.from.Truncate(every).Add(every); at.Before(c.to); at = at.Add(every) {
		x := plot.x + at.Sub(c.from).Seconds()/c.to.Sub(c.from).Seconds()*plot.w
		c.write(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#f0f1f2"/>`, x, plot.y, x, plot.y+plot.h)
		c.text(x, plot.y+plot.h+16, 11, "#5b6570", "middle", "", at.UTC().Format("15:04"))
	}
}

// niceTick returns a readable distance for about four lines.
func niceTick(highest float64, unit string) float64 {
	if highest <= 0 {
		return 1
	}
	raw := highest / 4
	base := 1.0
	if unit == "bytes" {
		base = 1 << 20
	}
	power := base * math.Pow(10, math.Floor(math.Log10(raw/base)))
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if factor*power >= raw {
			return factor * power
		}
	}
	return 10 * power
}

func place(plot box, j int, v, top float64) string {
	return fmt.Sprintf("%.1f %.1f", plot.x+float64(j)/points*plot.w, plot.y+plot.h-v/top*plot.h)
}

// path draws a line with a gap where a value is missing.
func (c *canvas) path(plot box, values []float64, top float64, color string) {
	var d strings.Builder
	open := false
	for j, v := range values {
		if math.IsNaN(v) {
			open = false
			continue
		}
		if open {
			d.WriteString(" L")
		} else {
			d.WriteString(" M")
		}
		open = true
		d.WriteString(place(plot, j, v, top))
	}
	c.write(`<path d="%s" fill="none" stroke="%s" stroke-width="1.3"/>`, strings.TrimSpace(d.String()), color)
}

// area draws a line and fills the area below it with a light color that hides what it overlaps.
func (c *canvas) area(plot box, values []float64, top float64, color string) {
	parts := []string{"M" + place(plot, 0, 0, top)}
	for j, v := range values {
		if math.IsNaN(v) {
			v = 0
		}
		parts = append(parts, "L"+place(plot, j, v, top))
	}
	d := strings.Join(append(parts, "L"+place(plot, points, 0, top), "Z"), " ")
	c.write(`<path d="%s" fill="%s" stroke="%s"/>`, d, tint(color), color)
}

// legend draws the names of series at the bottom of a panel and returns its height.
func (c *canvas) legend(p *panel, b box, answers []answer) float64 {
	type entry struct{ x, row float64 }
	places := make([]entry, len(answers))
	x, row := 0.0, 0.0
	for i, a := range answers {
		w := float64(len(a.name))*6.3 + 26
		if x > 0 && x+w > b.w {
			x, row = 0, row+1
		}
		places[i] = entry{x, row}
		x += w
	}
	height := (row + 1) * line
	for i, a := range answers {
		at := b.x + places[i].x
		y := b.y + b.h - height + places[i].row*line + 12
		c.write(`<rect x="%.1f" y="%.1f" width="12" height="4" rx="1" fill="%s"/>`, at, y-7, p.color(i, a.name))
		c.text(at+17, y-1, 11, "#3c444c", "start", "", a.name)
	}
	return height
}
