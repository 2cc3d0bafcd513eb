package cost

import (
	"math"
	"regexp/syntax"
	"unicode/utf8"
)

// patternMax is how many bytes a text can have that a pattern of a schema matches, or with only how often it can have
// that rune. math.MaxUint64: there is no bound.
func patternMax(pattern string, only *rune) uint64 {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || pattern == "" {
		return math.MaxUint64
	}
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	n := len(re.Sub)
	if re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText || re.Sub[n-1].Op != syntax.OpEndText {
		return math.MaxUint64 // more may stand before or after
	}
	return mostOf(re, only)
}

func mostOf(re *syntax.Regexp, only *rune) (sum uint64) {
	switch re.Op {
	case syntax.OpLiteral:
		return mostOfLiteral(re, only)
	case syntax.OpCharClass:
		return mostOfClass(re.Rune, only)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		if only == nil {
			return utf8.UTFMax
		}
		return 1
	case syntax.OpStar, syntax.OpPlus:
		return Times(mostOf(re.Sub[0], only), math.MaxUint64)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return Times(mostOf(re.Sub[0], only), math.MaxUint64)
		}
		return Times(mostOf(re.Sub[0], only), uint64(re.Max))
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			sum = max(sum, mostOf(sub, only))
		}
		return sum
	}
	for _, sub := range re.Sub { // in a row, or one in a group
		sum = Plus(sum, mostOf(sub, only))
	}
	return sum
}

func mostOfLiteral(re *syntax.Regexp, only *rune) (sum uint64) {
	for _, r := range re.Rune {
		if only == nil {
			sum += utf8.UTFMax
		} else if r == *only || re.Flags&syntax.FoldCase != 0 {
			sum++
		}
	}
	return sum
}

// mostOfClass is mostOf for a character of a class, of which ranges has the first and last of each range.
func mostOfClass(ranges []rune, only *rune) uint64 {
	if only == nil && len(ranges) > 0 {
		return uint64(max(1, utf8.RuneLen(ranges[len(ranges)-1])))
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		if only != nil && ranges[i] <= *only && *only <= ranges[i+1] {
			return 1
		}
	}
	return 0
}
