package graph_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/graph"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// graphOf is the graph of configs of the examples.
func graphOf(t *testing.T, files ...string) *graph.Graph {
	t.Helper()
	loaded, errs := load.Operators(load.Options{Files: files})
	list, problems, err := compile.All(loaded, errs, compile.Options{Kinds: must.Get(kinds.Offline()).In(t)})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	var pipelines []*compile.Pipeline
	for _, c := range list {
		pipelines = append(pipelines, c.Pipeline)
	}
	return graph.OfConfigs(pipelines)
}

// TestExamples: a chain of two operators, references, an order, items and a condition are drawn.
func TestExamples(t *testing.T) {
	const configs = "../../examples/configs/"
	for name, files := range map[string][]string{
		"chain": {configs + "chain/operators"}, "network-stack": {configs + "network-stack/operator.yaml"},
		"tenant": {configs + "tenant/operator.yaml"}, "database": {configs + "database/operator.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			g := graphOf(t, files...)
			golden.File(t, "testdata/"+name+".mmd", []byte(g.Mermaid()))
			golden.File(t, "testdata/"+name+".dot", []byte(g.DOT()))
		})
	}
}

// TestTooManyForAPicture: what nobody could look at takes no time.
func TestTooManyForAPicture(t *testing.T) {
	g := &graph.Graph{Groups: []graph.Group{{Nodes: make([]graph.Node, 1001)}}}
	if _, err := g.SVG(t.Context()); err == nil || !strings.Contains(err.Error(), "1001 objects are too many for a picture") {
		t.Error(err)
	}
}

// TestPictureOfThePage is the one in docs/cli.md.
func TestPictureOfThePage(t *testing.T) {
	g := graphOf(t, "../../examples/configs/network-stack/operator.yaml")
	golden.File(t, "../../docs/pictures/graph.svg", must.Get(g.SVG(t.Context())).In(t))
}

// TestPicture: every text of a graph is in the picture, twice the same, and what configs of
// others say stays text.
func TestPicture(t *testing.T) {
	const hostile = `<script>alert("1")</script> & \N ]]> 漢字`
	g := &graph.Graph{Title: hostile, Groups: []graph.Group{{Title: hostile}, {Title: "second"}}}
	for i := range 30 {
		id := "n" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		group := &g.Groups[i%2]
		group.Nodes = append(group.Nodes, graph.Node{ID: id, Role: graph.Role(i % 4), Tone: graph.Tone(i % 4), Lines: []string{hostile, id}, Hint: hostile})
		if i > 0 {
			g.Edges = append(g.Edges, graph.Edge{From: "na", To: id, Relation: graph.Relation(i % 4), Label: hostile, Hint: hostile})
		}
	}
	g.Edges = append(g.Edges, graph.Edge{From: "nb", To: "na"}) // a circle
	picture := must.Get(g.SVG(t.Context())).In(t)
	page := must.Get(g.HTML(t.Context())).In(t)
	if !bytes.Equal(picture, must.Get(g.SVG(t.Context())).In(t)) {
		t.Error("the same graph is drawn in two ways")
	}
	for _, bad := range []string{"<script", "href", "src=", "onload"} {
		if strings.Contains(string(page), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	texts := 0
	for decoder := xml.NewDecoder(bytes.NewReader(picture)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && string(text) == hostile {
			texts++
		}
	}
	if want := 2 + 2*30 + 2*29; texts != want { // two titles, and the text and hint of each node and edge
		t.Errorf("%d texts, want %d", texts, want)
	}
	odd := must.Get((&graph.Graph{Title: "\x01 \xff"}).SVG(t.Context())).In(t)
	if err := xml.Unmarshal(odd, new(struct{})); err != nil {
		t.Errorf("what XML cannot hold is in the picture: %v", err)
	}
	boxes := regexp.MustCompile(`<rect class="node [a-z ]+"`).FindAll(picture, -1)
	if len(boxes) != 30 {
		t.Errorf("%d boxes", len(boxes))
	}
}
