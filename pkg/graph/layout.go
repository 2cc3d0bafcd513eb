package graph

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// library is dagre, which lays out directed graphs, as its authors publish it (dagre/LICENSE). It asks for one function
// that is of browsers and not of JavaScript.
//
//go:embed dagre/dagre.min.js
var library string

// clone is that function.
const clone = `var structuredClone = function(v) { return JSON.parse(JSON.stringify(v)) };` + "\n"

// arrange returns what dagre makes of a graph, which is the same for the same graph.
const arrange = `(function(text) {
	const want = JSON.parse(text), g = new dagre.graphlib.Graph({compound: true, multigraph: true});
	g.setGraph({rankdir: "LR", ranker: "tight-tree", nodesep: 18, edgesep: 12, ranksep: 46, marginx: 12, marginy: 12});
	for (const n of want.nodes) {
		g.setNode(n.id, n);
		if (n.group) g.setParent(n.id, n.group);
	}
	want.edges.forEach((e, i) => g.setEdge(e.from, e.to, e, "" + i));
	dagre.layout(g);
	return JSON.stringify({width: g.graph().width, height: g.graph().height, nodes: want.nodes.map(n => g.node(n.id)),
		edges: want.edges.map((e, i) => g.edge(e.from, e.to, "" + i))});
})`

// box is a rectangle, by its center, in pixels; before the layout without a place.
type box struct {
	ID     string  `json:"id"`
	Group  string  `json:"group,omitempty"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

// line is an edge: its points, and the place of its label.
type line struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
	// LabelPos c puts the label in the middle of the line.
	LabelPos string  `json:"labelpos"`
	X        float64 `json:"x"`
	Y        float64 `json:"y"`
	Points   []point `json:"points"`
}

type point struct{ X, Y float64 }

// layout is where everything is. Nodes are those of all groups, each group after its own.
type layout struct {
	Width, Height float64
	Nodes         []box
	Edges         []line
}

const (
	lineHeight  = 15.0
	labelHeight = 12.0
)

// widthOf is about how wide a text is: an average letter, or a sign that takes the place of two.
func widthOf(text string, letter float64) float64 {
	width := 0.0
	for _, r := range text {
		if width += letter; utf8.RuneLen(r) > 2 && r != '…' {
			width += letter
		}
	}
	return width
}

// maxNodes is how many nodes a picture has at most, which takes seconds; the time grows with the square.
const maxNodes = 1000

// place arranges the graph. ctx ends it.
func (g *Graph) place(ctx context.Context) (*layout, error) {
	count := 0
	for _, group := range g.Groups {
		count += len(group.Nodes)
	}
	if count > maxNodes {
		return nil, fmt.Errorf(
			"%d objects are too many for a picture, of which it can show %d: write them with -o dot or -o mermaid",
			count, maxNodes)
	}
	want := layout{Nodes: []box{}, Edges: []line{}}
	for i, group := range g.Groups {
		name := fmt.Sprintf("group%d", i)
		for _, n := range group.Nodes {
			b := box{ID: n.ID, Group: name, Height: lineHeight*float64(len(n.Lines)) + 12}
			for _, text := range n.Lines {
				b.Width = max(b.Width, widthOf(text, 7)+24)
			}
			want.Nodes = append(want.Nodes, b)
		}
		want.Nodes = append(want.Nodes, box{ID: name})
	}
	for _, e := range g.Edges {
		at := line{From: e.From, To: e.To, LabelPos: "c"}
		if e.Label != "" {
			at.Width, at.Height = widthOf(e.Label, 5.2)+8, labelHeight
		}
		want.Edges = append(want.Edges, at)
	}
	text, err := json.Marshal(map[string]any{"nodes": want.Nodes, "edges": want.Edges})
	if err != nil {
		return nil, fmt.Errorf("drawing the graph: %w", err)
	}
	vm := goja.New()
	stop := context.AfterFunc(ctx, func() { vm.Interrupt(context.Cause(ctx)) })
	defer stop()
	have, err := run(vm, string(text))
	if err != nil {
		return nil, fmt.Errorf("drawing the graph: %w", err)
	}
	return have, nil
}

func run(vm *goja.Runtime, graph string) (*layout, error) {
	if _, err := vm.RunScript("dagre", clone+library); err != nil {
		return nil, err
	}
	value, err := vm.RunString(arrange)
	if err != nil {
		return nil, err
	}
	call, _ := goja.AssertFunction(value)
	result, err := call(goja.Undefined(), vm.ToValue(graph))
	if err != nil {
		return nil, err
	}
	var l layout
	return &l, json.Unmarshal([]byte(result.String()), &l)
}
