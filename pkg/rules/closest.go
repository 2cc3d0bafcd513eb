package rules

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// closest returns the name that word was probably meant to be, or "" where none is close: at most a third of the
// letters may differ, since a wilder guess misleads. Of equally close ones it is the first of the alphabet.
func closest(word string, names []string) string {
	best, least := "", len(word)/3+1
	for _, name := range names {
		d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(name))
		if d < least || d == least && best != "" && name < best {
			best, least = name, d
		}
	}
	return best
}
