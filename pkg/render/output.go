package render

import (
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// record is the value of one hole in one execution.
type record struct {
	site  int // the hole, as an index of Template.sites
	value any
}

// output is a skeleton that is being printed, with the records of its placeholders.
type output struct {
	buf  []byte
	recs []record

	// base is the start in buf of the text of the template that is being included; blank means that this text is at the start
	// of a line.
	base  int
	blank bool

	tracing bool
	trace   []traced
}

// traced is the source of a piece of a skeleton.
type traced struct {
	offset int
	pos    parse.Pos // the position of a text node; -1: line and column are those of a hole
	site   int
}

// placeholder records v and appends its placeholder.
func (o *output) placeholder(b []byte, id int, v any, kind byte) []byte {
	o.recs = append(o.recs, record{site: id, value: v})
	return skeleton.AppendPlaceholder(b, kind, len(o.recs)-1)
}

// atLineStart reports whether the line that is being printed is blank so far.
func (o *output) atLineStart() bool {
	i := len(o.buf)
	for i > o.base && o.buf[i-1] == ' ' {
		i--
	}
	if i == o.base {
		return o.blank
	}
	return o.buf[i-1] == '\n'
}

// mark records, while an error is being located, that a hole prints here.
func (o *output) mark(id int) {
	if o.tracing {
		o.trace = append(o.trace, traced{offset: len(o.buf), pos: -1, site: id})
	}
}

// splitting takes the bytes for splitting a text at n placeholders.
func splitting(b *values.Budget, n int) error { return b.Spend(values.Times(n, 200)) }
