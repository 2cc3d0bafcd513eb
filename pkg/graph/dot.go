package graph

import (
	"fmt"
	"strings"
)

// nodeStyles and edgeStyles are DOT attributes.
var (
	nodeStyles = map[Role]string{
		Upstream:   `shape=box, style="filled,rounded,bold", fillcolor="#dbeafe", color="#1d4ed8"`,
		Downstream: `shape=box, style="filled", fillcolor="#ffffff", color="#475569"`,
		Input:      `shape=note, style="filled", fillcolor="#fef9c3", color="#a16207"`,
		Before:     `shape=box, style="filled,dashed", fillcolor="#fee2e2", color="#b91c1c"`,
	}
	toneStyles = map[Tone]string{
		Good: `, color="#15803d"`, Waiting: `, color="#b45309"`, Bad: `, color="#b91c1c", fillcolor="#fee2e2"`,
	}
	edgeStyles = map[Relation]string{
		Makes: `color="#475569"`,
		Reads: `style=dashed, color="#a16207"`,
		After: `style=dotted, penwidth=1.5, color="#7c3aed"`,
		Chain: `penwidth=2, color="#1d4ed8"`,
	}
)

// DOT is the graph in the language of Graphviz.
func (g *Graph) DOT() string {
	var out strings.Builder
	fmt.Fprintf(&out, "digraph {\n\tgraph [rankdir=LR, fontname=\"Helvetica\", fontsize=12, bgcolor=white, tooltip=%s]\n",
		quoted(g.Title))
	out.WriteString("\tnode [fontname=\"Helvetica\", fontsize=11, margin=\"0.15,0.08\"]\n" +
		"\tedge [fontname=\"Helvetica\", fontsize=9, fontcolor=\"#334155\"]\n")
	for i, group := range g.Groups {
		fmt.Fprintf(&out, "\tsubgraph cluster_%d {\n\t\tgraph [label=%s, labeljust=l, style=rounded, color=\"#cbd5e1\"]\n",
			i, quoted(group.Title))
		for _, n := range group.Nodes {
			hint := n.Hint
			if hint == "" {
				hint = strings.Join(n.Lines, ", ")
			}
			fmt.Fprintf(&out, "\t\t%s [%s%s, label=%s, tooltip=%s]\n",
				n.ID, nodeStyles[n.Role], toneStyles[n.Tone], quoted(n.Lines...), quoted(hint))
		}
		out.WriteString("\t}\n")
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&out, "\t%s -> %s [%s", e.From, e.To, edgeStyles[e.Relation])
		if e.Label != "" {
			fmt.Fprintf(&out, ", label=%s", quoted(e.Label))
		}
		if e.Hint != "" {
			fmt.Fprintf(&out, ", labeltooltip=%s, tooltip=%[1]s", quoted(e.Hint))
		}
		out.WriteString("]\n")
	}
	out.WriteString("}\n")
	return out.String()
}

// quoted is a string of DOT, in which a backslash begins an escape of the label and of nothing else.
func quoted(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "", "\x00", "")
	escaped := make([]string, len(lines))
	for i, line := range lines {
		escaped[i] = escape.Replace(line)
	}
	return `"` + strings.Join(escaped, `\n`) + `"`
}
