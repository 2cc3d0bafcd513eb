package render

import (
	"fmt"
	"math"
	"time"
)

// Budget limits what rendering one upstream may use: all its documents and texts draw on it before they allocate or
// begin anything. It is not safe for concurrent use. Data without one has a Budget of its own for each execution.
type Budget struct {
	limits   Limits
	bytes    int  // left to make
	steps    int  // left to take
	values   int  // left for the document
	text     int  // left for the document's text
	nesting  int  // of the value that is being copied
	placing  bool // what is copied goes into the document
	reserve  *reserve
	since    time.Time
	unlooked int // steps since the clock was last looked at
}

// reserve is what a Budget holds back until larger allows it.
type reserve struct {
	bytes, steps int
	larger       func() error
}

// smallShare is the part of a Budget, one in so many, that is free of larger.
const smallShare = 16

// NewBudget returns a Budget of the limits, whose zero fields take the default. larger, if not nil, is called once, when
// a sixteenth of the bytes or steps is used up: its error ends the rendering.
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

// begin begins a document: its size and its time count for itself. The steps bound how long all of them take.
func (b *Budget) begin() {
	b.since = time.Now()
	b.values, b.text, b.nesting, b.placing = b.limits.Values, b.limits.Output, 0, false
}

// spend takes n bytes, which are about to be allocated.
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

// lookEvery is how many steps are taken between two looks at the clock.
const lookEvery = 2000

// work takes n steps, which are about to be taken. A step is about a microsecond of an ordinary core, generously counted.
func (b *Budget) work(n int) error {
	for n < 0 || n > b.steps {
		if more, err := b.enlarge(); err != nil {
			return err
		} else if !more {
			return limitf("rendering takes more than %d steps", b.limits.Steps)
		}
	}
	b.steps -= n
	if b.unlooked += n; b.unlooked < lookEvery {
		return nil
	}
	b.unlooked = 0
	if time.Since(b.since) > b.limits.Time {
		text := fmt.Sprintf("rendering takes longer than %s", b.limits.Time)
		return &problem{text: text, kind: text, fix: limitFix, limit: ErrTime}
	}
	return nil
}

// enlarge frees the reserve, once.
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

// place takes a value of the document, of whose text n bytes are its own.
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

// maxNesting is how deep a value may nest: the API server's own decoder goes to 10,000, people to about 30.
const maxNesting = 500

// nest begins a map or list that is copied; leave ends it.
func (b *Budget) nest() error {
	if b.nesting++; b.nesting > maxNesting {
		return limitf("a value nests more than %d deep", maxNesting)
	}
	return nil
}

// textCost is what making a text of n bytes takes: its memory, and a step for each KiB.
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

// size gives a number of bytes as people say it.
func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// times multiplies sizes; what is too large for an int is the largest there is.
func times(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

// plus adds sizes in the same way.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// What follows is for values that are copied. While a document is filled, they are placed in it as well.

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

// moreText takes text that belongs to a value of the document: a key, or what a hole prints.
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
