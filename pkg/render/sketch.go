package render

import "reflect"

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
	done  map[*node]*Sketch
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

func (s *sketcher) inParts(parts []part) []Hole {
	var holes []Hole
	for _, p := range parts {
		if p.record >= 0 {
			holes = append(holes, s.hole(p.record))
		}
	}
	return holes
}

func (s *sketcher) sketch(n *node) *Sketch {
	if done := s.done[n]; done != nil {
		return done
	}
	out := &Sketch{Line: s.line(n.line)}
	s.done[n] = out
	switch n.kind {
	case constNode:
		out.Value = n.value
	case holeNode:
		out.Kind, out.Holes = SketchHole, []Hole{s.hole(n.record)}
	case textNode:
		out.Kind, out.Holes = SketchText, s.inParts(n.parts)
	case spliceNode:
		out.Kind, out.Holes = SketchSplice, []Hole{s.hole(n.record)}
	case mapNode:
		s.entries(out, n)
	case listNode:
		s.items(out, n)
	}
	return out
}

func (s *sketcher) entries(out *Sketch, n *node) {
	out.Kind = SketchMap
	spliced := len(n.entries) > 0
	for _, e := range n.entries {
		entry := SketchEntry{Key: e.key, Written: e.written, Line: s.line(e.line), Holes: s.inParts(e.holes)}
		if e.splice >= 0 {
			entry.Holes = []Hole{s.hole(e.splice)}
			out.Holes = append(out.Holes, entry.Holes...)
		} else {
			entry.Value = s.sketch(e.value)
			spliced = false
		}
		out.Entries = append(out.Entries, entry)
	}
	if spliced {
		out.Kind = SketchSplice
	}
}

func (s *sketcher) items(out *Sketch, n *node) {
	out.Kind = SketchList
	spliced := len(n.items) > 0
	for _, item := range n.items {
		of := s.sketch(item)
		out.Items = append(out.Items, of)
		if of.Kind == SketchSplice && item.kind == spliceNode {
			out.Holes = append(out.Holes, of.Holes...)
		} else {
			spliced = false
		}
	}
	if spliced {
		out.Kind = SketchSplice
	}
}

// ResultType returns the schema type of the results of a template function: string, integer, number or boolean; "" if it is not
// always the same.
func ResultType(function string) string {
	t := resultType(function)
	if t == nil {
		return ""
	}
	switch k := t.Kind(); {
	case k == reflect.String:
		return "string"
	case k == reflect.Bool:
		return "boolean"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "integer"
	case k == reflect.Float32 || k == reflect.Float64:
		return "number"
	}
	return ""
}
