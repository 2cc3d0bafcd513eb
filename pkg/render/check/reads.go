package check

import "slices"

// Read is a field of the upstream that is read, lists taking no step. Whole: with everything below it; else, only
// whether it is there, or what other reads name.
type Read struct {
	Path  []string
	Whole bool
}

// IsOf reports whether reading it reads a field that has no fields itself.
func (r Read) IsOf(leaf []string) bool {
	n := min(len(r.Path), len(leaf))
	return slices.Equal(r.Path[:n], leaf[:n]) && (r.Whole || len(r.Path) >= len(leaf))
}

// read notes that a template reads a value: with whole, everything in it.
func (w *walk) read(s shape, whole bool) {
	for _, one := range s.either {
		w.read(one, true)
	}
	if s.at != nil {
		w.Reads = append(w.Reads, Read{s.at, whole})
	}
}
