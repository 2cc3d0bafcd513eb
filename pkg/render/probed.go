package render

import "github.com/corollary-dev/corollary/pkg/render/skeleton"

// Probed is the document of one path through a template's conditions. Its nodes number its lines and holes.
type Probed struct {
	Root  *skeleton.Node
	by    *printer
	holes map[int]Hole // by site
	lines map[int]int  // of the template, by line of the skeleton
}

// Line returns the line in the template, from 1, of a line of the document.
func (p *Probed) Line(of int) int {
	at, ok := p.lines[of]
	if !ok {
		at = p.by.place(p.by.buf, p.by.trace, of)
		p.lines[of] = at
	}
	return at
}

// Hole returns the hole of a record.
func (p *Probed) Hole(record int) Hole { return p.holes[p.by.recs[record].site] }
