package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/graph"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/survey/explain"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// graphOf draws an explanation: each upstream with its downstreams, and a downstream that is itself an upstream beside
// what follows from it. remarks are about no upstream, and not drawn.
func graphOf(e *explain.Explanation) (g *graph.Graph, remarks []string) {
	g = &graph.Graph{Title: e.Object.String()}
	made := map[string]string{} // the nodes of downstreams, by their objects
	for i, part := range e.Parts {
		up := part.Upstream
		if up == nil {
			remarks = append(remarks, part.Remark)
			continue
		}
		top := fmt.Sprintf("upstream%d", i)
		group := graph.Group{Title: "operator " + up.Operator,
			Nodes: []graph.Node{{ID: top, Role: graph.Upstream, Lines: linesOf(up.Object), Hint: hintOf(up.Notes, up.LeftOver)}}}
		if from, ok := made[keyOf(up.Object)]; ok {
			g.Edges = append(g.Edges, graph.Edge{From: from, To: top, Relation: graph.Chain})
		}
		for k, d := range up.Downstreams {
			n := graph.Node{ID: fmt.Sprintf("downstream%d_%d", i, k), Role: graph.Downstream, Tone: toneOf(d),
				Lines: append(linesOf(d.Object), stateOf(d)), Hint: hintOf([]string{d.Reason}, d.Notes)}
			if d.Reason != "" {
				n.Lines = append(n.Lines, graph.Shorten(command.OneLine(d.Reason)))
			}
			made[keyOf(d.Object)] = n.ID
			group.Nodes = append(group.Nodes, n)
			g.Edges = append(g.Edges, graph.Edge{From: top, To: n.ID, Label: graph.Shorten(d.Downstream)})
		}
		g.Groups = append(g.Groups, group)
	}
	return g, remarks
}

func keyOf(o findings.Object) string { return o.Kind.GroupKind().String() + " " + o.At.String() }

// linesOf are name and kind of an object; of one that has no name yet, the kind alone.
func linesOf(o findings.Object) []string {
	if o.At.Name == "" {
		return []string{o.Kind.Kind}
	}
	kind := o.Kind.Kind
	if o.At.Namespace != "" {
		kind += " in " + o.At.Namespace
	}
	return []string{graph.Shorten(o.At.Name), kind}
}

// hintOf is what is said beside what is shown.
func hintOf(notes ...[]string) string {
	return strings.Trim(strings.Join(slices.Concat(notes...), "\n"), "\n")
}

func stateOf(d explain.Downstream) string {
	if operator.State(d.State) == operator.StateInSync && !d.Ready {
		return d.State + ", not ready"
	}
	return d.State
}

// toneOf is how an object does: bad is what failed or needs a person.
func toneOf(d explain.Downstream) graph.Tone {
	switch state := operator.State(d.State); {
	case d.Failure != nil || state.NeedsPerson():
		return graph.Bad
	case d.Ready:
		return graph.Good
	default:
		return graph.Waiting
	}
}
