package clusters

import (
	"fmt"
	"slices"
	"time"
)

// Answer is what a cluster got as an answer at a moment: the clusters that the name names.
type Answer struct {
	At    time.Time
	Names []string
}

func (a Answer) String() string { return fmt.Sprintf("%s %q", a.At.Format("15:04:05.000000"), a.Names) }

// Promise is what a name promises: a cluster writes only after all answers have named it for After, and at least two in
// a row; no longer than Until after the last one; and not after one that does not name it alone. Late is how long a
// write may be on its way.
type Promise struct{ After, Until, Late time.Duration }

// CheckNamed returns the writes that break the promise, by the answers that each cluster was given.
func (p Promise) CheckNamed(writes []Write, answers map[string][]Answer) []string {
	var wrong []string
	for _, w := range writes {
		if why := p.breaks(w, answers[w.Cluster]); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", w, why))
		}
	}
	return wrong
}

// breaks says why a write breaks the promise; "" if it does not. An answer less than Late before the write may have
// come after it was sent, and an earlier one may have allowed it.
func (p Promise) breaks(w Write, answers []Answer) string {
	given := slices.DeleteFunc(slices.Clone(answers), func(a Answer) bool { return a.At.After(w.At) })
	for len(given) > 0 && !names(given[len(given)-1], w.Cluster) && w.At.Sub(given[len(given)-1].At) < p.Late {
		given = given[:len(given)-1]
	}
	row := 0
	for row < len(given) && names(given[len(given)-1-row], w.Cluster) {
		row++
	}
	switch {
	case len(given) == 0:
		return "nothing had named it"
	case row == 0:
		return fmt.Sprintf("after the answer %s", given[len(given)-1])
	case row < 2:
		return fmt.Sprintf("after one answer alone, %s", given[len(given)-1])
	}
	first, last := given[len(given)-row], given[len(given)-1]
	switch since, silent := w.At.Sub(first.At), w.At.Sub(last.At); {
	case since < p.After-p.Late:
		return fmt.Sprintf("it was named for %s, since %s", since, first)
	case silent > p.Until+p.Late:
		return fmt.Sprintf("the last answer had come %s before, %s", silent, last)
	}
	return ""
}

func names(a Answer, cluster string) bool { return len(a.Names) == 1 && a.Names[0] == cluster }
