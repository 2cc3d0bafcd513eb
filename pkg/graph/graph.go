// Package graph draws what follows from what: the kinds, inputs and downstreams of configs, or objects with their
// states. A graph is a value, written as DOT, Mermaid, SVG or HTML. Nothing is read from a cluster.
package graph

// Graph is what a picture shows.
type Graph struct {
	Title string
	// Groups are the operators, in the order of their configs, or the upstreams of a chain.
	Groups []Group
	// Edges lead from what comes first to what follows from it.
	Edges []Edge
}

// Group is nodes that belong together.
type Group struct {
	Title string
	Nodes []Node
}

// Role is what a node is in its config.
type Role int

// The roles.
const (
	Upstream Role = iota
	Downstream
	Input
	Before
)

// Tone is how an object does.
type Tone int

// The tones. Plain is of what has no state, as the kinds of configs.
const (
	Plain Tone = iota
	Good
	Waiting
	Bad
)

// Node is a kind in one role, or an object.
type Node struct {
	// ID is unique in the graph, and made of letters, digits and _.
	ID string
	Role
	Tone
	// Lines are shown in the node, the name first.
	Lines []string
	// Hint is shown by those formats that can show more when a person points at the node; empty for nothing.
	Hint string
}

// Relation is why one node follows from another.
type Relation int

// The relations.
const (
	// Makes: an upstream has the downstream.
	Makes Relation = iota
	// Reads: the document is made from the other object.
	Reads
	// After: the other object comes first.
	After
	// Chain: the object is an upstream of another operator.
	Chain
)

// Edge leads from one node to another.
type Edge struct {
	From, To string
	Relation
	// Label is short; Hint is the whole text where the label had to be cut.
	Label, Hint string
}

// longest is how many characters of an expression a label shows.
const longest = 36

// Shorten cuts a text to what fits beside an edge or into a node, on one line.
func Shorten(text string) string {
	runes := []rune(text)
	for i, r := range runes {
		if r == '\n' || r == '\t' {
			runes[i] = ' '
		}
	}
	if len(runes) <= longest {
		return string(runes)
	}
	return string(runes[:longest-1]) + "…"
}
