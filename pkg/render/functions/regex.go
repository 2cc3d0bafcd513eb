package functions

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// A regular expression may come from an upstream. In Go, matching takes time in proportion to the text and to the
// number of instructions of the expression; a{1000} has a thousand.
const (
	maxPattern      = 4 << 10
	maxInstructions = 10_000
	// instructionBytes is the memory for an instruction, compiled and while it runs.
	instructionBytes = 400
	// classBytes is the memory for a Unicode class (\pL).
	classBytes = 16 << 10
)

// regex compiles an expression and takes what it takes to match it to the text rounds times.
func regex(b *values.Budget, expr, text string, rounds int) (*regexp.Regexp, error) {
	if len(expr) > maxPattern {
		return nil, values.Limitf("a regular expression has more than %s", values.Size(maxPattern))
	}
	classes := strings.Count(expr, `\p`) + strings.Count(expr, `\P`) + strings.Count(expr, "(?")
	if err := b.Spend(len(expr)*64 + classes*classBytes); err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, values.Problemf("", "this is not a regular expression: %v", err)
	}
	n := instructions(tree)
	if n > maxInstructions {
		return nil, values.Limitf("a regular expression repeats more than %d parts", maxInstructions)
	}
	if err := b.Spend(values.Times(n, instructionBytes)); err != nil {
		return nil, err
	}
	if err := b.Work(values.Plus(n/2, values.Times(rounds, values.Times(len(text)+1, n)/32))); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, values.Problemf("", "this is not a regular expression: %v", err)
	}
	return re, nil
}

// instructions estimates the number of instructions of a compiled expression.
func instructions(re *syntax.Regexp) int {
	n := 2
	if re.Op == syntax.OpLiteral {
		n += len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = values.Plus(n, instructions(sub))
	}
	if re.Op == syntax.OpRepeat {
		n = values.Times(n, max(1, re.Min+1, re.Max))
	}
	return n
}

func regexMatch(b *values.Budget, expr, text string) (bool, error) {
	re, err := regex(b, expr, text, 1)
	if err != nil {
		return false, err
	}
	return re.MatchString(text), nil
}

func regexFind(b *values.Budget, expr, text string) (string, error) {
	re, err := regex(b, expr, text, 1)
	if err != nil {
		return "", err
	}
	return re.FindString(text), nil
}

// countMatches counts the matches without keeping them.
func countMatches(b *values.Budget, re *regexp.Regexp, text string) (int, error) {
	n := 0
	if err := b.Text(values.Times(values.BufferFactor, len(text))); err != nil {
		return 0, err
	}
	re.ReplaceAllStringFunc(text, func(string) string { n++; return "" })
	return n, b.Spend(values.Times(n, 64+16*(re.NumSubexp()+1)))
}

func regexFindAll(b *values.Budget, expr, text string, n int) ([]string, error) {
	re, err := regex(b, expr, text, 2)
	if err != nil {
		return nil, err
	}
	if _, err := countMatches(b, re, text); err != nil {
		return nil, err
	}
	return re.FindAllString(text, n), nil
}

func regexSplit(b *values.Budget, expr, text string, n int) ([]string, error) {
	re, err := regex(b, expr, text, 2)
	if err != nil {
		return nil, err
	}
	if _, err := countMatches(b, re, text); err != nil {
		return nil, err
	}
	return re.Split(text, n), nil
}

func regexReplaceAllLiteral(b *values.Budget, expr, text, to string) (string, error) {
	return replaced(b, expr, text, to, (*regexp.Regexp).ReplaceAllLiteralString)
}

func regexReplaceAll(b *values.Budget, expr, text, to string) (string, error) {
	return replaced(b, expr, text, to, (*regexp.Regexp).ReplaceAllString)
}

// replaced replaces the matches. Each $ may refer to a match, and all matches together are no longer than the text, so
// n of them make at most n times the text.
func replaced(
	b *values.Budget, expr, text, to string, replace func(re *regexp.Regexp, text, to string) string,
) (string, error) {
	re, err := regex(b, expr, text, 3)
	if err != nil {
		return "", err
	}
	n, err := countMatches(b, re, text)
	if err != nil {
		return "", err
	}
	references := strings.Count(to, "$")
	if err := b.Work(values.Times(n, references) / 16); err != nil {
		return "", err
	}
	length := values.Plus(values.Times(1+references, len(text)), values.Times(n, len(to)))
	if err := b.Text(values.Times(values.BufferFactor, length)); err != nil {
		return "", err
	}
	return replace(re, text, to), nil
}
