// Package spelling guesses which of several names a misspelled word was meant to be.
package spelling

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Closest returns the name that word was probably meant to be, or "" if none is close: at most a third of its letters
// may differ, in short words one. Swapped letters, or letters missing at the end, count as one difference; case does
// not count. Ties go to the first name in alphabetical order.
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

// letters returns the sorted letters of a word.
func letters(word string) string {
	runes := []rune(word)
	slices.Sort(runes)
	return string(runes)
}

// Either lists words of which one is to be taken.
func Either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
