package graph

import (
	"fmt"
	"html"
	"strings"
)

// nodeShapes are what a node's text is between, and arrows are what an edge is drawn with.
var (
	nodeShapes = map[Role][2]string{
		Upstream: {"([", "])"}, Downstream: {"[", "]"}, Input: {"[/", "/]"}, Before: {"{{", "}}"},
	}
	arrows = map[Relation]string{Makes: "-->", Reads: "-.->", After: "-.->", Chain: "==>"}
)

// Mermaid is the graph as a flowchart of Mermaid, which Git hosts draw in a block of Markdown.
func (g *Graph) Mermaid() string {
	var out strings.Builder
	out.WriteString("flowchart LR\n")
	toned := false
	for i, group := range g.Groups {
		fmt.Fprintf(&out, "  subgraph operator%d[%s]\n", i, mermaidText(group.Title))
		for _, n := range group.Nodes {
			shape := nodeShapes[n.Role]
			class := ""
			if n.Tone != Plain {
				class = ":::" + toneClass[n.Tone]
				toned = true
			}
			fmt.Fprintf(&out, "    %s%s%s%s%s\n", n.ID, shape[0], mermaidText(n.Lines...), shape[1], class)
		}
		out.WriteString("  end\n")
	}
	for _, e := range g.Edges {
		label := ""
		if e.Label != "" {
			label = "|" + mermaidText(e.Label) + "|"
		}
		fmt.Fprintf(&out, "  %s %s%s %s\n", e.From, arrows[e.Relation], label, e.To)
	}
	if toned {
		out.WriteString("  classDef good stroke:#15803d\n  classDef waiting stroke:#b45309\n" +
			"  classDef bad stroke:#b91c1c,stroke-width:3px\n")
	}
	return out.String()
}

// mermaidText is a quoted text, in which Mermaid knows entities, but neither escapes nor Markdown between backquotes.
func mermaidText(lines ...string) string {
	escaped := make([]string, len(lines))
	for i, line := range lines {
		text := html.EscapeString(strings.Join(strings.Fields(line), " "))
		escaped[i] = strings.NewReplacer("&#34;", "#quot;", "&#39;", "#39;", "&lt;", "#lt;", "&gt;", "#gt;", "&amp;", "#amp;",
			"#", "#35;", "`", "#96;").Replace(text)
	}
	return `"` + strings.Join(escaped, "<br>") + `"`
}
