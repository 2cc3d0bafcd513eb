package render

import "github.com/corollary-dev/corollary/pkg/render/skeleton"

// Sketch is a document as one path through a template's conditions prints it: literal values and holes. A node with aliases is
// shared.
type Sketch struct {
	Kind SketchKind
	// Line is its line in the template, from 1.
	Line int
	// Value is the value of a scalar without holes.
	Value any
	// Holes are the holes in a scalar, or those whose entries or items are here.
	Holes   []Hole
	Entries []SketchEntry
	Items   []*Sketch
}

// SketchEntry is an entry of a map. Its key has no holes, or is unknown apart from its holes.
type SketchEntry struct {
	Key string
	// Written is the key as the template has it, if YAML reads it as another, such as y.
	Written string
	Line    int
	Holes   []Hole
	// Value is nil if the holes are any number of entries.
	Value *Sketch
}

// SketchKind is the kind of a Sketch.
type SketchKind uint8

const (
	// SketchScalar is a scalar without holes.
	SketchScalar SketchKind = iota
	// SketchHole is the value of a hole.
	SketchHole
	// SketchText is text with holes in it.
	SketchText
	// SketchMap is a map.
	SketchMap
	// SketchList is a list. An item of kind SketchSplice is any number of items.
	SketchList
	// SketchSplice is the output of holes that print only entries or items.
	SketchSplice
)

// sketcher makes sketches of the document of one probe.
type sketcher struct {
	*printer
	holes map[int]Hole // by site
	done  map[*skeleton.Node]*Sketch
	lines map[int]int // of the template, by line of the skeleton
}

func (s *sketcher) line(of int) int {
	at, ok := s.lines[of]
	if !ok {
		at = s.place(s.buf, s.trace, of)
		s.lines[of] = at
	}
	return at
}

func (s *sketcher) hole(record int) Hole { return s.holes[s.recs[record].site] }

func (s *sketcher) inParts(parts []skeleton.Part) []Hole {
	var holes []Hole
	for _, p := range parts {
		if p.Record >= 0 {
			holes = append(holes, s.hole(p.Record))
		}
	}
	return holes
}

func (s *sketcher) sketch(n *skeleton.Node) *Sketch {
	if done := s.done[n]; done != nil {
		return done
	}
	out := &Sketch{Line: s.line(n.Line)}
	s.done[n] = out
	switch n.Kind {
	case skeleton.ConstNode:
		out.Value = n.Value
	case skeleton.HoleNode:
		out.Kind, out.Holes = SketchHole, []Hole{s.hole(n.Record)}
	case skeleton.TextNode:
		out.Kind, out.Holes = SketchText, s.inParts(n.Parts)
	case skeleton.SpliceNode:
		out.Kind, out.Holes = SketchSplice, []Hole{s.hole(n.Record)}
	case skeleton.MapNode:
		s.entries(out, n)
	case skeleton.ListNode:
		s.items(out, n)
	}
	return out
}

func (s *sketcher) entries(out *Sketch, n *skeleton.Node) {
	out.Kind = SketchMap
	spliced := len(n.Entries) > 0
	for _, e := range n.Entries {
		entry := SketchEntry{Key: e.Key, Written: e.Written, Line: s.line(e.Line), Holes: s.inParts(e.Holes)}
		if e.Splice >= 0 {
			entry.Holes = []Hole{s.hole(e.Splice)}
			out.Holes = append(out.Holes, entry.Holes...)
		} else {
			entry.Value = s.sketch(e.Value)
			spliced = false
		}
		out.Entries = append(out.Entries, entry)
	}
	if spliced {
		out.Kind = SketchSplice
	}
}

func (s *sketcher) items(out *Sketch, n *skeleton.Node) {
	out.Kind = SketchList
	spliced := len(n.Items) > 0
	for _, item := range n.Items {
		of := s.sketch(item)
		out.Items = append(out.Items, of)
		if of.Kind == SketchSplice && item.Kind == skeleton.SpliceNode {
			out.Holes = append(out.Holes, of.Holes...)
		} else {
			spliced = false
		}
	}
	if spliced {
		out.Kind = SketchSplice
	}
}
