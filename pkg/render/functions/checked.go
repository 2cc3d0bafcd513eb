package functions

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// A single call of these functions could make much of little, or take long: they look at their arguments first, and
// take from the Budget what the result will be.

func repeat(b *values.Budget, n any, text string) (string, error) {
	times, err := count(n)
	if err != nil {
		return "", err
	}
	if times < 0 {
		return "", values.Problemf("", "text cannot be repeated %d times", times)
	}
	if text == "" {
		return "", nil
	}
	if err := b.Text(values.Times(times, len(text))); err != nil {
		return "", err
	}
	return strings.Repeat(text, times), nil
}

// Indent indents each line of a text.
func Indent(b *values.Budget, n any, text string) (string, error) {
	width, err := count(n)
	if err != nil {
		return "", err
	}
	if width < 0 {
		return "", values.Problemf("", "text cannot be indented by %d", width)
	}
	lines := 1 + strings.Count(text, "\n")
	if err := b.Text(values.Times(values.BufferFactor, values.Plus(len(text), values.Times(width, lines)))); err != nil {
		return "", err
	}
	return values.Indent(width, text), nil
}

// Nindent is Indent on a new line.
func Nindent(b *values.Budget, n any, text string) (string, error) {
	text, err := Indent(b, n, text)
	return "\n" + text, err
}

func replace(b *values.Budget, old, to, text string) (string, error) {
	found := strings.Count(text, old)
	if err := b.Items(found, 0); err != nil {
		return "", err
	}
	if err := b.Text(values.Plus(len(text), values.Times(found, len(to)))); err != nil {
		return "", err
	}
	return strings.ReplaceAll(text, old, to), nil
}

// pieces takes the pieces of a text, of which each becomes an item of a list or an entry of a map.
func pieces(b *values.Budget, sep, text string) error {
	return b.Items(strings.Count(text, sep)+1, 160)
}

func split(b *values.Budget, sep, text string) (map[string]string, error) {
	if err := pieces(b, sep, text); err != nil {
		return nil, err
	}
	return sprigFunctions["split"].(func(string, string) map[string]string)(sep, text), nil
}

func splitn(b *values.Budget, sep string, n int, text string) (map[string]string, error) {
	if err := pieces(b, sep, text); err != nil {
		return nil, err
	}
	return sprigFunctions["splitn"].(func(string, int, string) map[string]string)(sep, n, text), nil
}

func splitList(b *values.Budget, sep, text string) ([]string, error) {
	if err := pieces(b, sep, text); err != nil {
		return nil, err
	}
	return strings.Split(text, sep), nil
}

// trimAll: each character of the text may be compared with each one of a cutset that is not ASCII.
func trimAll(b *values.Budget, cutset, text string) (string, error) {
	each := 1
	if strings.ContainsFunc(cutset, func(r rune) bool { return r >= utf8.RuneSelf }) {
		each = len(cutset)
	}
	if err := b.Work(values.Times(len(text), each)>>8 + len(cutset)>>8); err != nil {
		return "", err
	}
	return strings.Trim(text, cutset), nil
}

// untilStep counts from start to stop, without stop itself.
func untilStep(b *values.Budget, start, stop, step any) ([]int, error) {
	var n [3]int
	for i, v := range []any{start, stop, step} {
		var err error
		if n[i], err = count(v); err != nil {
			return nil, err
		}
	}
	from, to, by := n[0], n[1], n[2]
	if by == 0 || (to < from) != (by < 0) {
		return []int{}, nil
	}
	// The difference of two integers can overflow.
	distance, each := uint64(to)-uint64(from), uint64(by)
	if by < 0 {
		distance, each = uint64(from)-uint64(to), -uint64(by)
	}
	items := distance / each
	if distance%each != 0 {
		items++
	}
	const tooMany = 1 << 40
	if err := b.Items(int(min(items, tooMany)), 8); err != nil {
		return nil, err
	}
	out := make([]int, items)
	for i := range out {
		out[i] = from + i*by
	}
	return out, nil
}

func until(b *values.Budget, n any) ([]int, error) {
	stop, err := count(n)
	if err != nil {
		return nil, err
	}
	if stop < 0 {
		return untilStep(b, 0, stop, -1)
	}
	return untilStep(b, 0, stop, 1)
}

// count returns a number of spaces or items, from any integer type.
func count(v any) (int, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return int(r.Int()), nil
	case r.CanFloat() && r.Float() == float64(int64(r.Float())):
		return int(r.Float()), nil
	}
	return 0, values.Problemf("write `| int`", "%s is not a whole number", values.TypeName(v))
}

// maxVersion limits the length of a version or constraint: the library matches it with several regular expressions.
const maxVersion = 1000

func shortVersions(b *values.Budget, versions ...string) error {
	for _, version := range versions {
		if len(version) > maxVersion {
			return values.Limitf("a version has more than %d bytes", maxVersion)
		}
	}
	return b.Work(100)
}

func semverCompare(b *values.Budget, constraint, version string) (bool, error) {
	if err := shortVersions(b, constraint, version); err != nil {
		return false, err
	}
	return sprigFunctions["semverCompare"].(func(string, string) (bool, error))(constraint, version)
}
