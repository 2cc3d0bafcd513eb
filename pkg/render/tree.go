package render

// nodeKind says how a node of a parsed skeleton is filled.
type nodeKind uint8

const (
	constNode nodeKind = iota // the author's own scalar
	holeNode                  // a whole plain scalar: the value with its type
	textNode                  // text with holes, or a hole in quotes: a string
	mapNode
	listNode
	spliceNode // a list item that stands for a list's items
)

// node is a part of a parsed skeleton. Trees are shared by all executions that print the same skeleton and are never
// changed once built.
type node struct {
	kind    nodeKind
	value   any // constNode
	record  int // holeNode, spliceNode
	parts   []part
	entries []entry
	items   []*node
	// checked: a map whose keys are known only when it is filled, so that each must be compared with its siblings.
	checked bool
	line    int // in the skeleton
}

// entry is one key of a map, or a splice that stands for a whole map's entries.
type entry struct {
	key    string
	holes  []part // the key has holes
	splice int    // the record whose entries go here; -1: none
	value  *node
	line   int // in the skeleton
}

// skeleton is a parsed skeleton with what it weighs in the cache.
type skeleton struct {
	root *node
	size int
}
