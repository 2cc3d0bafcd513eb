package values

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Limits are the caps of all documents of one upstream, so that a loop over a number in a custom resource is an error
// and does not hang. Zero fields mean the default.
type Limits struct {
	// Bytes is how much text and how many values may be made, including intermediate ones. Default 48 MiB.
	Bytes int
	// Steps is the maximum amount of work: about a microsecond each, a call of a function for example. Default 500,000.
	Steps int
	// Time is how long rendering one document may take on a busy machine. Default one second.
	Time time.Duration
}

// The caps of one document.
const (
	// maxValues counts maps and lists, too.
	maxValues = 100_000
	// maxOutput is in bytes, about as JSON; the API server stores 1.5 MiB.
	maxOutput = 3 << 20
)

// Budget is what is left of the Limits for one upstream: every document and text takes from it. It is not safe for
// concurrent use.
type Budget struct {
	limits     Limits
	bytes      int  // that may still be made
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

// NewBudget returns a Budget with the limits. larger, if not nil, is called once, when a
// sixteenth of the bytes or steps is used; if it returns an error, rendering ends.
func NewBudget(l Limits, larger func() error) *Budget {
	b := &Budget{}
	b.Reset(l, larger)
	return b
}

// Reset makes a Budget a new one.
func (b *Budget) Reset(l Limits, larger func() error) {
	l = Limits{Bytes: cmp.Or(l.Bytes, 48<<20), Steps: cmp.Or(l.Steps, 500_000), Time: cmp.Or(l.Time, time.Second)}
	*b = Budget{limits: l, bytes: l.Bytes, steps: l.Steps}
	if larger != nil {
		b.bytes, b.steps = l.Bytes/smallShare, l.Steps/smallShare
		b.reserve = &reserve{bytes: l.Bytes - b.bytes, steps: l.Steps - b.steps, larger: larger}
	}
	b.Begin()
}

// Begin begins a document: its size and its time are limited, bytes and steps for all documents together.
func (b *Budget) Begin() {
	b.since = time.Now()
	b.values, b.text, b.nesting, b.placing = maxValues, maxOutput, 0, false
}

// Place says whether the values that are copied from now on are part of the document. It returns what was said before.
func (b *Budget) Place(isPart bool) (before bool) {
	before, b.placing = b.placing, isPart
	return before
}

// Spend takes n bytes. Call it before making them if n may be large.
func (b *Budget) Spend(n int) error {
	for n < 0 || n > b.bytes {
		if more, err := b.enlarge(); err != nil {
			return err
		} else if !more {
			return Limitf("rendering produces more than %s of text and values", Size(b.limits.Bytes))
		}
	}
	b.bytes -= n
	return nil
}

// clockInterval is the number of steps between two looks at the clock.
const clockInterval = 2000

// Work takes n steps. A step is at most about a microsecond on an ordinary core.
func (b *Budget) Work(n int) error {
	for n < 0 || n > b.steps {
		if more, err := b.enlarge(); err != nil {
			return err
		} else if !more {
			return Limitf("rendering takes more than %d steps", b.limits.Steps)
		}
	}
	b.steps -= n
	if b.sinceClock += n; b.sinceClock < clockInterval {
		return nil
	}
	b.sinceClock = 0
	if time.Since(b.since) > b.limits.Time {
		return limitProblem(ErrTime, "rendering takes longer than %s", b.limits.Time)
	}
	return nil
}

// Text takes n bytes of text, and a step for each KiB of it.
func (b *Budget) Text(n int) error {
	if err := b.Spend(n); err != nil || n < 1<<10 {
		return err
	}
	return b.Work(n >> 10)
}

// Items takes n items that take this many bytes each, and a step for some of them.
func (b *Budget) Items(n, each int) error {
	if err := b.Spend(Times(n, each)); err != nil {
		return err
	}
	return b.Work(n / 16)
}

// Sort takes the sorting of n texts with this total length.
func (b *Budget) Sort(n, length int) error {
	rounds := bits.Len(uint(n))
	if err := b.Work(Times(n, rounds)/8 + Times(length, rounds)>>13); err != nil {
		return err
	}
	return b.Spend(Times(n, 40))
}

// enlarge makes the reserve available, once.
func (b *Budget) enlarge() (bool, error) {
	r := b.reserve
	if r == nil {
		return false, nil
	}
	b.reserve = nil
	if err := r.larger(); err != nil {
		return false, &Problem{Text: err.Error(), Limit: err}
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
		return Limitf("the document has more than %s", Size(maxOutput))
	}
	return nil
}

func (b *Budget) tooManyValues() error {
	return Limitf("the document has more than %d values", maxValues)
}

// maxNesting is how deep a value may nest: the API server's decoder allows 10,000 levels, real objects have about 30.
const maxNesting = 500

// Nest enters a map or list, if it does not nest too deep; Leave leaves it.
func (b *Budget) Nest() error {
	if b.nesting++; b.nesting > maxNesting {
		return Limitf("a value nests more than %d deep", maxNesting)
	}
	return nil
}

// Leave leaves a map or list that Nest entered.
func (b *Budget) Leave() { b.nesting-- }

// Placed takes a scalar, if it is part of the document.
func (b *Budget) Placed(v any) error {
	if !b.placing {
		return nil
	}
	if s, ok := v.(string); ok {
		return b.place(len(s))
	}
	return b.place(8)
}

// MoreText takes text that is part of a value of the document: a key, or the output of a hole.
func (b *Budget) MoreText(n int) error {
	if !b.placing {
		return nil
	}
	b.values++
	return b.place(n)
}

// PlaceMap takes a map with n entries.
func (b *Budget) PlaceMap(n int) error {
	if err := b.placeMembers(n); err != nil {
		return err
	}
	if err := b.Work(1 + n/8); err != nil {
		return err
	}
	return b.Spend(MapBytes(n))
}

// PlaceList takes a list with n items.
func (b *Budget) PlaceList(n int) error {
	if err := b.placeMembers(n); err != nil {
		return err
	}
	if err := b.Work(1 + n/32); err != nil {
		return err
	}
	return b.Spend(24 + 16*n)
}

// placeMembers takes a map or list, and looks whether the document can have so many members.
func (b *Budget) placeMembers(n int) error {
	if !b.placing {
		return nil
	}
	if err := b.place(2); err != nil {
		return err
	}
	if n > b.values {
		return b.tooManyValues()
	}
	return nil
}

// MapBytes returns the memory for a map with n entries.
func MapBytes(n int) int {
	switch {
	case n == 0:
		return 48
	case n <= 8:
		return 48 + 320
	}
	return Plus(48, Times(80, n))
}

// Size formats a number of bytes.
func Size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Times multiplies sizes; on overflow it returns the largest int.
func Times(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

// Plus adds sizes; on overflow it returns the largest int.
func Plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}
