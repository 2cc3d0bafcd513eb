package clusters

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
)

// The measures of the picture, in pixels.
const (
	svgLeft, svgWidth, svgTop = 60, 900, 68
	svgRow, svgBar            = 64, 22
)

// SVG draws a run: for each cluster, when it said that it was active and what its API server received, and the faults
// above. The colors fit light and dark pages.
func (l *Timeline) SVG(title string, clusters []string, writes []Write) string {
	l.mu.Lock()
	events := slices.Clone(l.events)
	l.mu.Unlock()
	if len(events) == 0 {
		return ""
	}
	begin, end := events[0].At, events[len(events)-1].At
	for _, w := range writes {
		if w.At.After(end) {
			end = w.At
		}
	}
	d := &drawing{begin: begin, scale: (svgWidth - svgLeft - 20) / max(end.Sub(begin).Seconds(), 1)}
	bottom := svgTop + svgRow*len(clusters)
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" role="img">`, svgWidth, bottom+30)
	d.add(`<title>%s</title>`, html.EscapeString(title))
	d.add(`<desc>Blue: the cluster says that it is active, with its token. Orange: its API server received a write. Red: a fault.</desc>`)
	d.add(`<style>text{fill:#777}.active{fill:#3b82c4}.write{stroke:#d97a1e;stroke-width:1}.fault{fill:#c0392b;fill-opacity:.14}` +
		`.name{fill:#c0392b}.line{stroke:#999;stroke-width:.5}</style>`)
	d.faults(events, end, bottom)
	for i, cluster := range clusters {
		d.cluster(cluster, svgTop+svgRow*i, events, end, writes)
	}
	for s := 0; s <= int(end.Sub(begin).Seconds()); s += 5 {
		x := d.x(begin.Add(time.Duration(s) * time.Second))
		d.add(`<line class="line" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/><text x="%.1f" y="%d" text-anchor="middle">%d s</text>`,
			x, bottom, x, bottom+5, x, bottom+17, s)
	}
	d.add(`</svg>`)
	return d.text.String()
}

type drawing struct {
	begin time.Time
	scale float64
	text  strings.Builder
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.text, format+"\n", args...) }

func (d *drawing) x(at time.Time) float64 { return svgLeft + at.Sub(d.begin).Seconds()*d.scale }

// faults draws a band for each fault, and its name, in three rows so that they do not overlap.
func (d *drawing) faults(events []Event, end time.Time, bottom int) {
	n := 0
	for i, e := range events {
		if e.Kind != EventFault {
			continue
		}
		until := end
		for _, later := range events[i:] {
			if later.Kind == EventHealed {
				until = later.At
				break
			}
		}
		d.add(`<rect class="fault" x="%.1f" y="%d" width="%.1f" height="%d"/>`, d.x(e.At), svgTop-14, max(d.x(until)-d.x(e.At), 2), bottom-svgTop+14)
		d.add(`<text class="name" x="%.1f" y="%d">%s</text>`, d.x(e.At), 14+13*(n%3), html.EscapeString(e.Text))
		n++
	}
}

// cluster draws when a cluster was active, with its token, and a stroke for each write.
func (d *drawing) cluster(name string, y int, events []Event, end time.Time, writes []Write) {
	d.add(`<text x="8" y="%d" font-size="13">%s</text>`, y+15, html.EscapeString(name))
	d.add(`<line class="line" x1="%d" y1="%d" x2="%d" y2="%d"/>`, svgLeft, y+svgBar, svgWidth-20, y+svgBar)
	var since *Event
	bar := func(until time.Time) {
		d.add(`<rect class="active" x="%.1f" y="%d" width="%.1f" height="%d"/>`, d.x(since.At), y, max(d.x(until)-d.x(since.At), 1), svgBar)
		if since.Text != "" {
			d.add(`<text x="%.1f" y="%d" style="fill:#fff">%s</text>`, d.x(since.At)+3, y+15, html.EscapeString(since.Text))
		}
		since = nil
	}
	for i, e := range events {
		switch {
		case e.Cluster != name:
		case e.Kind == EventActive && since == nil:
			since = &events[i]
		case e.Kind != EventActive && since != nil:
			bar(e.At)
		}
	}
	if since != nil {
		bar(end)
	}
	for _, w := range writes {
		if w.Cluster == name && !w.At.Before(d.begin) {
			d.add(`<line class="write" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, d.x(w.At), y+svgBar+2, d.x(w.At), y+svgBar+14)
		}
	}
}
