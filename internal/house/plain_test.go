package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// archaic are phrases of comments that are hard to read in a second language, with what to write instead.
var archaic = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b[Tt]ells? whether\b`), "reports whether"},
	{regexp.MustCompile(`\b(tells|told|telling)\b`), "returns, reports, logs or says"},
	{regexp.MustCompile(`\b(stands|stood|standing)\b`), "is, exists or means"},
	{regexp.MustCompile(`\b\w*([a-df-z]|[a-qs-z]e) (is|are|was|were) no [a-km-z]\w*`), "is not a (but: there is no)"},
	{regexp.MustCompile(`\b(of now|of before)\b`), "current, previous"},
	{regexp.MustCompile(`\b(hears?|heard) of\b`), "sees or gets"},
	{regexp.MustCompile(`\b(heeds?|heeded)\b`), "handles or obeys"},
	{regexp.MustCompile(`\b(wish|wishes|wished)\b`), "desired"},
	{regexp.MustCompile(`\b(somebody|whoever has|whoever may|anew|lest|hence)\b`), "someone, anyone who, again, so that, so"},
	{regexp.MustCompile(`\b(none such|such a one|in vain|at hand|for the sake of|as ever|save for|comes? to be)\b`), "a plain word"},
	{regexp.MustCompile(`\b(holds|hold) that\b`), "the claim itself, as in TestX: a retry waits"},
	{regexp.MustCompile(`\b(taken|takes|take) for (a|an|the|one|granted)\b`), "counts as"},
	{regexp.MustCompile(`\bfor somebody else who\b`), "for another component that"},
}

// plainProblems returns the archaic phrases in the comments of a file, each with a position and a plainer phrase.
func plainProblems(file *ast.File, at func(token.Pos) string) []string {
	var problems []string
	for _, group := range file.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		for _, phrase := range archaic {
			if found := phrase.pattern.FindString(text); found != "" {
				problems = append(problems, fmt.Sprintf("%s: %q in a comment: write %s", at(group.Pos()), found, phrase.instead))
			}
		}
	}
	return problems
}

func TestCommentsArePlain(t *testing.T) {
	for _, s := range sources(t) {
		if s.path == "internal/house/plain_test.go" {
			continue
		}
		for _, problem := range plainProblems(s.file, s.at) {
			t.Error(problem)
		}
	}
}
