package generator

import (
	"maps"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Combinations are all pairs of values of two fields, and how many these are. Of more than maxPairs so many are chosen
// at random.
func (g *Generator) Combinations(v *kinds.Version, maxPairs int) (chosen func(func(map[string]int) bool), all int) {
	fields := g.choices(v.Structural, "", 0)
	before := 0
	for _, f := range fields {
		all += f.options() * (before + 1)
		before += f.options()
	}
	if all <= maxPairs {
		return allPairs(fields), all
	}
	return func(yield func(map[string]int) bool) {
		random := g.random
		for range maxPairs {
			a, b := fields[random.IntN(len(fields))], fields[random.IntN(len(fields))]
			if !yield(map[string]int{a.at: a.option(random.IntN(a.options())), b.at: b.option(random.IntN(b.options()))}) {
				return
			}
		}
	}, all
}

// allPairs are all values of one field, and all pairs of values of two.
func allPairs(fields []fieldChoice) func(func(map[string]int) bool) {
	return func(yield func(map[string]int) bool) {
		for i, a := range fields {
			for x := range a.options() {
				if !yield(map[string]int{a.at: a.option(x)}) {
					return
				}
				for _, b := range fields[i+1:] {
					for y := range b.options() {
						if !yield(map[string]int{a.at: a.option(x), b.at: b.option(y)}) {
							return
						}
					}
				}
			}
		}
	}
}

// absent is the choice that a field is not there.
const absent = -1

// fieldChoice is a scalar field that is always reached, with how many values there are to try.
type fieldChoice struct {
	at     string
	values int
	absent bool // it may be absent
}

// options is how many values there are to try, and absent.
func (f fieldChoice) options() int {
	if f.absent {
		return f.values + 1
	}
	return f.values
}

// option is one of them: an index into the values, or absent.
func (f fieldChoice) option(n int) int {
	if n == f.values {
		return absent
	}
	return n
}

// choices lists the fields whose combinations are tried.
func (g *Generator) choices(s *structuralschema.Structural, at string, depth int) []fieldChoice {
	var list []fieldChoice
	if depth > maxDepth {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		where := at + "." + name
		if at == "" && kinds.IsHead(name) {
			continue
		}
		optional := s.ValueValidation == nil || !slices.Contains(s.ValueValidation.Required, name)
		if n := len(g.boundaries(&property)); n > 0 && property.Type != "object" {
			list = append(list, fieldChoice{where, n, optional})
			continue
		}
		list = append(list, g.choices(&property, where, depth+1)...)
	}
	return list
}
