package document

import (
	"maps"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// Suggest says which candidate was probably meant; where none is near it lists them all, and meant is empty.
func Suggest(got string, candidates []string, list string) (fix, meant string) {
	meant = spelling.Closest(got, candidates)
	switch {
	case meant != "":
		return "did you mean " + meant + "?", meant
	case len(candidates) == 0:
		return "remove it", ""
	default:
		return list + " " + strings.Join(candidates, ", "), ""
	}
}

// FixForUnknown says what to write in the place of a word that is none of the candidates; list names all of them.
func FixForUnknown(got string, candidates []string, list string) string {
	fix, _ := Suggest(got, candidates, list)
	return fix
}

// SortedKeys are the keys of a map, in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Clip shortens a value for a message.
func Clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
