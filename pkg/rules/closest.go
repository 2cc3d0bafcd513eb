package rules

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// closest returns the name that word was probably meant to be, or "" where none is close: at most a third of the
// letters may differ, since a wilder guess misleads. Two letters that changed places count as one that differs. Of
// equally close names it is the first of the alphabet.
func closest(word string, names []string) string {
	best, least := "", len(word)/3+1
	for _, name := range names {
		a, b := strings.ToLower(word), strings.ToLower(name)
		d := levenshtein.ComputeDistance(a, b)
		if d == 2 && letters(a) == letters(b) {
			d = 1
		}
		if d < least || d == least && best != "" && name < best {
			best, least = name, d
		}
	}
	return best
}

// letters returns the letters of a word in order.
func letters(word string) string {
	runes := []rune(word)
	slices.Sort(runes)
	return string(runes)
}
