package skeleton

import "bytes"

// Record is the value of one hole in one execution.
type Record struct {
	Site  int // the number of the hole in its template
	Value any
}

// Output is a skeleton that is being printed, with the records of its placeholders.
type Output struct {
	Buf     []byte
	Records []Record
	// Tracing means that each piece is printed with the line of the template that it is from.
	Tracing bool

	start int  // in Buf, of the text of the template that is being included
	blank bool // this text is at the start of a line
	trace []traced
}

// traced is the source of a piece of a skeleton.
type traced struct {
	offset int
	line   int
	isText bool // the piece is the template's own text, whose lines follow that line
}

// Reset makes an output an empty one; it keeps the memory.
func (o *Output) Reset(tracing bool) {
	*o = Output{Buf: o.Buf[:0], Records: o.Records[:0], blank: true, Tracing: tracing, trace: o.trace[:0]}
}

// Placeholder records v and appends its placeholder.
func (o *Output) Placeholder(b []byte, site int, v any, kind byte) []byte {
	o.Records = append(o.Records, Record{Site: site, Value: v})
	return AppendPlaceholder(b, kind, len(o.Records)-1)
}

// AtLineStart reports whether the line that is being printed is blank so far.
func (o *Output) AtLineStart() bool {
	i := len(o.Buf)
	for i > o.start && o.Buf[i-1] == ' ' {
		i--
	}
	if i == o.start {
		return o.blank
	}
	return o.Buf[i-1] == '\n'
}

// Mark records, while tracing, that what is printed next is from a line of the template. isText: it is the template's
// own text.
func (o *Output) Mark(line int, isText bool) {
	if o.Tracing {
		o.trace = append(o.trace, traced{offset: len(o.Buf), line: line, isText: isText})
	}
}

// Included is where the text of an included template begins, and what was so before.
type Included struct {
	At, start, traced int
	blank             bool
}

// Include begins the text of an included template. blank means that it is at the start of a line.
func (o *Output) Include(blank bool) Included {
	in := Included{At: len(o.Buf), start: o.start, traced: len(o.trace), blank: o.blank}
	o.start, o.blank = in.At, blank
	return in
}

// Remove ends the text of an included template, and removes it. Its records stay.
func (o *Output) Remove(in Included) {
	o.Buf, o.start, o.blank, o.trace = o.Buf[:in.At], in.start, in.blank, o.trace[:in.traced]
}

// LineOf returns the line of the template that printed a line of the skeleton.
func (o *Output) LineOf(line int) int {
	offset := 0
	for ; line > 1; line-- {
		next := bytes.IndexByte(o.Buf[offset:], '\n')
		if next < 0 {
			break
		}
		offset += next + 1
	}
	for offset < len(o.Buf) && o.Buf[offset] == ' ' {
		offset++
	}
	found := 0
	for _, piece := range o.trace {
		if piece.offset > offset && found > 0 {
			break
		}
		if found = piece.line; piece.isText {
			found += bytes.Count(o.Buf[min(piece.offset, offset):offset], []byte("\n"))
		}
	}
	return found
}
