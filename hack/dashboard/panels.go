package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// stat draws one large value, or the names of the series.
func (c *canvas) stat(p *panel, b box, answers []answer) {
	defaults := p.FieldConfig.Defaults
	value, color := answers[0].last(), ""
	for _, s := range defaults.Thresholds.Steps {
		if s.Value == nil || value >= *s.Value {
			color = hex(s.Color)
		}
	}
	text, size := inUnit(value, defaults.Unit, defaults.Decimals), 40.0
	if p.Options.TextMode == "name" {
		var names []string
		for _, a := range answers {
			names = append(names, a.name)
		}
		text = strings.Join(names, ", ")
		size = min(30, 1.7*b.w/float64(max(len(text), 1)))
	}
	c.text(b.x+b.w/2, b.y+b.h/2+size/3, size, color, "middle", "600", text)
}

// timeline draws a bar for each series, split where the value changes.
func (c *canvas) timeline(p *panel, b box, answers []answer) {
	slices.SortFunc(answers, func(x, y answer) int { return cmp.Compare(x.name, y.name) })
	plot := box{b.x + 110, b.y + 4, b.w - 114, b.h - 26}
	c.timeAxis(plot)
	rows := grid(c.from, c.to, answers)
	high := plot.h / float64(len(rows))
	for i, values := range rows {
		y := plot.y + float64(i)*high
		c.text(plot.x-8, y+high/2+4, 12, "#3c444c", "end", "", answers[i].name)
		for j := 0; j < len(values); {
			k := j
			for k < len(values) && (values[k] == values[j] || math.IsNaN(values[k]) && math.IsNaN(values[j])) {
				k++
			}
			if !math.IsNaN(values[j]) {
				c.piece(p, box{plot.x + float64(j)/points*plot.w, y + high*0.1,
					float64(min(k, points)-j) / points * plot.w, high * 0.8}, values[j])
			}
			j = k
		}
	}
}

func (c *canvas) piece(p *panel, b box, value float64) {
	text, color := strconv.FormatFloat(value, 'f', -1, 64), "#8e959c"
	for _, m := range p.FieldConfig.Defaults.Mappings {
		if to, ok := m.Options[text]; ok {
			text, color = to.Text, hex(to.Color)
		}
	}
	c.write(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" fill-opacity="0.7"/>`, b.x, b.y, b.w, b.h, color)
	if b.w > float64(len(text))*7+8 {
		c.text(b.x+6, b.y+b.h/2+4, 12, "#ffffff", "start", "600", text)
	}
}

// table draws the columns that the panel keeps, in its order.
func (c *canvas) table(p *panel, b box, answers []answer) {
	organize := p.Transformations[0].Options
	columns := slices.SortedFunc(maps.Keys(organize.IndexByName), func(x, y string) int {
		return organize.IndexByName[x] - organize.IndexByName[y]
	})
	slices.SortStableFunc(answers, func(x, y answer) int {
		for _, column := range columns {
			if n := cmp.Compare(x.labels[column], y.labels[column]); n != 0 {
				return n
			}
		}
		return 0
	})
	wide := b.w / float64(len(columns))
	high := 24.0
	for i, column := range columns {
		c.text(b.x+float64(i)*wide, b.y+12, 12, "#3274d9", "start", "600", organize.RenameByName[column])
	}
	for row, a := range answers {
		y := b.y + 12 + float64(row+1)*high
		if y > b.y+b.h {
			return // Grafana scrolls
		}
		c.write(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e6e8ea"/>`, b.x, y-high+7, b.x+b.w, y-high+7)
		for i, column := range columns {
			text := a.labels[column]
			if column == "Value" {
				text = inUnit(a.last(), p.FieldConfig.Defaults.Unit, nil)
			}
			c.text(b.x+float64(i)*wide, y, 12, "#24292e", "start", "", text)
		}
	}
}

// inUnit formats a value as Grafana does, for the units in the dashboard.
func inUnit(v float64, unit string, decimals *int) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	if decimals != nil {
		number = func(v float64) string { return strconv.FormatFloat(v, 'f', *decimals, 64) }
	}
	switch unit {
	case "percentunit":
		return number(v*100) + " %"
	case "bytes":
		return fmt.Sprintf("%.0f MiB", v/(1<<20))
	case "s":
		return inTime(v, number)
	case "reqps":
		return number(v) + " req/s"
	case "ops":
		return number(v) + " /s"
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return number(v)
}

// inTime formats seconds in the most readable unit.
func inTime(v float64, number func(float64) string) string {
	switch {
	case v == 0:
		return "0 s"
	case v < 0.001:
		return number(v*1e6) + " µs"
	case v < 1:
		return number(v*1000) + " ms"
	case v < 120:
		return number(v) + " s"
	}
	return number(v/60) + " min"
}
