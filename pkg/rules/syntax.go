package rules

import (
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
)

// plainWords replaces words of the parser by plain ones. Nothing depends on the text.
var plainWords = strings.NewReplacer(
	"Syntax error: ", "",
	"mismatched input '<EOF>'", "the expression ends too early",
	"no viable alternative at input '<EOF>'", "the expression ends too early",
	"no viable alternative at input ", "the expression cannot continue after ",
	"extraneous input '<EOF>'", "the expression ends too early",
	"mismatched input ", "unexpected ",
	"extraneous input ", "unexpected ",
	"token recognition error at: ", "cannot read the text that begins with ",
	"'<EOF>'", "the end of the expression",
)

// syntaxError converts an error of CEL's parser to a readable one.
func syntaxError(expr string, err *cel.Error) *CompileError {
	text, _, _ := strings.Cut(firstLine(err.Message), " expecting ") // a list of all possible tokens
	return &CompileError{Line: err.Location.Line(), Column: err.Location.Column() + 1,
		Problem: "syntax error: " + plainWords.Replace(text), Fix: syntaxFix(expr)}
}

// quotedText matches the string literals of an expression.
var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)

// foreignSyntax is syntax of other languages that CEL does not have.
var foreignSyntax = []struct {
	pattern *regexp.Regexp
	fix     string
}{
	{regexp.MustCompile(`\{\{|\[\[.*\]\]`), "this is CEL, not a template: a field is read as in self.spec.replicas"},
	{regexp.MustCompile(`=>|->`), "a condition on each item is written as in self.spec.hosts.all(h, h != '')"},
	{regexp.MustCompile(`(^|[^=!<>])=($|[^=])`), "compare with =="},
	{regexp.MustCompile(`\b(and|or|not)\b|(^|[^&])&($|[^&])|(^|[^|])\|($|[^|])`), "write && for and, || for or, ! for not"},
	{regexp.MustCompile(`[^?]\?[.]`), "to read a field that may be missing, write self.spec.?replicas.orValue(1)"},
	{regexp.MustCompile(`\bhas\(\w+\)`), "has() needs a field, as in has(self.spec.replicas)"},
}

// syntaxFix suggests a fix for an expression in the syntax of another language; "" if it recognizes none.
func syntaxFix(expr string) string {
	expr = quotedText.ReplaceAllString(expr, "''")
	for _, f := range foreignSyntax {
		if f.pattern.MatchString(expr) {
			return f.fix
		}
	}
	return ""
}
