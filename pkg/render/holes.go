package render

// Hole is a place where a template prints a value.
type Hole struct {
	// Line and Column are the start of the printing part of its action.
	Line, Column int
	// Text is the action as written, with delimiters.
	Text string
	// Path is where the hole is in the document, ".spec.replicas" or ".spec.containers[].image", or "" if unknown, as in a
	// comment. If a hole has several paths, it is one of them.
	Path string
	// Structure means that a map or list of the upstream can enter here: the hole is a whole value, or prints entries or items
	// with toYaml. If it is false, no path through the template lets a map or list in.
	Structure bool
	// Key means that the hole is a key or part of one.
	Key bool
	// String means that the result is always a string: the hole is in quotes or next to other text, or its last function
	// returns text.
	String bool
}

// Holes lists every hole in the order of the template, to show where structure can enter.
func (t *Template) Holes() []Hole {
	return append([]Hole(nil), t.holes...)
}

// holeUse is what the probes saw of a hole.
type holeUse struct {
	seen, whole, key, text bool
	path                   string
}

// asHole returns the Hole for what the probes saw. A hole that no probe saw counts as a whole value.
func (s *site) asHole(seen holeUse) Hole {
	h := Hole{Line: s.line, Column: s.column, Text: s.source, Path: seen.path, Key: seen.key}
	h.Structure = !s.alwaysText && !s.inText && !s.scalar
	h.String = s.alwaysText || s.inText
	return h
}
