package render

import (
	"fmt"
)

// Field is a field of the document that the author has written, the keys that lead to it being constant.
type Field struct {
	// Path are the keys that lead to it, such as metadata and name.
	Path []string
	// Line is where its key stands in the template, at the first of several places.
	Line int
	// Constant says that Value is all that it can be: a scalar without a hole.
	Constant bool
	Value    any
	// Optional says that it stands for nothing but holes which may leave it out.
	Optional bool
	// Always says that it is there on every path through the template's conditions, as far as that was probed.
	Always bool
}

// fieldDepth is how deep Fields looks: metadata.labels.KEY.
const fieldDepth = 3

// Fields lists the fields that are written near the top of the document, outside lists: what can be known of them without
// an upstream. One that is given several values is listed for each.
func (t *Template) Fields() []Field { return append([]Field(nil), t.fields...) }

// fieldCount collects the fields that probes see.
type fieldCount struct {
	probes int // that gave a document
	fields []Field
	keys   []string       // of fields: path and value
	seen   map[string]int // by key, the probes
}

// read takes in what one probe saw.
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

// result are the fields, in the order in which they were seen first.
func (c *fieldCount) result() []Field {
	for i, key := range c.keys {
		c.fields[i].Always = c.seen[key] == c.probes
	}
	return c.fields
}

// optional reports whether a value is left out where its holes have nothing to say.
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
