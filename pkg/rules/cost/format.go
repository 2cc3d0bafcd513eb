package cost

import (
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxPattern limits the length of a regular expression.
const maxPattern = 10_000

// programSize estimates the number of instructions of a compiled regular expression.
func programSize(pattern string) int {
	if len(pattern) > maxPattern {
		return most
	}
	// Unicode classes are large even before they are compiled.
	if classes := strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`); classes > 200 {
		return most
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 1 // it will not be compiled either
	}
	return instructions(tree)
}

func instructions(re *syntax.Regexp) int {
	n := 2 + len(re.Rune)/8
	for _, sub := range re.Sub {
		n = clamp(n + instructions(sub))
	}
	if re.Op == syntax.OpRepeat {
		n = clamp(n * max(1, re.Min+1, re.Max))
	}
	return n
}

// formatPrice: a precision makes that many digits, and a value is printed as a whole.
func formatPrice(args []ref.Val) int {
	format := text(args, 0)
	total := len(format)
	for rest := format; ; {
		at := strings.IndexByte(rest, '%')
		if at < 0 {
			break
		}
		rest = rest[at+1:]
		digits := strings.TrimLeft(rest, ".")
		end := 0
		for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
			end++
		}
		total = clamp(total + 16)
		if end > 0 {
			n, err := strconv.Atoi(digits[:end])
			if err != nil {
				n = most
			}
			total = clamp(total + min(n, most))
		}
	}
	if len(args) > 1 {
		m := measure{left: PerCall * 10}
		m.value(args[1])
		total = clamp(total + PerCall*10 - m.left)
		if m.left <= 0 {
			total = most
		}
	}
	return total / 10
}

// measure adds the lengths of printed values, up to a limit.
type measure struct{ left int }

func (m *measure) value(v ref.Val) {
	if m.left -= 16; m.left <= 0 {
		return
	}
	switch v := v.(type) {
	case types.String, types.Bytes:
		m.left -= length(v)
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True && m.left > 0; {
			key := it.Next()
			m.value(key)
			m.value(v.Get(key))
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True && m.left > 0; {
			m.value(it.Next())
		}
	case *types.Optional:
		if v.HasValue() {
			m.value(v.GetValue())
		}
	}
}

// MaxResult limits the size of a result as JSON: more than the API server stores of an object.
const MaxResult = 2 << 20

// IsTooLarge reports whether a result is too large to keep. It may share parts, so that it uses little memory until it
// is copied or printed.
func IsTooLarge(val ref.Val) bool {
	m := measure{left: MaxResult}
	m.value(val)
	return m.left <= 0
}
