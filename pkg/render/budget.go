package render

import (
	"fmt"
	"math"
	"time"
)

// Budget limits what rendering one upstream may use: every document and text takes from it before it allocates or computes
// anything. It is not safe for concurrent use. Data without a Budget gets a new one for each execution.
type Budget struct {
	limits     Limits
	bytes      int  // that may still be allocated
	steps      int  // that may still be taken
	values     int  // that the document may still have
	text       int  // that the text of the document may still have
	nesting    int  // depth of the value that is being copied
	placing    bool // the value that is being copied goes into the document
	reserve    *reserve
	since      time.Time
	sinceClock int // steps since the last look at the clock
}

// reserve is the part of a Budget that is not available until larger allows it.
type reserve struct {
	bytes, steps int
	larger       func() error
}

// smallShare is the divisor of a Budget that gives the part available without larger.
const smallShare = 16

// NewBudget returns a Budget with the limits; zero fields mean the default. larger, if not nil, is called once, when a
// sixteenth of the bytes or steps is used; if it returns an error, rendering ends.
func NewBudget(l Limits, larger func() error) *Budget {
	b := &Budget{}
	b.reset(l.withDefaults(), larger)
	return b
}

func (b *Budget) reset(l Limits, larger func() error) {
	*b = Budget{limits: l, bytes: l.Bytes, steps: l.Steps}
	if larger != nil {
		b.bytes, b.steps = l.Bytes/smallShare, l.Steps/smallShare
		b.reserve = &reserve{bytes: l.Bytes - b.bytes, steps: l.Steps - b.steps, larger: larger}
	}
	b.begin()
}

// begin begins a document: size and time are limited for each document, steps for all of them together.
func (b *Budget) begin() {
	b.since = time.Now()
	b.values, b.text, b.nesting, b.placing = b.limits.Values, b.limits.Output, 0, false
}

// spend takes n bytes. Call it before allocating them.
func (b *Budget) spend(n int) error {
	for n < 0 || n > b.bytes {
		if more, err := b.enlarge(); err != nil {
			return err
		} else if !more {
			return limitf("rendering produces more than %s of text and values", size(b.limits.Bytes))
		}
	}
	b.bytes -= n
	return nil
}

// clockInterval is the number of steps between two looks at the clock.
const clockInterval = 2000

// work takes n steps. Call it before doing the work. A step is at most about a microsecond on an ordinary core.
func (b *Budget) work(n int) error {
	for n < 0 || n > b.steps {
		if more, err := b.enlarge(); err != nil {
			return err
		} else if !more {
			return limitf("rendering takes more than %d steps", b.limits.Steps)
		}
	}
	b.steps -= n
	if b.sinceClock += n; b.sinceClock < clockInterval {
		return nil
	}
	b.sinceClock = 0
	if time.Since(b.since) > b.limits.Time {
		text := fmt.Sprintf("rendering takes longer than %s", b.limits.Time)
		return &problem{text: text, kind: text, fix: limitFix, limit: ErrTime}
	}
	return nil
}

// enlarge makes the reserve available, once.
func (b *Budget) enlarge() (bool, error) {
	r := b.reserve
	if r == nil {
		return false, nil
	}
	b.reserve = nil
	if err := r.larger(); err != nil {
		return false, &problem{text: err.Error(), limit: err}
	}
	b.bytes, b.steps = b.bytes+r.bytes, b.steps+r.steps
	return true, nil
}

// place takes one value of the document, with n bytes of text.
func (b *Budget) place(n int) error {
	if b.values--; b.values < 0 {
		return b.tooManyValues()
	}
	if b.text -= n + 1; b.text < 0 {
		b.text = 0
		return limitf("the document has more than %s", size(b.limits.Output))
	}
	return nil
}

func (b *Budget) tooManyValues() error {
	return limitf("the document has more than %d values", b.limits.Values)
}

// maxNesting is how deep a value may nest: the API server's decoder allows 10,000 levels, real objects have about 30.
const maxNesting = 500

// nest enters a map or list that is copied; leave leaves it.
func (b *Budget) nest() error {
	if b.nesting++; b.nesting > maxNesting {
		return limitf("a value nests more than %d deep", maxNesting)
	}
	return nil
}

// textCost takes the cost of making a text of n bytes: its memory, and a step for each KiB.
func (b *Budget) textCost(n int) error {
	if err := b.spend(n); err != nil {
		return err
	}
	if n < 1<<10 {
		return nil
	}
	return b.work(n >> 10)
}

const limitFix = "reduce the custom resource, or what the template makes of it"

func limitf(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &problem{text: text, kind: text, fix: limitFix, limit: ErrLimit}
}

// size formats a number of bytes.
func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// times multiplies sizes; on overflow it returns the largest int.
func times(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

// plus adds sizes; on overflow it returns the largest int.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// The functions below are for values that are copied. While a document is filled, the values count as part of it too.

func (b *Budget) leave() { b.nesting-- }

// placed takes a scalar.
func (b *Budget) placed(v any) error {
	if !b.placing {
		return nil
	}
	if s, ok := v.(string); ok {
		return b.place(len(s))
	}
	return b.place(8)
}

// moreText takes text that is part of a value of the document: a key, or the output of a hole.
func (b *Budget) moreText(n int) error {
	if !b.placing {
		return nil
	}
	b.values++
	return b.place(n)
}

func (b *Budget) placeMap(n int) error {
	if b.placing {
		if err := b.place(2); err != nil {
			return err
		}
		if n > b.values {
			return b.tooManyValues()
		}
	}
	if err := b.work(1 + n/8); err != nil {
		return err
	}
	return b.spend(mapBytes(n))
}

func (b *Budget) placeList(n int) error {
	if b.placing {
		if err := b.place(2); err != nil {
			return err
		}
		if n > b.values {
			return b.tooManyValues()
		}
	}
	if err := b.work(1 + n/32); err != nil {
		return err
	}
	return b.spend(24 + 16*n)
}
