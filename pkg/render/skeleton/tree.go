package skeleton

// NodeKind says how a node of a parsed skeleton is filled.
type NodeKind uint8

const (
	// ConstNode is a scalar without holes.
	ConstNode NodeKind = iota
	// HoleNode is a whole plain scalar: the value with its type.
	HoleNode
	// TextNode is text with holes, or a hole in quotes: a string.
	TextNode
	// MapNode is a map.
	MapNode
	// ListNode is a list.
	ListNode
	// SpliceNode is a list item that is replaced by the items of a list.
	SpliceNode
)

// Node is a part of a parsed skeleton. All executions that print the same skeleton share it; it is immutable once
// built.
type Node struct {
	Kind    NodeKind
	Value   any // ConstNode
	Record  int // HoleNode, SpliceNode
	Parts   []Part
	Entries []Entry
	Items   []*Node
	// Checked marks a map with keys that are known only when it is filled, so that duplicates must be checked then.
	Checked bool
	Line    int // in the skeleton
}

// Entry is one key of a map, or a splice of the entries of another map.
type Entry struct {
	Key    string
	Holes  []Part // the key has holes
	Splice int    // the record whose entries go here; -1: none
	Value  *Node
	Line   int // in the skeleton
	// Written is the key as it is written, if YAML reads it as another.
	Written string
}
