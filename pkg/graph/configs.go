package graph

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// OfConfigs is the graph of compiled configs, which are shown in their order.
func OfConfigs(list []*compile.Pipeline) *Graph {
	g := &Graph{}
	for i, p := range list {
		if i > 0 {
			g.Title += ", "
		}
		g.Title += p.Name
		c := &drawing{Pipeline: p, graph: g, number: i}
		g.Groups = append(g.Groups, Group{Title: "operator " + p.Name, Nodes: c.nodes()})
		c.edges()
	}
	for i, p := range list {
		c := &drawing{Pipeline: p, graph: g, number: i}
		for k, other := range list {
			c.chain(other, k)
		}
	}
	return g
}

// drawing adds one config to a graph.
type drawing struct {
	*compile.Pipeline
	graph  *Graph
	number int
}

func (c *drawing) id(part string, index int) string {
	return fmt.Sprintf("o%d_%s%d", c.number, part, index)
}
func (c *drawing) upstream() string        { return c.id("upstream", 0) }
func (c *drawing) downstream(i int) string { return c.id("downstream", i) }

func (c *drawing) nodes() []Node {
	nodes := []Node{c.upstreamNode()}
	for i, s := range c.Inputs {
		nodes = append(nodes, Node{ID: c.id("input", i), Role: Input, Lines: inputLines(s)})
	}
	for i, d := range c.Downstreams {
		lines := []string{d.Name, kindOf(d.GVK())}
		if d.HasGenerated() {
			lines = append(lines, "random values")
		}
		nodes = append(nodes, Node{ID: c.downstream(i), Role: Downstream, Lines: append(lines, c.cleanup(d))})
	}
	if c.Before != nil {
		b := c.Before.Config
		nodes = append(nodes, Node{ID: c.id("before", 0), Role: Before,
			Lines: []string{"before a deletion", kindOf(schema.FromAPIVersionAndKind(b.APIVersion, b.Kind))}})
	}
	return nodes
}

func (c *drawing) upstreamNode() Node {
	n := Node{ID: c.upstream(), Role: Upstream}
	if c.HasRows() {
		n.Lines, n.Hint = []string{"rows of a query"}, c.Config.Source.Query
		return n
	}
	w := c.Config.Watch
	gvk := schema.FromAPIVersionAndKind(w.APIVersion, w.Kind)
	if n.Lines = []string{gvk.Kind, gvk.GroupVersion().String()}; c.Config.Deletion.Wait {
		n.Lines = append(n.Lines, "stays until all is deleted")
	}
	return n
}

// cleanup says what becomes of the objects of a downstream when their upstream is deleted.
func (c *drawing) cleanup(d *desired.Downstream) string {
	reference, from := c.Config.Conventions.Owner.Reference, d.Config.TargetNamespaces.From
	switch {
	case d.OwnsFields():
		return "fields of an object of others"
	case d.Config.DeletionPolicy == config.DeletionOrphan:
		return "kept when it is not wanted"
	case c.HasRows():
		return "deleted by the operator"
	case reference != nil && !*reference, c.Upstream.Namespaced && !d.Kind.Namespaced, c.HoldsDeletion():
		return "deleted by finalizer"
	case c.Upstream.Namespaced && from != "" && from != config.NamespacesSame:
		return "deleted by owner reference or finalizer"
	}
	return "deleted by owner reference"
}

func inputLines(s *desired.InputSource) []string {
	if s.HasRows() {
		return []string{s.Name, "rows of a query"}
	}
	lines := []string{s.Name, kindOf(s.Kind.GVK)}
	if s.Config.List != nil {
		lines[1] = "list of " + lines[1]
	}
	if s.Config.Missing == config.MissingAllow {
		lines = append(lines, "may be missing")
	}
	return lines
}

func kindOf(gvk schema.GroupVersionKind) string { return gvk.Kind + " " + gvk.GroupVersion().String() }

func (c *drawing) edges() {
	for i, s := range c.Inputs {
		if c.ValidatorInputs.Has(i) {
			c.add(c.id("input", i), c.upstream(), Reads, "validates")
		}
		for k, d := range c.Downstreams {
			if d.Inputs.Has(s.Index) || d.WhenInputs.Has(s.Index) || d.ItemsInputs.Has(s.Index) {
				c.add(c.id("input", i), c.downstream(k), Reads, "")
			}
		}
	}
	for i, d := range c.Downstreams {
		condition := conditionOf(d.Config.When)
		if each := d.Config.ForEach; each != nil {
			condition = strings.TrimSpace("for each " + each.Items + " " + condition)
		}
		c.add(c.upstream(), c.downstream(i), Makes, condition)
		for _, k := range d.Siblings {
			c.add(c.downstream(k), c.downstream(i), Reads, "reads")
		}
		for _, a := range d.Config.After {
			if k := c.IndexOf(a.Name); k >= 0 && !slices.Contains(d.Siblings, k) {
				label := "first, until ready"
				if a.Until == config.AfterCreated {
					label = "first"
				}
				c.add(c.downstream(k), c.downstream(i), After, label)
			}
		}
	}
	if c.Before != nil {
		condition := conditionOf(c.Before.Config.When)
		c.add(c.upstream(), c.id("before", 0), Makes, condition)
	}
}

// conditionOf says when an object is wanted; empty if it always is.
func conditionOf(when string) string {
	if when == "" || when == "true" {
		return ""
	}
	return "when " + when
}

// chain adds what another operator, at that index, watches of what this one makes.
func (c *drawing) chain(other *compile.Pipeline, index int) {
	if other.HasRows() {
		return
	}
	watched := schema.FromAPIVersionAndKind(other.Config.Watch.APIVersion, other.Config.Watch.Kind).GroupKind()
	to := (&drawing{number: index}).upstream()
	for i, d := range c.Downstreams {
		if d.GVK().GroupKind() == watched {
			c.add(c.downstream(i), to, Chain, "watched")
		}
	}
}

func (c *drawing) add(from, to string, relation Relation, label string) {
	e := Edge{From: from, To: to, Relation: relation, Label: Shorten(label)}
	if e.Label != label {
		e.Hint = label
	}
	c.graph.Edges = append(c.graph.Edges, e)
}
