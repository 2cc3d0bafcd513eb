package holes

import "github.com/corollary-dev/corollary/pkg/render/skeleton"

// Document is the document of one path through a template's conditions. Its nodes number its lines and holes.
type Document struct {
	Root  *skeleton.Node
	by    *printer
	holes map[int]Hole // by site
	lines map[int]int  // of the template, by line of the skeleton
}

// Line returns the line in the template, from 1, of a line of the document.
func (d *Document) Line(of int) int {
	at, ok := d.lines[of]
	if !ok {
		at = d.by.LineOf(of)
		d.lines[of] = at
	}
	return at
}

// Hole returns the hole of a record.
func (d *Document) Hole(record int) Hole { return d.holes[d.by.Records[record].Site] }
