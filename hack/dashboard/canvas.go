package main

import (
	"context"
	"fmt"
	"html"
	"strings"
	"time"
)

// Sizes, in pixels. A cell of the grid is as high as in Grafana.
const (
	width   = 1600
	margin  = 16
	cell    = 34
	gap     = 8
	heading = 64
	line    = 15
)

// Colors by the names in the dashboard, and the default colors of series.
var (
	named = map[string]string{"green": "#3f8f3a", "red": "#d9263c", "orange": "#e8730c",
		"blue": "#3274d9", "purple": "#8f3bb8"}
	palette = []string{"#5a9b4f", "#e0a92e", "#3fa7bd", "#e07b3a", "#d4473f", "#2f6fb3", "#a5428f",
		"#6b5b9e", "#3f6f33", "#b08a00"}
)

// hex returns a color by its name in the dashboard, or as it is.
func hex(color string) string {
	if known, ok := named[color]; ok {
		return known
	}
	return color
}

// tint returns a color at half of its strength on white.
func tint(color string) string {
	var r, g, b int
	if _, err := fmt.Sscanf(color, "#%02x%02x%02x", &r, &g, &b); err != nil {
		return color
	}
	return fmt.Sprintf("#%02x%02x%02x", (r+255)/2, (g+255)/2, (b+255)/2)
}

// canvas is the picture while it is drawn.
type canvas struct {
	strings.Builder
	from, to time.Time
	height   int
	caption  string
}

// box is the inside of a panel.
type box struct{ x, y, w, h float64 }

func newCanvas(d dashboard, from, to time.Time, caption string) *canvas {
	c := &canvas{from: from, to: to, caption: caption}
	rows := 0
	for _, p := range d.Panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	lines := len(wrapped(caption, 210))
	c.height = heading + rows*cell + margin + lines*(line+4) + margin
	c.write(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="12">`, width, c.height)
	c.write(`<title>The dashboard %s</title>`, html.EscapeString(d.Title))
	c.write(`<desc>%s</desc>`, html.EscapeString(caption))
	c.write(`<rect width="%d" height="%d" fill="#f4f5f5"/>`, width, c.height)
	c.text(margin, 30, 20, "#24292e", "start", "bold", d.Title)
	c.text(width-margin, 30, 13, "#5b6570", "end", "", from.UTC().Format("15:04")+" – "+to.UTC().Format("15:04")+" UTC")
	c.text(margin, 52, 12, "#5b6570", "start", "", "Namespace All   ·   Job All   ·   Operator All")
	return c
}

func (c *canvas) finish() string {
	for i, text := range wrapped(c.caption, 210) {
		c.text(margin, float64(c.height-margin-(len(wrapped(c.caption, 210))-1-i)*(line+4)), 13, "#5b6570", "start", "", text)
	}
	c.write("</svg>")
	return c.String()
}

// panel draws one panel.
func (c *canvas) panel(ctx context.Context, p *panel, from *prometheus) error {
	unit := float64(width-2*margin) / 24
	g := p.GridPos
	x, y := margin+float64(g.X)*unit, float64(heading+g.Y*cell)
	if p.Type == "row" {
		c.text(x, y+22, 15, "#24292e", "start", "bold", "▾ "+p.Title)
		return nil
	}
	w, h := float64(g.W)*unit-gap, float64(g.H*cell-gap)
	c.write(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" fill="#ffffff" stroke="#dcdee1"/>`, x, y, w, h)
	c.text(x+10, y+20, 13, "#24292e", "start", "600", p.Title)
	inside := box{x + 10, y + 32, w - 20, h - 40}
	var answers []answer
	for _, t := range p.Targets {
		list, err := from.ask(ctx, t)
		if err != nil {
			return err
		}
		for _, s := range list {
			answers = append(answers, answer{s, t.name(s.labels)})
		}
	}
	if len(answers) == 0 {
		c.text(x+w/2, y+h/2+10, 13, "#8e959c", "middle", "", "No data")
		return nil
	}
	switch p.Type {
	case "stat":
		c.stat(p, inside, answers)
	case "timeseries":
		c.lines(p, inside, answers)
	case "state-timeline":
		c.timeline(p, inside, answers)
	case "table":
		c.table(p, inside, answers)
	default:
		return fmt.Errorf("it is of the type %s, which is not known here", p.Type)
	}
	return nil
}

// answer is a series with its name in the legend.
type answer struct {
	series
	name string
}

func (c *canvas) write(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y, size float64, fill, anchor, weight, text string) {
	if weight != "" {
		weight = ` font-weight="` + weight + `"`
	}
	c.write(`<text x="%.1f" y="%.1f" font-size="%.0f" fill="%s" text-anchor="%s"%s>%s</text>`, x, y, size, fill, anchor, weight,
		html.EscapeString(text))
}

// wrapped breaks a text into lines of about n letters.
func wrapped(text string, n int) []string {
	var lines []string
	current := ""
	for _, word := range strings.Fields(text) {
		if current != "" && len(current)+1+len(word) > n {
			lines, current = append(lines, current), ""
		}
		current = strings.TrimSpace(current + " " + word)
	}
	return append(lines, current)
}
