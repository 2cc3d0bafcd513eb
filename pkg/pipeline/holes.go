package pipeline

import "github.com/corollary-dev/corollary/pkg/render"

// StructureHoles returns the holes of a downstream through which a custom resource can put a map or list into the
// document, and how many of the holes that stand alone cannot hold one, since the upstream's schema declares text, a
// number or a boolean there. A constant of the config is neither. In doubt a hole counts as one that lets structure in.
func (p *Pipeline) StructureHoles(d *Downstream) (open []render.Hole, closed int) {
	printed := map[[2]int]shape{}
	for pos, s := range walkShapes(d.Config.Template, p.renderOptions(), p.rootsOf(d)).printed {
		line, column := d.source.place(int(pos))
		printed[[2]int{line, column}] = s
	}
	for _, h := range d.Holes() {
		s := printed[[2]int{h.Line, h.Column}]
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

// Place tells file and line of a line of a downstream's template, such as that of a hole or of an error.
func (d *Downstream) Place(line int) (file string, at int) { return d.source.at(line) }
