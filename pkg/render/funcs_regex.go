package render

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// A regular expression may come from an upstream. In Go, matching takes time in proportion to the text and to the number of
// instructions of the expression; a{1000} has a thousand.
const (
	maxPattern      = 4 << 10
	maxInstructions = 10_000
	// instructionBytes is the memory for an instruction, compiled and while it runs.
	instructionBytes = 400
	// classBytes is the memory for a Unicode class (\pL).
	classBytes = 16 << 10
)

// pattern is a compiled regular expression.
type pattern struct {
	*regexp.Regexp
	instructions int
}

// regex compiles an expression and takes the cost of matching it to the text rounds times.
func (r *run) regex(expr, text string, rounds int) (*pattern, error) {
	if len(expr) > maxPattern {
		return nil, limitf("a regular expression has more than %s", size(maxPattern))
	}
	classes := strings.Count(expr, `\p`) + strings.Count(expr, `\P`) + strings.Count(expr, "(?")
	if err := r.spend(len(expr)*64 + classes*classBytes); err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, problemf("", "this is not a regular expression: %v", err)
	}
	n := instructions(tree)
	if n > maxInstructions {
		return nil, limitf("a regular expression repeats more than %d parts", maxInstructions)
	}
	if err := r.spend(times(n, instructionBytes)); err != nil {
		return nil, err
	}
	if err := r.work(plus(n/2, times(rounds, times(len(text)+1, n)/32))); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, problemf("", "this is not a regular expression: %v", err)
	}
	return &pattern{re, n}, nil
}

// instructions estimates the number of instructions of a compiled expression.
func instructions(re *syntax.Regexp) int {
	n := 2 + len(re.Rune)*boolInt(re.Op == syntax.OpLiteral)
	for _, sub := range re.Sub {
		n = plus(n, instructions(sub))
	}
	if re.Op == syntax.OpRepeat {
		n = times(n, max(1, re.Min+1, re.Max))
	}
	return n
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (r *run) regexMatch(expr, text string) (bool, error) {
	re, err := r.regex(expr, text, 1)
	if err != nil {
		return false, err
	}
	return re.MatchString(text), nil
}

func (r *run) regexFind(expr, text string) (string, error) {
	re, err := r.regex(expr, text, 1)
	if err != nil {
		return "", err
	}
	return re.FindString(text), nil
}

// countMatches counts the matches without keeping them.
func (r *run) countMatches(re *pattern, text string) (int, error) {
	n := 0
	if err := r.textCost(times(bufferFactor, len(text))); err != nil {
		return 0, err
	}
	re.ReplaceAllStringFunc(text, func(string) string { n++; return "" })
	return n, r.spend(times(n, 64+16*(re.NumSubexp()+1)))
}

func (r *run) regexFindAll(expr, text string, n int) ([]string, error) {
	re, err := r.regex(expr, text, 2)
	if err != nil {
		return nil, err
	}
	if _, err := r.countMatches(re, text); err != nil {
		return nil, err
	}
	return re.FindAllString(text, n), nil
}

func (r *run) regexSplit(expr, text string, n int) ([]string, error) {
	re, err := r.regex(expr, text, 2)
	if err != nil {
		return nil, err
	}
	if _, err := r.countMatches(re, text); err != nil {
		return nil, err
	}
	return re.Split(text, n), nil
}

func (r *run) regexReplaceAllLiteral(expr, text, to string) (string, error) {
	return r.replaced(expr, text, to, 0, (*regexp.Regexp).ReplaceAllLiteralString)
}

// regexReplaceAll: each $ in the replacement may refer to the match.
func (r *run) regexReplaceAll(expr, text, to string) (string, error) {
	return r.replaced(expr, text, to, strings.Count(to, "$"), (*regexp.Regexp).ReplaceAllString)
}

// replaced replaces the matches. All matches together are no longer than the text, so a replacement with n references (groups)
// makes at most n times the text.
func (r *run) replaced(expr, text, to string, groups int, replace func(re *regexp.Regexp, text, to string) string) (string, error) {
	re, err := r.regex(expr, text, 3)
	if err != nil {
		return "", err
	}
	n, err := r.countMatches(re, text)
	if err != nil {
		return "", err
	}
	if err := r.work(times(n, groups) / 16); err != nil {
		return "", err
	}
	if err := r.textCost(times(bufferFactor, plus(plus(len(text), times(n, len(to))), times(groups, len(text))))); err != nil {
		return "", err
	}
	return replace(re.Regexp, text, to), nil
}
