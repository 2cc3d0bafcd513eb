package render

// nodeKind says how a node of a parsed skeleton is filled.
type nodeKind uint8

const (
	constNode nodeKind = iota // a scalar without holes
	holeNode                  // a whole plain scalar: the value with its type
	textNode                  // text with holes, or a hole in quotes: a string
	mapNode
	listNode
	spliceNode // a list item that is replaced by the items of a list
)

// node is a part of a parsed skeleton. All executions that print the same skeleton share it; it is immutable once built.
type node struct {
	kind    nodeKind
	value   any // constNode
	record  int // holeNode, spliceNode
	parts   []part
	entries []entry
	items   []*node
	// checked marks a map with keys that are known only when it is filled, so that duplicates must be checked then.
	checked bool
	line    int // in the skeleton
}

// entry is one key of a map, or a splice of the entries of another map.
type entry struct {
	key    string
	holes  []part // the key has holes
	splice int    // the record whose entries go here; -1: none
	value  *node
	line   int // in the skeleton
	// written is the key as it is written, if YAML reads it as another.
	written string
}

// skeleton is a parsed skeleton with its weight in the cache.
type skeleton struct {
	root *node
	size int
}
