package source

import (
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/sqltext"
)

// cursor knows the values of the cursor's column in past results. The zero cursor begins with all rows.
type cursor struct {
	// past are the greatest values of past results, with when these began; the last one is that of the result that is
	// read.
	past []cursorValue
	// full is when all rows were last read.
	full time.Time
	// from is from where the result that is read begins; nil: it has all rows.
	from any
}

type cursorValue struct {
	begun time.Time
	value any
}

// next begins a result. It has all rows if it is time for that, if it is in doubt, or if no past result is old enough:
// the value of a row that was not committed when the last result began is at least the greatest that was there Overlap
// before that.
func (c *cursor) next(o *Options, begun time.Time, doubt Doubt) {
	c.from = nil
	if o.Cursor == "" {
		return
	}
	if n := len(c.past); n > 0 && begun.Sub(c.full) < o.Full && doubt == (Doubt{}) {
		settled := c.past[n-1].begun.Add(-o.Overlap)
		for len(c.past) > 1 && !c.past[1].begun.After(settled) {
			c.past = c.past[1:]
		}
		if !c.past[0].begun.After(settled) {
			c.from = c.past[0].value
		}
	}
	now := cursorValue{begun: begun}
	if c.from == nil {
		c.full = begun
	} else {
		now.value = c.past[len(c.past)-1].value // if nothing has changed since
	}
	c.past = append(c.past, now)
}

// take notes a value of the result, whose rows come in the order of the cursor.
func (c *cursor) take(value any) {
	if n := len(c.past); n > 0 && value != nil {
		c.past[n-1].value = value
	}
}

// statement is what is executed, with the values of its parameters.
func (c *cursor) statement(o *Options, in dialect) (text string, values []any, err error) {
	query, err := sqltext.Query(o.Query)
	if err != nil || o.Cursor == "" {
		return query, nil, err
	}
	column := "q." + in.quote + strings.ReplaceAll(o.Cursor, in.quote, in.quote+in.quote) + in.quote
	text = "SELECT * FROM (\n" + query + "\n) AS q"
	if c.from != nil {
		text += " WHERE " + column + " >= " + in.parameter
		values = []any{c.from}
	}
	return text + " ORDER BY " + column + in.order, values, nil
}

// Partial reports whether the result that is read, or was read last, has only rows that may have changed.
func (s *Source) Partial() bool { return s.cursor.from != nil }
