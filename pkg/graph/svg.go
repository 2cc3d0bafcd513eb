package graph

import (
	"context"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// style has the colors of a light page, and of a dark one where the reader's screen is dark. It uses no variables,
// which many programs that show pictures do not know.
const style = `
svg { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; font-size: 12px }
.name { font-weight: 600 }
.label { font-size: 10px }
.edge { fill: none }
.upstream, .chain { stroke-width: 2 }
.before { stroke-dasharray: 4 3 }
.reads { stroke-dasharray: 5 3 }
.after { stroke-dasharray: 2 3 }
text { fill: #0f172a } .detail, .label { fill: #475569 }
.page, .node { fill: #ffffff } .under { fill: #f8fafc } .group { fill: #f8fafc; stroke: #cbd5e1 }
.node, .edge { stroke: #64748b } .tip { fill: #64748b }
.upstream { fill: #dbeafe; stroke: #1d4ed8 } .chain { stroke: #1d4ed8 } .tip.chain { fill: #1d4ed8; stroke: none }
.input { fill: #fef9c3; stroke: #a16207 } .reads { stroke: #a16207 } .tip.reads { fill: #a16207; stroke: none }
.before { fill: #fee2e2; stroke: #b91c1c } .after { stroke: #7c3aed } .tip.after { fill: #7c3aed; stroke: none }
.good { stroke: #15803d } .waiting { stroke: #b45309 } .bad { fill: #fee2e2; stroke: #b91c1c; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #f1f5f9 } .detail, .label { fill: #cbd5e1 }
.page, .node { fill: #0f172a } .under { fill: #1e293b } .group { fill: #1e293b; stroke: #475569 }
.node, .edge { stroke: #94a3b8 } .tip { fill: #94a3b8 }
.upstream { fill: #1e3a8a; stroke: #93c5fd } .chain { stroke: #93c5fd } .tip.chain { fill: #93c5fd }
.input { fill: #422006; stroke: #facc15 } .reads { stroke: #facc15 } .tip.reads { fill: #facc15 }
.good { stroke: #4ade80 } .waiting { stroke: #fbbf24 } .bad { fill: #450a0a; stroke: #f87171 }
.before { fill: #450a0a; stroke: #fca5a5 } .after { stroke: #c4b5fd } .tip.after { fill: #c4b5fd }
}
`

var (
	roleClass     = map[Role]string{Upstream: "upstream", Downstream: "downstream", Input: "input", Before: "before"}
	toneClass     = map[Tone]string{Good: "good", Waiting: "waiting", Bad: "bad"}
	relationClass = map[Relation]string{Makes: "makes", Reads: "reads", After: "after", Chain: "chain"}
)

// SVG is the graph as a picture, which dagre lays out. It has no script and loads nothing.
func (g *Graph) SVG(ctx context.Context) ([]byte, error) {
	l, err := g.place(ctx)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%.0f" height="%.0f" viewBox="0 0 %[1]g %[2]g">`,
		math.Ceil(l.Width), math.Ceil(l.Height))
	fmt.Fprintf(&out, "\n<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n",
		escaped(g.Title), escaped(g.words()), style)
	out.WriteString("<defs>")
	for _, class := range []string{"makes", "reads", "after", "chain"} {
		fmt.Fprintf(&out, `<marker id="%s" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" `+
			`markerUnits="userSpaceOnUse" orient="auto"><path class="tip %[1]s" d="M0 0 8 4 0 8z"/></marker>`, class)
	}
	out.WriteString("</defs>\n")
	fmt.Fprintf(&out, "<rect class=\"page\" width=\"%g\" height=\"%g\"/>\n", l.Width, l.Height)
	at := 0
	var nodes strings.Builder
	for _, group := range g.Groups {
		boxes := l.Nodes[at : at+len(group.Nodes)+1]
		at += len(boxes)
		around := boxes[len(group.Nodes)]
		writeRect(&out, "group", around, 8)
		writeText(&out, "detail", around.X-around.Width/2+8, around.Y-around.Height/2+15, group.Title)
		for k, n := range group.Nodes {
			writeNode(&nodes, n, boxes[k])
		}
	}
	for k, e := range g.Edges {
		writeEdge(&out, e, l.Edges[k])
	}
	out.WriteString(nodes.String())
	out.WriteString("</svg>\n")
	return []byte(out.String()), nil
}

// words says what the picture shows to those who cannot see it.
func (g *Graph) words() string {
	names := map[string]string{}
	for _, group := range g.Groups {
		for _, n := range group.Nodes {
			names[n.ID] = n.Lines[0]
		}
	}
	verbs := map[Relation]string{Makes: "has", Reads: "is read by", After: "comes before", Chain: "is watched as"}
	var list []string
	for _, e := range g.Edges {
		sentence := names[e.From] + " " + verbs[e.Relation] + " " + names[e.To]
		if e.Relation == Makes && e.Label != "" {
			sentence += " " + e.Label
		}
		list = append(list, sentence)
	}
	return strings.Join(list, "; ")
}

func writeNode(out *strings.Builder, n Node, b box) {
	out.WriteString("<g>")
	if n.Hint != "" {
		fmt.Fprintf(out, "<title>%s</title>", escaped(n.Hint))
	}
	writeRect(out, strings.TrimRight("node "+roleClass[n.Role]+" "+toneClass[n.Tone], " "), b, 5)
	class := "name"
	for i, text := range n.Lines {
		writeText(out, class, b.X-b.Width/2+12, b.Y-b.Height/2+17+lineHeight*float64(i), text)
		class = "detail"
	}
	out.WriteString("</g>\n")
}

func writeEdge(out *strings.Builder, e Edge, at line) {
	out.WriteString("<g>")
	if e.Hint != "" {
		fmt.Fprintf(out, "<title>%s</title>", escaped(e.Hint))
	}
	fmt.Fprintf(out, `<path class="edge %s" marker-end="url(#%[1]s)" d="%[2]s"/>`, relationClass[e.Relation], curve(at.Points))
	if e.Label != "" {
		writeRect(out, "under", box{X: at.X, Y: at.Y, Width: at.Width, Height: at.Height}, 2)
		writeText(out, "label", at.X-at.Width/2+4, at.Y+3.5, e.Label)
	}
	out.WriteString("</g>\n")
}

// escaped is a text in XML. What XML cannot hold is replaced.
func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder takes everything
	return out.String()
}

// curve is a path through points that is round at those in the middle.
func curve(points []point) string {
	var d strings.Builder
	for i, p := range points {
		switch {
		case i == 0:
			fmt.Fprintf(&d, "M%.1f %.1f", p.X, p.Y)
		case i == len(points)-1:
			fmt.Fprintf(&d, " L%.1f %.1f", p.X, p.Y)
		default:
			next := points[i+1]
			fmt.Fprintf(&d, " Q%.1f %.1f %.1f %.1f", p.X, p.Y, (p.X+next.X)/2, (p.Y+next.Y)/2)
		}
	}
	return d.String()
}

func writeRect(out *strings.Builder, class string, b box, radius float64) {
	fmt.Fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%g\"/>",
		class, b.X-b.Width/2, b.Y-b.Height/2, b.Width, b.Height, radius)
}

func writeText(out *strings.Builder, class string, x, y float64, text string) {
	fmt.Fprintf(out, `<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, escaped(text))
}

// HTML is a page of its own with the picture. It has no script, and loads nothing.
func (g *Graph) HTML(ctx context.Context) ([]byte, error) {
	picture, err := g.SVG(ctx)
	if err != nil {
		return nil, err
	}
	title := escaped(g.Title)
	return []byte("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n" +
		"<title>" + title + "</title>\n<style>\n:root { color-scheme: light dark }\n" +
		"body { font-family: system-ui, sans-serif; margin: 1rem }\n</style>\n" +
		"<h1>" + title + "</h1>\n" + string(picture) + "</html>\n"), nil
}
