package check

import "github.com/corollary-dev/corollary/pkg/render/holes"

// StructureHoles returns the holes through which a custom resource can put a map or list into the document, and how
// many of the holes that are a whole value cannot hold one, since the upstream's schema declares text, a number or a
// boolean there. A constant of the config is neither. In doubt a hole counts as one that lets structure in.
func (w *Walked) StructureHoles(of []holes.Hole) (open []holes.Hole, closed int) {
	for _, h := range of {
		s := w.position(h)
		switch {
		case !h.Structure || s.constant:
		case s.closed():
			closed++
		default:
			open = append(open, h)
		}
	}
	return open, closed
}

// position is what is known of a hole.
func (w *Walked) position(h holes.Hole) printed {
	if p := w.printed[place{h.Line, h.Column}]; p != nil {
		return *p
	}
	return printed{}
}
