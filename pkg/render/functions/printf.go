package functions

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// printf is fmt.Sprintf, except that a verb that does not fit its value is an error: fmt prints %!d(string=x).
func printf(b *values.Budget, format string, args ...any) (string, error) {
	if err := noStructure(args); err != nil {
		return "", err
	}
	if err := b.Text(values.Times(values.BufferFactor, formatted(format, args))); err != nil {
		return "", err
	}
	text := fmt.Sprintf(format, args...)
	if strings.Contains(text, "%!") && hasPrintError(format, args) {
		return "", values.Problemf("use %v, %s for a string, %d for an integer",
			"printf %q does not fit its values: it gives %q",
			values.Short(format), values.Short(text))
	}
	return text, nil
}

var (
	// wide matches verbs whose width or precision has three digits or more, or is an argument.
	wide = regexp.MustCompile(`%[^a-zA-Z%]*(?:\*|[0-9]{3})`)
	// escaping matches verbs that make up to ten bytes of one.
	escaping = regexp.MustCompile(`%[^a-zA-Z%]*[qxXU]`)
)

// formatted returns the most bytes of a format's result. A width and a precision make up to a million each. A verb can
// name an argument ([1]), so that each may print the longest.
func formatted(format string, args []any) int {
	const widest = 2_000_000
	verbs, longest, all := strings.Count(format, "%"), 0, 0
	for _, v := range args {
		longest, all = max(longest, printed(v)), values.Plus(all, printed(v))
	}
	if strings.Contains(format, "[") {
		all = values.Times(verbs, longest)
	}
	if escaping.MatchString(format) {
		all = values.Times(10, all)
	}
	widths := values.Times(len(wide.FindAllStringIndex(format, -1)), widest)
	return values.Plus(values.Plus(len(format)+100*verbs, widths), all)
}

// hasPrintError reports whether the result has an error of fmt, such as %!d(…), that is not part of a value.
func hasPrintError(format string, args []any) bool {
	harmless := make([]any, len(args))
	for i, v := range args {
		if s, ok := v.(string); ok {
			v = strings.Repeat("x", min(len(s), 1))
		}
		harmless[i] = v
	}
	return strings.Contains(fmt.Sprintf(strings.ReplaceAll(format, "%%", ""), harmless...), "%!")
}

// FitsVerbs reports whether printf takes values of these schema types with a format. A type that is not string, integer
// or boolean is one of which nothing is known, and fits.
func FitsVerbs(format string, types []string) bool {
	samples := make([]any, len(types))
	for i, t := range types {
		switch t {
		case "string":
			samples[i] = ""
		case "integer":
			samples[i] = int64(1)
		case "boolean":
			samples[i] = true
		default:
			samples[i] = unknown{}
		}
	}
	return strings.Contains(format, "*") || !hasPrintError(format, samples) // * takes a width from the values
}

// unknown fits each verb.
type unknown struct{}

// Format prints nothing.
func (unknown) Format(fmt.State, rune) {}
