package render

// Hole is a place where a template prints a value.
type Hole struct {
	// Line and Column say where its action begins to say what it prints.
	Line, Column int
	// Text is the action as written, delimiters included.
	Text string
	// Path says where in the document the hole was seen, ".spec.replicas" or ".spec.containers[].image"; "" where
	// that is not known, as in a comment. A hole that several paths lead to gives one of them.
	Path string
	// Structure says that a map or list of the upstream can enter here: the hole is a whole value, or prints the
	// entries or items that toYaml gives. Where it is false, execution lets none in, whichever path it takes.
	Structure bool
	// Key says that the hole is a key or part of one.
	Key bool
	// String says that whatever goes in, a string comes out: the hole stands in quotes or among other text, or its
	// last function gives text.
	String bool
}

// Holes lists every hole in the order of the template, for a reader who wants to know where structure can enter.
func (t *Template) Holes() []Hole {
	return append([]Hole(nil), t.holes...)
}

// sighting is what the probes saw of a hole.
type sighting struct {
	seen, whole, key, text bool
	path                   string
}

// asHole judges a hole by where it was seen. One that no probe saw is taken for a whole value.
func (s *site) asHole(seen sighting) Hole {
	h := Hole{Line: s.line, Column: s.column, Text: s.source, Path: seen.path, Key: seen.key}
	h.Structure = !s.alwaysText && !s.inText && !s.scalar
	h.String = s.alwaysText || s.inText
	return h
}
