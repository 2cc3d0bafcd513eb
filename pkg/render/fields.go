package render

import (
	"fmt"
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

// fieldDepth is the depth of Fields: metadata.labels.KEY.
const fieldDepth = 3

// Fields lists the fields near the root of the document, outside lists, that are known without an upstream. A field with
// several possible values is listed once for each.
func (t *Template) Fields() []Field { return append([]Field(nil), t.fields...) }

// fieldCount collects the fields that the probes see.
type fieldCount struct {
	probes int // probes that gave a document
	fields []Field
	keys   []string       // of fields: path and value
	seen   map[string]int // the number of probes that saw it, by key
}

// read adds what one probe saw.
func (c *fieldCount) read(q *printer, root *node) {
	c.probes++
	now := map[string]bool{}
	c.walk(q, root, nil, now)
	for key := range now {
		c.seen[key]++
	}
}

func (c *fieldCount) walk(q *printer, n *node, path []string, now map[string]bool) {
	if n.kind != mapNode || len(path) == fieldDepth {
		return
	}
	for _, e := range n.entries {
		if e.splice >= 0 || e.holes != nil {
			continue
		}
		f := Field{Path: append(path[:len(path):len(path)], e.key), Optional: q.optional(e.value)}
		if e.value.kind == constNode {
			f.Constant, f.Value = true, e.value.value
		}
		key := fmt.Sprintf("%q %t %t %#v", f.Path, f.Constant, f.Optional, f.Value)
		if c.seen[key] == 0 && !now[key] {
			f.Line = q.place(q.buf, q.trace, e.line)
			c.fields, c.keys = append(c.fields, f), append(c.keys, key)
		}
		now[key] = true
		c.walk(q, e.value, f.Path, now)
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
func (q *printer) optional(n *node) bool {
	omits := func(record int) bool { return q.sites[q.recs[record].site].omit }
	switch n.kind {
	case holeNode:
		return omits(n.record)
	case textNode:
		return wholeHole(n.parts) && omits(n.parts[0].record)
	case mapNode:
		for _, e := range n.entries {
			if e.splice < 0 || !omits(e.splice) {
				return false
			}
		}
		return len(n.entries) > 0
	case listNode:
		for _, item := range n.items {
			if item.kind != spliceNode || !omits(item.record) {
				return false
			}
		}
		return len(n.items) > 0
	}
	return false
}
