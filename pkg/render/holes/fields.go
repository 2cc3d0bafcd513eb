package holes

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/render/skeleton"
)

// Field is a field of the document that is written in the template with constant keys.
type Field struct {
	// Path is the keys that lead to it, such as metadata and name.
	Path []string
	// Line is the line of its key in the template, the first if there are several.
	Line int
	// Constant means that Value is its only possible value: a scalar without a hole.
	Constant bool
	Value    any
	// Optional means that its value consists of holes that may all be omitted.
	Optional bool
	// Always means that the field is present on every path through the template's conditions that was probed.
	Always bool
}

// fieldDepth is how deep fields are listed: metadata.labels.KEY.
const fieldDepth = 3

// fieldCount collects the fields that the probes see.
type fieldCount struct {
	probes int // probes that gave a document
	fields []Field
	keys   []string       // of fields: path and value
	seen   map[string]int // the number of probes that saw it, by key
}

// read adds what one probe saw.
func (c *fieldCount) read(q *printer, root *skeleton.Node) {
	c.probes++
	now := map[string]bool{}
	c.walk(q, root, nil, now)
	for key := range now {
		c.seen[key]++
	}
}

func (c *fieldCount) walk(q *printer, n *skeleton.Node, path []string, now map[string]bool) {
	if n.Kind != skeleton.MapNode || len(path) == fieldDepth {
		return
	}
	for _, e := range n.Entries {
		if e.Splice >= 0 || e.Holes != nil {
			continue
		}
		f := Field{Path: append(path[:len(path):len(path)], e.Key), Optional: q.optional(e.Value)}
		if e.Value.Kind == skeleton.ConstNode {
			f.Constant, f.Value = true, e.Value.Value
		}
		key := fmt.Sprintf("%q %t %t %#v", f.Path, f.Constant, f.Optional, f.Value)
		if c.seen[key] == 0 && !now[key] {
			f.Line = q.LineOf(e.Line)
			c.fields, c.keys = append(c.fields, f), append(c.keys, key)
		}
		now[key] = true
		c.walk(q, e.Value, f.Path, now)
	}
}

// result returns the fields in the order in which they were first seen.
func (c *fieldCount) result() []Field {
	for i, key := range c.keys {
		c.fields[i].Always = c.seen[key] == c.probes
	}
	return c.fields
}

// optional reports whether a value is omitted if all its holes are.
func (q *printer) optional(n *skeleton.Node) bool {
	omits := func(record int) bool { return q.Sites[q.Records[record].Site].Omit }
	switch n.Kind {
	case skeleton.HoleNode:
		return omits(n.Record)
	case skeleton.TextNode:
		return skeleton.WholeHole(n.Parts) && omits(n.Parts[0].Record)
	case skeleton.MapNode:
		for _, e := range n.Entries {
			if e.Splice < 0 || !omits(e.Splice) {
				return false
			}
		}
		return len(n.Entries) > 0
	case skeleton.ListNode:
		for _, item := range n.Items {
			if item.Kind != skeleton.SpliceNode || !omits(item.Record) {
				return false
			}
		}
		return len(n.Items) > 0
	}
	return false
}
