// Package spelling guesses which of several names a word was meant to be. It knows nothing of what is named.
package spelling

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Closest returns the name that word was probably meant to be, "" where none is close: at most a third of its letters may
// differ, and in short words one, since a wilder guess misleads. Two letters that changed places, or that a longer word
// lacks at its end, count as one, and capitals as small letters. Of equally close names it is the first of the alphabet.
func Closest(word string, names []string) string {
	word = strings.ToLower(word)
	best, least := "", max(len(word)/3, 1)+1
	for _, name := range names {
		d := distance(word, strings.ToLower(name))
		if d < len(name) && (d < least || d == least && best != "" && name < best) {
			best, least = name, d
		}
	}
	return best
}

func distance(a, b string) int {
	d := levenshtein.ComputeDistance(a, b)
	if d == 2 && (letters(a) == letters(b) || len(a) > 3 && strings.HasPrefix(b, a)) {
		return 1
	}
	return d
}

// letters returns the letters of a word in order.
func letters(word string) string {
	runes := []rune(word)
	slices.Sort(runes)
	return string(runes)
}
