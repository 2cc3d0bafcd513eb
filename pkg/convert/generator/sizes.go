package generator

import (
	"cmp"
	"maps"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// maxLong is how many items, keys or characters are tried at a bound, maxLongSum how many items and keys in all of one
// direction: a hundred characters count as one.
const (
	maxLong    = 10_000
	maxLongSum = 100_000
)

// sized is a place whose list, map or text has one size, while everything else in the object is small.
type sized struct {
	at     string
	size   int
	isText bool
}

// extent is how many items, keys or characters a list, map or text may have.
type extent struct {
	at        string
	isText    bool
	low, most int
	isBounded bool // most is a bound of the schema
}

// extents lists the lists, maps and texts of a schema.
func extents(s *structuralschema.Structural, at string, depth int) []extent {
	if depth > maxDepth {
		return nil
	}
	var list []extent
	v := validationOf(s)
	switch a := kinds.ValuesOf(s); {
	case s.Items != nil:
		list = append(list, extentOf(at, v.MinItems, v.MaxItems))
		list = append(list, extents(s.Items, at+"[]", depth+1)...)
	case a != nil:
		list = append(list, extentOf(at, v.MinProperties, v.MaxProperties))
		list = append(list, extents(a, at+"{}", depth+1)...)
	case s.Type == "string" && len(v.Enum) == 0 && formatOf(v) == "":
		text := extentOf(at, v.MinLength, v.MaxLength)
		text.isText = true
		list = append(list, text)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if property := s.Properties[name]; at != "" || !kinds.IsHead(name) {
			list = append(list, extents(&property, at+"."+name, depth+1)...)
		}
	}
	return list
}

func extentOf(at string, low, most *int64) extent {
	e := extent{at: at, most: maxLong}
	if low != nil {
		e.low = int(min(*low, maxLong+1))
	}
	if most != nil {
		e.most, e.isBounded = int(min(*most, maxLong+1)), true
	}
	return e
}

// places lists what is tried: each place at its own bounds and just outside of those that the same place has in the
// other version; then just above the bounds of other places there, where a rule may put it, and at the numbers in
// expressions.
func (g *Generator) places(s, other *structuralschema.Structural) []sized {
	theirs := extents(other, "", 0)
	var near, far []sized
	for _, mine := range extents(s, "", 0) {
		add := func(to *[]sized, sizes ...int) {
			for _, size := range sizes {
				if size >= mine.low && size <= min(mine.most, maxLong) {
					*to = append(*to, sized{mine.at, size, mine.isText})
				}
			}
		}
		if mine.low > 0 {
			add(&near, mine.low)
		}
		if mine.isBounded {
			add(&near, mine.most)
		}
		for _, their := range theirs {
			switch {
			case their.at == mine.at && their.isText == mine.isText && (their.isBounded || their.low > 0):
				add(&near, their.low-1, their.most, their.most+1)
			case their.isText == mine.isText && their.isBounded:
				add(&far, their.most+1)
			}
		}
		add(&far, g.long...)
	}
	return withinSum(near, far)
}

// withinSum joins the lists, less what comes twice and what is too much in all. What is small comes first, as a better
// counterexample.
func withinSum(lists ...[]sized) []sized {
	var kept []sized
	seen := map[sized]bool{}
	sum := 0
	bySize := func(a, b sized) int { return cmp.Compare(a.size, b.size) }
	for _, list := range lists {
		slices.SortStableFunc(list, bySize)
		for _, want := range list {
			weight := 1 + want.size
			if want.isText {
				weight = 1 + want.size/100
			}
			if seen[want] || sum+weight > maxLongSum {
				continue
			}
			seen[want] = true
			sum += weight
			kept = append(kept, want)
		}
	}
	slices.SortStableFunc(kept, bySize)
	return kept
}
