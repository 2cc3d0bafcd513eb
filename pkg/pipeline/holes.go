package pipeline

import (
	"strings"

	"github.com/corollary-dev/corollary/pkg/render"
)

// StructureHoles returns the holes of a downstream through which a custom resource can put a map or list into the
// document, and how many of the holes that stand alone cannot hold one, since the upstream's schema declares text, a
// number or a boolean there. In doubt a hole counts as one that lets structure in.
func (p *Pipeline) StructureHoles(d *Downstream) (open []render.Hole, closed int) {
	left, right := p.delimiters()
	known := map[[2]int]bool{}
	for pos := range closedActions(d.Config.Template, left, right, p.rootsOf(d)) {
		before := d.Config.Template[:pos]
		known[[2]int{1 + strings.Count(before, "\n"), len(before) - strings.LastIndex(before, "\n")}] = true
	}
	for _, h := range d.Holes() {
		switch {
		case !h.Structure:
		case known[[2]int{h.Line, h.Column}]:
			closed++
		default:
			open = append(open, h)
		}
	}
	return open, closed
}

func (p *Pipeline) delimiters() (left, right string) {
	if list := p.Config.Delimiters; len(list) == 2 {
		return list[0], list[1]
	}
	return "{{", "}}"
}
